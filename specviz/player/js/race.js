// A race: several runs side by side on one clock of measured time.

import { decode, pieceText, unzip } from "./decode.js";
import { h, setAttr, setStyle, setText } from "./dom.js";
import { playback } from "./playback.js";
import { markOf } from "./view_text.js";
import { duration } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */

const WINDOW = 160;
const PACES = [0.1, 0.25, 0.5, 1, 2, 4];

/**
 * How many tokens a run had after so many seconds: those of the rounds that were over.
 * @param {Data} data @param {number} seconds
 */
export function tokensAt(data, seconds) {
  let low = 0, high = data.rounds;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (data.sums.seconds[middle] <= seconds + 1e-12) low = middle;
    else high = middle - 1;
  }
  return { rounds: low, tokens: data.outStart[low] };
}

/** @param {Data} data */
function lane(data) {
  const text = h("bdi", { class: "svp-inner" }, [h("span", { class: "svp-prompt", text: data.header.prompt })]);
  const past = h("span");
  text.append(past);
  const bar = h("i", { class: "svp-fill" });
  const numbers = h("span", { class: "svp-len" }), flag = h("b", { class: "svp-flag" });
  const el = h("div", { class: "svp-racer", role: "listitem" }, [
    h("div", { class: "svp-cachehead" }, [h("b", { text: data.header.label }), flag, numbers]),
    h("div", { class: "svp-progress" }, [bar]),
    h("div", { class: "svp-text" }, [text]),
  ]);
  let low = 0, high = 0;
  /** @type {any[]} */
  let spans = [];
  const total = data.out.length, finish = data.sums.seconds[data.rounds];
  return {
    el, flag, finish, total,
    /** @param {number} seconds */
    update(seconds) {
      const { tokens, rounds } = tokensAt(data, seconds);
      const from = Math.max(0, tokens - WINDOW);
      if (from >= high || tokens <= low || from < low) {
        past.textContent = "";
        spans = [];
        low = high = from;
      }
      const fresh = [];
      for (; high < tokens; high++) {
        const kind = markOf(data.outKind[high]);
        const piece = pieceText(data, high) + (/⏎(×[\d,]+)?$/.test(pieceText(data, high)) ? "\n" : "");
        fresh.push(h("span", { class: "svp-t" }, [
          piece.length > 1 && piece.startsWith(" ") ? " " : "",
          h("span", { class: "svp-w", "data-mark": kind, text: piece.length > 1 ? piece.replace(/^ /, "") : piece }),
        ]));
      }
      past.append(...fresh);
      spans.push(...fresh);
      while (high > tokens) spans.pop().remove(), high--;
      while (low < from) spans.shift().remove(), low++;
      setStyle(bar, "transform", `scaleX(${total ? (tokens / total).toFixed(4) : 1})`);
      setText(numbers, `${tokens} tokens, ${rounds} passes`);
      return tokens;
    },
  };
}

/**
 * @param {any} el @param {Data[]} runs @param {any} model
 * @returns {() => void}
 */
export function mountRace(el, runs, model) {
  const options = model.get("options") ?? {};
  const lanes = runs.map(lane);
  const end = Math.max(...lanes.map((one) => one.finish));
  let now = 0, pace = PACES.includes(options.pace) ? options.pace : end < 3 ? 0.25 : 1;
  const off = new AbortController();
  const root = h("div", {
    class: `svp svp-race svp-${options.theme ?? "auto"}`, tabindex: 0, role: "group",
    "aria-label": "Race", "data-lm-suppress-shortcuts": "true", "data-testid": "specviz-race",
  });
  const play = h("button", { type: "button", class: "svp-play", "aria-label": "Play (space)", text: "▶", "data-testid": "svp-play" });
  const scrub = h("input", { type: "range", min: 0, max: end || 1, step: "any", value: 0, class: "svp-scrub", "aria-label": "Time" });
  const where = h("output", { class: "svp-where" });
  const speed = h("select", { "aria-label": "Pace" }, PACES.map((x) => h("option", { value: x, text: x === 1 ? "real time" : `${x}×` })));
  speed.value = String(pace);
  const live = h("div", { class: "svp-live", "aria-live": "polite", "data-testid": "svp-live" });
  root.append(
    h("div", { class: "svp-head1" }, [h("b", { text: options.title || "Race" }), h("span", { text: "one clock: each run's own measured times" })]),
    h("div", { class: "svp-racers", role: "list" }, lanes.map((one) => one.el)),
    h("div", { class: "svp-bar", role: "toolbar", "aria-label": "Race" }, [play, scrub, where, speed]), live,
  );
  el.append(root);

  const draw = () => {
    const places = lanes.filter((one) => one.finish <= now + 1e-12).sort((a, b) => a.finish - b.finish);
    for (const one of lanes) {
      one.update(now);
      const place = places.indexOf(one);
      setText(one.flag, place < 0 ? "" : place ? `done after ${duration(one.finish)}` : `first: ${duration(one.finish)}`);
      setAttr(one.el, "data-first", place === 0 || null);
    }
    scrub.value = String(now);
    setText(where, duration(now));
  };
  const clock = playback({
    speed: () => 60 * pace, // steps of 1/60 second
    waits: () => false,
    advance(steps) {
      now = Math.min(end, now + steps / 60);
      draw();
      return now < end;
    },
    changed(playing) {
      setText(play, playing ? "❚❚" : "▶");
      setAttr(play, "aria-label", playing ? "Pause (space)" : "Play (space)");
      if (!playing) announce();
    },
  });
  const go = (/** @type {number} */ to) => {
    clock.stop();
    now = Math.min(end, Math.max(0, to));
    draw();
    announce();
  };
  function announce() {
    const told = runs.map((data) => `${data.header.label}: ${tokensAt(data, now).tokens} tokens`);
    setText(live, `After ${duration(now)}: ${told.join("; ")}.`);
  }
  const toggle = () => {
    if (!clock.playing && now >= end) now = 0;
    clock.toggle();
  };
  const listen = (target, event, does) => target.addEventListener(event, does, { signal: off.signal });
  listen(play, "click", toggle);
  listen(scrub, "input", () => go(Number(scrub.value)));
  listen(speed, "change", () => (pace = Number(speed.value)));
  listen(root, "keydown", (/** @type {any} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.tagName === "SELECT" || (event.target.tagName === "BUTTON" && event.key === " ")) return event.stopPropagation();
    const acts = {
      " ": toggle, ArrowRight: () => go(now + end / 100), ArrowLeft: () => go(now - end / 100),
      Home: () => go(0), End: () => go(end),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  });
  const watch = new IntersectionObserver((seen) => clock.seen(seen[seen.length - 1].isIntersecting));
  watch.observe(root);
  draw();
  let gone = false;
  return () => {
    if (gone) return;
    gone = true;
    clock.stop();
    off.abort();
    watch.disconnect();
    root.remove();
  };
}

/** Read all of a model's runs and let them race. @param {any} model @param {any} el */
export async function raceOf(model, el) {
  const runs = await Promise.all(model.get("data").map(async (packed) => decode(await unzip(packed))));
  return mountRace(el, runs, model);
}
