// (e) The KV caches of target and draft: what is in them, what the round adds, what it takes back.

import { pieceText, tokenText } from "./decode.js";
import { h, pool, setAttr, setStyle, setText, show, trimmed } from "./dom.js";
import { count } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const BEFORE = 4,
  MOST = 24,
  ACROSS = 12;

/**
 * The lengths of a cache: before the round, now, at its longest, after the round.
 * @param {Data} data @param {Frame} frame @param {string} which
 */
export function cacheAt(data, frame, which) {
  const of = (/** @type {string} */ name) => data.round[`${which}_${name}`][frame.round];
  const before = of("before"),
    peak = of(which === "target" ? "verified" : "proposed"),
    now = before + data.step[`${which}_new`][frame.step];
  return { before, now, peak, after: of("after"), used: peak > 0 };
}

/**
 * The slots of a cache at a frame: `kept` was there before, `new` was written in this round,
 * `gone` was rolled back, `empty` has not been written, `lacks` only the other cache has.
 * @param {Data} data @param {Frame} frame @param {"target" | "draft"} which
 */
export function slotsAt(data, frame, which) {
  const cache = cacheAt(data, frame, which),
    r = frame.round;
  const other = cacheAt(data, frame, which === "target" ? "draft" : "target");
  const end = Math.max(cache.peak, other.peak);
  const before = Math.min(cache.before, other.used ? other.before : cache.before) - BEFORE;
  // the first pass writes the whole prompt: its end, and what follows, is what matters
  const low = Math.max(0, before, r ? 0 : end - MOST);
  const high = Math.min(low + MOST, end);
  const slots = [];
  for (let at = low; at < high; at++) {
    const back = frame.settled && at >= cache.after && at < cache.peak;
    const lacks = frame.settled && cache.used && at >= cache.after && at < other.after;
    const empty = lacks ? "lacks" : "empty";
    const state = back ? "gone" : at >= cache.now ? empty : at < cache.before ? "kept" : "new";
    slots.push({ at, state, text: textAt(data, r, at) });
  }
  return { ...cache, low, slots };
}

/** The token behind a slot: of the text, or a proposal of this round. */
function textAt(data, r, at) {
  const node = at - data.round.position[r];
  if (node >= 0) {
    const row = data.start[r] + node;
    return row < data.start[r + 1] ? tokenText(data, data.node.token[row]) : "";
  }
  const index = at - data.header.prompt_length;
  return index < 0 ? "" : pieceText(data, index);
}

function cell() {
  const text = h("bdi");
  return { el: h("div", { class: "svp-cell" }, [text]), text };
}

export const cachesView = {
  name: "caches",
  title: "KV caches",
  /** @param {Data} data */
  mount(data) {
    const strips = ["target", "draft"].map((which) => {
      const length = h("span", { class: "svp-len" });
      const head = h("div", { class: "svp-cachehead" }, [
        h("b", { text: which, class: `svp-${which}` }),
        length,
      ]);
      const row = h("div", { class: "svp-cells", "data-of": which });
      return { which, head, length, row, cells: pool(row, cell) };
    });
    const key = h("div", { class: "svp-key" }, [
      h("span", { class: "svp-c-kept", text: "kept" }),
      h("span", { class: "svp-c-new", text: "written in this round" }),
      h("span", { class: "svp-c-gone", text: "rolled back" }),
      h("span", { class: "svp-c-lacks", text: "the draft still lacks" }),
    ]);
    const el = h("div", { class: "svp-caches" }, [...strips.flatMap((s) => [s.head, s.row]), key]);
    return {
      el,
      /** @param {Frame} frame */
      update(frame) {
        for (const strip of strips) {
          const seen = slotsAt(data, frame, /** @type {any} */ (strip.which));
          show(strip.row, seen.used);
          if (!seen.used) {
            setText(
              strip.length,
              strip.which === "draft" ? "no cache of its own" : "no cache recorded",
            );
            continue;
          }
          const change =
            frame.settled && seen.peak > seen.after
              ? ` (−${seen.peak - seen.after})`
              : seen.now > seen.before
                ? ` (+${seen.now - seen.before})`
                : "";
          setText(strip.length, `${count(seen.now, "token")}${change}`);
          const made = strip.cells(seen.slots.length);
          setStyle(strip.row, "--svp-n", String(Math.min(ACROSS, Math.max(8, seen.slots.length))));
          seen.slots.forEach((slot, i) => {
            setText(made[i].text, slot.state === "empty" ? "" : trimmed(slot.text) || "·");
            setAttr(made[i].el, "data-state", slot.state);
          });
        }
      },
    };
  },
};
