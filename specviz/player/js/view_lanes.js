// (f) Lanes of time: drafting and verifying as measured, beside the target alone on the same clock.

import { h, pool, setAttr, setStyle, setText, show } from "./dom.js";
import { secondsAt } from "./frame.js";
import { count, duration } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/** How many rounds, of average length, the lanes show. */
const SPAN = 6;

/**
 * Blocks within a window of time, as shares of it.
 * @param {Data} data @param {number} from seconds @param {number} size seconds
 */
export function blocksIn(data, from, size) {
  const blocks = [];
  const seconds = data.sums.seconds;
  let r = 0,
    high = data.rounds;
  while (r < high) {
    const middle = (r + high) >> 1;
    if (seconds[middle + 1] > from) high = middle;
    else r = middle + 1;
  }
  for (; r < data.rounds && seconds[r] < from + size; r++) {
    let at = seconds[r];
    for (const kind of ["draft", "verify", "other"]) {
      const took = data.round[`${kind}_seconds`][r];
      if (took > 0) blocks.push({ kind, round: r, at: (at - from) / size, size: took / size });
      at += took;
    }
  }
  return blocks;
}

function block() {
  return { el: h("i", { class: "svp-block" }) };
}

export const lanesView = {
  name: "lanes",
  title: "Time",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    let baseline = data.header.baseline;
    if (!(data.sums.seconds[data.rounds] > 0)) {
      const el = h("div", { class: "svp-lanes" }, [
        h("div", { class: "svp-sub", text: "This run has no measured times." }),
      ]);
      return { el, update() {} };
    }
    const span = () => Math.max((SPAN * data.sums.seconds[data.rounds]) / data.rounds, 1e-9);
    let size = span();
    const lane = () => h("div", { class: "svp-lane" });
    const ours = lane(),
      alone = lane();
    const oursBlocks = pool(ours, block),
      aloneBlocks = pool(alone, block);
    const heads = ["now", "now"].map(() => h("i", { class: "svp-head" }));
    (ours.append(heads[0]), alone.append(heads[1]));
    const oursText = h("span", { class: "svp-len" }),
      aloneText = h("span", { class: "svp-len" });
    const source = baseline?.measured
      ? "measured in a run of its own"
      : "not measured, one token per verification pass of this run: slower than it is";
    const el = h("div", { class: "svp-lanes" }, [
      h("div", { class: "svp-cachehead" }, [h("b", { text: "speculative" }), oursText]),
      ours,
      h("div", { class: "svp-cachehead" }, [
        h("b", { text: "target alone", title: source }),
        aloneText,
      ]),
      alone,
      h("div", { class: "svp-key" }, [
        h("span", { class: "svp-k-draft", text: "draft" }),
        h("span", { class: "svp-k-verify", text: "target pass" }),
        h("span", { class: "svp-k-other", text: "rest" }),
        h("span", {
          class: "svp-note",
          text: [
            baseline && `target alone: ${source}`,
            data.header.times && `times: ${data.header.times}`,
          ]
            .filter(Boolean)
            .join("; "),
        }),
      ]),
    ]);
    ours.addEventListener("click", (/** @type {any} */ event) => {
      const round = event.target.dataset?.round;
      if (round) player.go(time.step({ round: Number(round), phase: "verify", node: -1 }));
    });
    let drawn = -1;
    return {
      el,
      /** There are more rounds now. */
      grown() {
        baseline = data.header.baseline;
        size = span();
        drawn = -1;
      },
      /** @param {Frame} frame */
      update(frame) {
        const now = secondsAt(data, frame);
        const from = Math.max(0, data.sums.seconds[frame.round] - 0.45 * size);
        if (drawn !== frame.round) {
          drawn = frame.round;
          const blocks = blocksIn(data, from, size);
          const made = oursBlocks(blocks.length);
          blocks.forEach((one, i) => {
            setAttr(made[i].el, "data-kind", one.kind);
            setAttr(made[i].el, "data-round", one.round);
            setAttr(made[i].el, "data-this", one.round === frame.round || null);
            place(made[i].el, one);
          });
          const each = baseline ? baseline.seconds : 0;
          const first = each ? Math.floor(from / each) : 0;
          const many = each ? Math.min(60, Math.ceil(size / each) + 1) : 0;
          const lone = aloneBlocks(many);
          for (let i = 0; i < many; i++) {
            setAttr(lone[i].el, "data-kind", "verify");
            place(lone[i].el, { at: ((first + i) * each - from) / size, size: each / size });
          }
        }
        heads.forEach((head) =>
          setStyle(head, "transform", `translateX(${((100 * (now - from)) / size).toFixed(2)}%)`),
        );
        setText(oursText, `${count(frame.emitted, "token")} in ${duration(now)}`);
        if (baseline) {
          const tokens = count(Math.floor(now / baseline.seconds), "token");
          setText(aloneText, `${baseline.measured ? "" : "≥ "}${tokens} in the same time`);
        }
        show(alone, Boolean(baseline));
      },
    };
  },
};

function place(el, one) {
  setStyle(el, "left", `${(100 * one.at).toFixed(2)}%`);
  setStyle(el, "width", `${Math.max(0.2, 100 * one.size).toFixed(2)}%`);
}
