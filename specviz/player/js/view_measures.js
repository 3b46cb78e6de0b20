// (g) Running measures: tokens per pass, alpha and the speed-up, with the last rounds as bars.

import { h, pool, setAttr, setStyle, setText } from "./dom.js";
import { secondsAt } from "./frame.js";
import { count, number } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const ROUNDS = 32;
const BOUND =
  "nothing was measured without drafts: as if each token took a whole verification pass, which " +
  "takes longer than a pass over one token";

/**
 * Measures of the rounds that are over, and of this one as far as it is decided.
 * @param {Data} data @param {Frame} frame
 */
export function measuresAt(data, frame) {
  const over = frame.closing !== "hidden";
  const rounds = frame.round + (over ? 1 : 0);
  const sum = (/** @type {string} */ name) => data.sums[name][rounds];
  const seconds = secondsAt(data, frame);
  const baseline = data.header.baseline;
  return {
    rounds,
    tokens: sum("tokens"),
    perPass: rounds ? sum("tokens") / rounds : NaN,
    alpha: sum("overlaps") ? sum("overlap") / sum("overlaps") : NaN,
    accepted: sum("accepted"),
    proposed: sum("proposed"),
    speedup:
      rounds && baseline && data.sums.seconds[rounds] > 0
        ? (sum("tokens") * baseline.seconds) / data.sums.seconds[rounds]
        : NaN,
    seconds,
  };
}

export const measuresView = {
  name: "measures",
  title: "So far",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const measured = data.header.baseline?.measured;
    const rows = [
      ["tokens per target pass", "emitted tokens / passes, closing tokens included"],
      ["alpha", "mean overlap Σ min(p, q) of the examined proposals"],
      ["accepted / proposed", "of the rounds that are over"],
      [
        measured ? "times faster than the target alone" : "times faster at most (upper bound)",
        measured ? "measured on both sides" : BOUND,
      ],
    ].map(([name, title]) => {
      const value = h("dd"),
        el = h("div", { title }, [h("dt", { text: name }), value]);
      return { el, value };
    });
    const list = h(
      "dl",
      { class: "svp-facts" },
      rows.map((row) => row.el),
    );
    const chart = h("div", { class: "svp-chart", title: "tokens that each pass gave" });
    const bars = pool(chart, () => ({ el: h("i") }));
    let most = 1,
      counted = 0;
    const countMore = () => {
      for (; counted < data.rounds; counted++)
        most = Math.max(most, data.outStart[counted + 1] - data.outStart[counted]);
    };
    countMore();
    const el = h("div", { class: "svp-measures" }, [
      list,
      chart,
      h("div", { class: "svp-key" }, [
        h("span", { class: "svp-k-acc", text: "accepted" }),
        h("span", { class: "svp-k-close", text: "closing token, per round" }),
      ]),
    ]);
    chart.addEventListener("click", (/** @type {any} */ event) => {
      const round = event.target.dataset?.round;
      if (round) player.go(time.start[Number(round)]);
    });
    let drawn = "";
    return {
      el,
      /** There are more rounds now. */
      grown() {
        countMore();
        drawn = "";
      },
      /** @param {Frame} frame */
      update(frame) {
        const now = measuresAt(data, frame);
        setText(rows[0].value, Number.isNaN(now.perPass) ? "–" : now.perPass.toFixed(2));
        setText(rows[1].value, number(now.alpha));
        setText(rows[2].value, `${now.accepted} / ${now.proposed}`);
        setText(
          rows[3].value,
          Number.isNaN(now.speedup) ? "–" : `${measured ? "" : "≤ "}${now.speedup.toFixed(2)}×`,
        );
        const key = `${frame.round},${now.rounds}`;
        if (key === drawn) return;
        drawn = key;
        const from = Math.max(0, Math.min(frame.round - ROUNDS + 6, data.rounds - ROUNDS));
        const many = Math.min(ROUNDS, data.rounds - from);
        bars(many)
          .slice(0, many)
          .forEach((bar, i) => {
            const r = from + i,
              over = r < now.rounds;
            const tokens = data.outStart[r + 1] - data.outStart[r];
            setStyle(bar.el, "height", `${over ? (100 * tokens) / most : 4}%`);
            setAttr(bar.el, "data-round", r);
            setAttr(bar.el, "data-this", r === frame.round || null);
            setAttr(bar.el, "data-over", over || null);
            setAttr(bar.el, "title", over ? `round ${r}: ${count(tokens, "token")}` : `round ${r}`);
            setStyle(bar.el, "--svp-cap", `${100 / Math.max(1, tokens)}%`);
          });
      },
    };
  },
};
