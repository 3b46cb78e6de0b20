// Of a race, what is pure: where each run is at a time, the next round's end, keys, links.

import { clamp } from "./timeline.js";

/** @typedef {import("./decode.js").Data} Data */

const SAME = 1e-12; // seconds: ends of rounds that are one moment

/**
 * How many tokens a run had after so many seconds: those of the rounds that were over.
 * @param {Data} data @param {number} seconds
 */
export function tokensAt(data, seconds) {
  const rounds = over(data, seconds);
  return { rounds, tokens: data.outStart[rounds] };
}

/** How many rounds were over by then. @param {Data} data @param {number} seconds */
function over(data, seconds) {
  let low = 0,
    high = data.rounds;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (data.sums.seconds[middle] <= seconds + SAME) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * When the next round of any run ends, or the last one did; the race's own end or 0 if there is
 * none.
 * @param {Data[]} runs @param {number} seconds @param {1 | -1} way
 */
export function nextEnd(runs, seconds, way) {
  const ends = runs.map((data) => {
    const at = over(data, seconds),
      all = data.sums.seconds;
    if (way > 0) return at < data.rounds ? all[at + 1] : all[data.rounds];
    return all[seconds - all[at] > SAME ? at : Math.max(0, at - 1)];
  });
  if (way < 0) return Math.max(0, ...ends.filter((end) => end < seconds - SAME));
  const later = ends.filter((end) => end > seconds + SAME);
  return later.length ? Math.min(...later) : Math.max(seconds, ...ends);
}

/** "#t=0.245" and back: seconds, or null. @param {string} hash @param {number} end */
export function timeOf(hash, end) {
  const said = new URLSearchParams(hash.replace(/^#/, "")).get("t") ?? "";
  return /^\d*\.?\d+(e-?\d+)?$/.test(said) ? clamp(Number(said), 0, end) : null;
}

/** @param {number} seconds a moment; the page's address is shorter in microseconds */
export function hashOf(seconds) {
  return `#t=${Number(seconds.toFixed(6))}`;
}

/** Key → what it does; the help lists these. */
export const RACE_KEYS = [
  ["Space", "play or pause"],
  ["→ ←", "next, previous end of a round, of any run"],
  ["Shift → ←", "a tenth of the race"],
  ["Home End", "start, end"],
  ["+ −", "faster, slower"],
  ["f", "full screen"],
  ["c", "copy a link to this moment (pages)"],
  ["Esc", "close this"],
  ["?", "this list"],
];

/**
 * What a key asks a race for; null if it is not ours.
 * @param {{ key: string, shiftKey?: boolean }} event
 * @returns {[string, ...any[]] | null}
 */
export function raceCommand({ key, shiftKey }) {
  switch (key) {
    case " ":
      return ["toggle"];
    case "ArrowRight":
    case "ArrowDown":
      return [shiftKey ? "leap" : "step", 1];
    case "ArrowLeft":
    case "ArrowUp":
      return [shiftKey ? "leap" : "step", -1];
    case "PageDown":
      return ["leap", 1];
    case "PageUp":
      return ["leap", -1];
    case "Home":
      return ["edge", -1];
    case "End":
      return ["edge", 1];
    case "+":
    case "=":
      return ["speed", 1];
    case "-":
    case "−":
      return ["speed", -1];
    case "f":
      return ["full"];
    case "c":
      return ["link"];
    case "?":
      return ["help"];
    case "Escape":
      return ["escape"];
    default:
      return null;
  }
}
