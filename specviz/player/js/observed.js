// Observed against expected: a bar a cell, a dot with its interval, the total variation beside
// chance.

import { h, pool, setAttr, setBar, setStyle, setText } from "./dom.js";
import { aligned, shown, thousands } from "./numbers.js";

/** The end of the scale that holds all of a sample's rows. @param {any[]} rows */
export function endOf(rows) {
  const most = Math.max(
    ...rows.map((row) =>
      Math.max(
        row.expected,
        row.distribution ?? 0,
        row.seen ?? 0,
        Math.min(row.high ?? 0, 1.5 * row.expected),
      ),
    ),
  );
  return [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8].find((end) => most <= 0.96 * end) ?? 1;
}

function observedRow() {
  const label = h("bdi", { class: "svp-lab" }),
    bar = h("i", { class: "svp-expect" }),
    wrong = h("i", { class: "svp-wrongly" });
  const reach = h("i", { class: "svp-reach" }),
    dot = h("i", { class: "svp-dot" }),
    count = h("span", { class: "svp-count" });
  const el = h("div", { class: "svp-orow", role: "listitem" }, [
    label,
    h("div", { class: "svp-otrack" }, [bar, wrong, reach, dot]),
    count,
  ]);
  return { el, label, bar, wrong, reach, dot, count };
}

const percent = (x) => `${(100 * Math.min(1, Math.max(0, x))).toFixed(2)}%`;

/**
 * Rows of a sample.
 * @returns {{ el: any, update(rows: any[], n: number, withDistribution: boolean): void }}
 */
export function observedBars() {
  const list = h("div", {
    class: "svp-orows",
    role: "list",
    "aria-label": "Observed against expected",
  });
  const many = pool(list, observedRow);
  const axis = [h("span"), h("span"), h("span")];
  const key = {
    expected: h("span", { class: "svp-k-expect", text: "expected: target p" }),
    seen: h("span", { class: "svp-k-dot", text: "● seen, interval (99% all)" }),
    outside: h("span", { class: "svp-k-out", text: "✕ interval misses p" }),
    distribution: h("span", { class: "svp-k-wrongly", text: "exact distribution with the fault" }),
  };
  const el = h("div", { class: "svp-observed" }, [
    list,
    h("div", { class: "svp-orow svp-oaxis", "aria-hidden": "true" }, [
      h("span"),
      h("div", { class: "svp-axis" }, axis),
      h("span"),
    ]),
    h("div", { class: "svp-key" }, Object.values(key)),
  ]);
  return {
    el,
    update(rows, n, withDistribution) {
      const made = many(rows.length),
        end = endOf(rows);
      rows.forEach((row, i) => {
        const one = made[i],
          seen = n > 0;
        setText(one.label, row.word);
        setBar(one.bar, 0, row.expected / end);
        setStyle(one.wrong, "visibility", withDistribution ? "visible" : "hidden");
        setStyle(one.wrong, "left", percent(row.distribution / end));
        for (const part of [one.reach, one.dot])
          setStyle(part, "visibility", seen ? "visible" : "hidden");
        if (seen) {
          setStyle(one.reach, "left", percent(row.low / end));
          setStyle(one.reach, "width", percent((Math.min(end, row.high) - row.low) / end));
          setStyle(one.dot, "left", percent(row.seen / end));
        }
        setAttr(one.el, "data-outside", (seen && row.outside) || null);
        setText(
          one.count,
          seen
            ? aligned(row.seen)
            : withDistribution
              ? aligned(row.distribution)
              : aligned(row.expected),
        );
        const distribution = withDistribution ? `, with the fault ${shown(row.distribution)}` : "";
        setAttr(
          one.el,
          "aria-label",
          seen
            ? `${row.word}: seen ${thousands(row.count)} times, share ${shown(row.seen)}, ` +
                "expected " +
                shown(row.expected) +
                distribution +
                (row.outside ? ", the interval misses p" : "")
            : `${row.word}: expected ${shown(row.expected)}${distribution}`,
        );
      });
      setStyle(key.distribution, "display", withDistribution ? "" : "none");
      setStyle(key.seen, "display", n ? "" : "none");
      setStyle(key.outside, "display", n && rows.some((row) => row.outside) ? "" : "none");
      [0, end / 2, end].forEach((x, i) =>
        setText(axis[i], String(Number(x.toFixed(3))).replace(/^0\./, ".")),
      );
    },
  };
}

/** Where the parts of the gauge of total variation stand, as shares of its width. */
export function gaugeAt({ tv, floor, bound }) {
  const end = 1.25 * Math.max(tv, bound, 1e-9);
  return { floor: floor / end, bound: bound / end, tv: tv / end, above: tv > bound };
}

/** The total variation that was seen, on top of what chance shows. */
export function gauge() {
  const bound = h("i", { class: "svp-bound" }),
    floor = h("i", { class: "svp-floor" }),
    mark = h("i", { class: "svp-dot" });
  const words = h("div", { class: "svp-sub" });
  const strip = h("div", { class: "svp-gauge", "aria-hidden": "true" }, [bound, floor, mark]);
  const el = h("div", { class: "svp-tv" }, [words, strip]);
  return {
    el,
    update(seen, text) {
      const at = seen ? gaugeAt(seen) : null;
      setText(words, text);
      setBar(bound, 0, at ? at.bound : 0);
      setBar(floor, 0, at ? at.floor : 0);
      setStyle(mark, "visibility", at ? "visible" : "hidden");
      if (at) setStyle(mark, "left", percent(at.tv));
      setAttr(el, "data-outside", (at && at.above) || null);
    },
  };
}
