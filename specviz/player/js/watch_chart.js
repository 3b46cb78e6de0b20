// Evidence over samples: e and 1/p on one logarithmic axis, and the line that neither should cross.

import { h, setAttr, setStyle, setText } from "./dom.js";
import { thousands } from "./numbers.js";

const LOW = -2,
  HIGH = 4; // powers of ten that are drawn; what goes beyond runs along the edge

/** Where a number of samples stands, as a share of the width; logarithmic. */
export const acrossAt = (n, { looks, limit }) =>
  Math.log(Math.max(n, looks[0]) / looks[0]) / Math.log(limit / looks[0]);

/**
 * Where evidence stands, as a share of the height from above.
 * @param {number} hundredths of a power of ten
 */
export const heightAt = (hundredths) =>
  (HIGH - Math.min(HIGH, Math.max(LOW, hundredths / 100))) / (HIGH - LOW);

/** A line through looks; gaps where there is nothing to see. */
export function pathThrough(values, options) {
  let out = "",
    pen = "M";
  values.forEach((value, i) => {
    if (value === null || value === undefined) return (pen = "M");
    out +=
      `${pen}${(1000 * acrossAt(options.looks[i], options)).toFixed(1)} ` +
      `${(1000 * heightAt(value)).toFixed(1)}`;
    pen = "L";
  });
  return out;
}

/** Everything that is drawn of a state. */
export function chartAt(options, state) {
  const bound = heightAt((-100 * Math.log(options.alpha)) / Math.LN10);
  const mark = (n) => (n === null ? null : { x: acrossAt(n, options), y: bound });
  return {
    e: pathThrough(state.e, options),
    p: pathThrough(state.p, options),
    bound,
    eMark: mark(state.e_alarm),
    pMark: mark(state.p_alarm),
  };
}

/** The ticks below: powers of ten within the run. */
export const ticksUpTo = ({ looks, limit }) => {
  const ticks = [looks[0]];
  for (let n = 10 ** Math.ceil(Math.log10(3 * looks[0])); n <= 0.3 * limit; n *= 10) ticks.push(n);
  return [...ticks, limit];
};

const percent = (x) => `${(100 * x).toFixed(2)}%`;

/** @param {any} options */
export function evidenceChart(options) {
  const line = (name) =>
    h("svg:path", { class: name, fill: "none", "vector-effect": "non-scaling-stroke" });
  const e = line("svp-eline"),
    p = line("svp-pline");
  const svg = h(
    "svg:svg",
    { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true" },
    [p, e],
  );
  const zone = h("i", { class: "svp-zone" }),
    word = h("span", {
      class: "svp-zoneword",
      text: `alarm: 1/α = ${Math.round(1 / options.alpha)}`,
    });
  const eMark = h("i", { class: "svp-emark" }),
    pMark = h("i", { class: "svp-pmark" });
  const plot = h("div", { class: "svp-plot" }, [zone, svg, word, pMark, eMark]);
  const sides = [4, 2, 0, -2].map((power) => {
    const el = h("span", {
      text: power === 4 ? "10⁴" : power === 2 ? "100" : power === 0 ? "1" : ".01",
    });
    el.style.setProperty("top", percent(heightAt(100 * power)));
    return el;
  });
  const below = ticksUpTo(options).map((n) => {
    const el = h("span", { text: thousands(n) });
    el.style.setProperty("left", percent(acrossAt(n, options)));
    return el;
  });
  const key = h("div", { class: "svp-key" }, [
    h("span", { class: "svp-k-e", text: "e-process" }),
    h("span", { class: "svp-k-p", text: "1 / p-value, looked at again and again" }),
  ]);
  const el = h("div", { class: "svp-evidence" }, [
    h("div", { class: "svp-plotbox" }, [
      h("div", { class: "svp-sides", "aria-hidden": "true" }, sides),
      plot,
    ]),
    h("div", { class: "svp-xaxis", "aria-hidden": "true" }, below),
    h("div", { class: "svp-sub svp-xname", text: "samples so far" }),
    key,
  ]);
  const put = (node, at) => {
    setStyle(node, "visibility", at ? "visible" : "hidden");
    if (!at) return;
    setStyle(node, "left", percent(at.x));
    setStyle(node, "top", percent(at.y));
  };
  return {
    el,
    update(state) {
      const seen = chartAt(options, state);
      setAttr(e, "d", seen.e || "M0 0");
      setAttr(p, "d", seen.p || "M0 0");
      setStyle(zone, "height", percent(seen.bound));
      setStyle(word, "top", percent(seen.bound));
      put(eMark, seen.eMark);
      put(pMark, seen.pMark);
      setText(key.lastChild, `1 / p-value, looked at ${state.p.length} times`);
    },
  };
}
