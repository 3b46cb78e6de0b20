// Where one is: a position (round, phase, node) and its number, counted in steps. Which steps a
// round has is written in the run's table of steps.

import { NONE } from "./decode.js";

/** @typedef {import("./decode.js").Data} Data */
/**
 * @typedef {object} Position
 * @property {number} round
 * @property {"draft" | "verify" | "decide" | "close" | "rollback"} phase
 * @property {number} node    index within the round of the proposal in question, or -1
 */

export const PHASES = ["draft", "verify", "decide", "close", "rollback"];

/**
 * @typedef {object} Timeline
 * @property {number} length        how many steps there are
 * @property {Int32Array} start     (rounds + 1) first step of each round
 * @property {(step: number) => Position} at
 * @property {(position: Position) => number} step
 * @property {(round: number) => number[]} examined  nodes in the order in which they were judged
 */

/**
 * @param {Data} data
 * @returns {Timeline}
 */
export function timeline(data) {
  const start = new Int32Array(data.rounds + 1);
  for (let r = 0; r < data.rounds; r++) {
    const n = data.round.nodes[r];
    const examined = data.sums.examined[r + 1] - data.sums.examined[r];
    start[r + 1] = start[r] + (n ? n + examined + 3 : 2);
  }
  const length = start[data.rounds];

  /** @param {number} r */
  const examined = (r) => {
    const found = [];
    for (let s = start[r]; s < start[r + 1]; s++)
      if (PHASES[data.step.phase[s]] === "decide") found.push(data.step.node[s]);
    return found;
  };

  /** @param {number} step @returns {Position} */
  const at = (step) => {
    const node = data.step.node[step];
    const phase = /** @type {Position["phase"]} */ (PHASES[data.step.phase[step]]);
    return { round: roundOf(start, step), phase, node: node === NONE ? -1 : node };
  };

  /** @param {Position} position */
  const step = ({ round, phase, node }) => {
    const r = clamp(Math.trunc(round) || 0, 0, Math.max(0, data.rounds - 1));
    if (!data.rounds) return 0;
    const n = data.round.nodes[r],
      last = start[r + 1] - 1;
    if (phase === "rollback") return last;
    if (!n) return phase === "close" ? last : start[r];
    if (phase === "close") return last - 1;
    if (phase === "verify") return start[r] + n;
    if (phase === "decide") {
      const j = examined(r).indexOf(node);
      return j < 0 ? start[r] + n : start[r] + n + 1 + j;
    }
    return start[r] + clamp(node, 0, n - 1);
  };
  return { length, start, at, step, examined };
}

/** @param {number} x @param {number} low @param {number} high */
export function clamp(x, low, high) {
  return Math.min(high, Math.max(low, x));
}

/**
 * The last round that starts at or before a step.
 * @param {Int32Array} start
 * @param {number} step
 */
export function roundOf(start, step) {
  let low = 0,
    high = start.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (start[middle] <= step) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/**
 * Where a jump leads from a step; the step itself if there is nothing there.
 * @param {Data} data @param {Timeline} time @param {number} step
 * @param {"token" | "phase" | "round" | "rejection" | "bonus"} unit
 * @param {1 | -1} way
 */
export function jump(data, time, step, unit, way) {
  const last = Math.max(0, time.length - 1);
  if (!time.length || unit === "token") return clamp(step + way, 0, last);
  const here = time.at(step);
  if (unit === "phase") {
    let to = step;
    do to += way;
    while (to > 0 && to < last && same(time.at(to), here));
    if (way < 0 && to > 0) while (to > 0 && same(time.at(to - 1), time.at(to))) to--;
    return clamp(to, 0, last);
  }
  if (unit === "round") {
    if (way < 0 && step > time.start[here.round]) return time.start[here.round];
    return clamp(time.start[clamp(here.round + way, 0, data.rounds)] ?? last, 0, last);
  }
  for (let r = here.round; r >= 0 && r < data.rounds; r += way) {
    const found = events(data, time, r, unit);
    const hit = way > 0 ? found.find((s) => s > step) : found.reverse().find((s) => s < step);
    if (hit !== undefined) return hit;
  }
  return step;
}

/** @param {Position} a @param {Position} b */
function same(a, b) {
  return a.round === b.round && a.phase === b.phase;
}

/** The steps of a round at which something is rejected, or a bonus drawn. @returns {number[]} */
function events(data, time, r, unit) {
  if (unit === "bonus")
    return data.round.closing_kind[r] === 2
      ? [time.step({ round: r, phase: "close", node: -1 })]
      : [];
  const first = data.start[r];
  return time
    .examined(r)
    .filter((i) => data.node.verdict[first + i] === 2)
    .map((node) => time.step({ round: r, phase: "decide", node }));
}

/**
 * The step at which an emitted token came into the text.
 * @param {Data} data @param {Timeline} time @param {number} index
 */
export function stepOfToken(data, time, index) {
  const round = data.outRound[index],
    node = data.outNode[index];
  const phase = node < 0 ? "close" : "decide";
  return time.step({ round, phase, node: node < 0 ? -1 : node - data.start[round] });
}

/**
 * The next place, after a step and round the end to the beginning, where a text was proposed or
 * drawn; -1 if it never was. Capitals and the blank before a word do not count. A token that is
 * the text comes before all that only have it in them.
 * @param {Data} data @param {Timeline} time @param {string} words @param {number} step
 */
export function search(data, time, words, step) {
  const wanted = words.trim().toLowerCase();
  if (!wanted || !data.rounds) return -1;
  const strings = data.header.strings.map((s) => s.toLowerCase());
  const whole = next(
    data,
    time,
    strings.map((s) => s.trim() === wanted),
    step,
  );
  return whole < 0
    ? next(
        data,
        time,
        strings.map((s) => s.includes(wanted)),
        step,
      )
    : whole;
}

/**
 * @param {Data} data
 * @param {Timeline} time
 * @param {boolean[]} hits by token
 * @param {number} step
 */
function next(data, time, hits, step) {
  const here = time.at(step).round;
  for (let k = 0; k <= data.rounds; k++) {
    const round = (here + k) % data.rounds;
    const found = [];
    for (let i = data.start[round]; i < data.start[round + 1]; i++)
      if (hits[data.node.token[i]])
        found.push(
          time.step({
            round,
            node: i - data.start[round],
            phase: data.node.verdict[i] ? "decide" : "draft",
          }),
        );
    if (hits[data.round.closing[round]]) found.push(time.step({ round, phase: "close", node: -1 }));
    found.sort((a, b) => a - b);
    const one = k ? found[0] : found.find((s) => s > step);
    if (one !== undefined) return one;
  }
  return -1;
}

/**
 * "#round=3&phase=decide&node=1" and back.
 * @param {Position} position @param {boolean} [details] whether the details are open
 */
export function toHash({ round, phase, node }, details = false) {
  const place = `#round=${round}&phase=${phase}` + (node < 0 ? "" : `&node=${node}`);
  return details ? `${place}&details` : place;
}

/** @param {string} hash @returns {Position | null} */
export function fromHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name) => (/^\d+$/.test(said.get(name) ?? "") ? Number(said.get(name)) : null);
  const round = number("round");
  if (round === null) return null;
  const node = number("node") ?? -1;
  const phase = said.get("phase") ?? (node < 0 ? "draft" : "decide");
  return PHASES.includes(phase) ? { round, phase: /** @type {any} */ (phase), node } : null;
}
