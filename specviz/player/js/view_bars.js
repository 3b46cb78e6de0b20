// (c) p and q of the token in question: overlap, residual and what is left in the tails.

import { inBlocks } from "./block.js";
import { NONE, rowOf, tokenText } from "./decode.js";
import { h, pool, setAttr, setBar, setClip, setStyle, setText, trimmed, wholeAxis } from "./dom.js";
import { number } from "./numbers.js";
import { distributionRows, massLeft, told } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const ROWS = 8;

/**
 * What the bars show at a frame.
 * @param {Data} data @param {Frame} frame
 * @typedef {{ text: string, p: number, q: number, x: boolean, tail?: boolean, over?: number }} Row
 * @typedef {{ mode: "q" | "both" | "distribution", title: string, rows: Row[], overlap: number,
 *   residual?: boolean, tail: { p: number, q: number, over: number } }} Bars
 * @returns {Bars}
 */
export function barsAt(data, frame) {
  if (frame.phase === "close" || frame.phase === "rollback" || !frame.status.length)
    return closingDistribution(data, frame);
  const node = frame.node >= 0 ? frame.node : 0;
  const row = frame.first + node;
  const ids = rowOf(data, "node", "top", row);
  const p = rowOf(data, "node", "top_p", row),
    q = rowOf(data, "node", "top_q", row);
  const x = data.node.token[row];
  const rows = [];
  const own = { p: data.node.p[row], q: data.node.q[row] }; // of x with all their digits
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === NONE) continue;
    const mine = ids[i] === x && own.p >= 0 && own.q >= 0;
    const both = mine ? own : { p: p[i], q: q[i] };
    rows.push({ text: trimmed(tokenText(data, ids[i])), ...both, x: ids[i] === x });
  }
  const by = (/** @type {any} */ one) => (frame.seenP ? Math.max(one.p, one.q) : one.q);
  rows.sort((a, b) => by(b) - by(a));
  const [pa, pb] = rowOf(data, "node", "tail_p", row);
  const [qa, qb] = rowOf(data, "node", "tail_q", row);
  return {
    mode: frame.seenP ? "both" : "q",
    title: told(data, frame, "title"),
    rows,
    overlap: data.node.overlap[row],
    // where p > q the tail's overlap is q, elsewhere p
    tail: { p: pa + pb, q: qa + qb, over: qa + pb },
  };
}

/** @param {Data} data @param {Frame} frame @returns {Bars} */
function closingDistribution(data, frame) {
  const r = frame.round;
  const residual = data.round.closing_kind[r] === 1 && data.header.judged_by_u;
  const x = data.round.closing[r];
  const hidden = frame.closing === "hidden";
  const rows = distributionRows(data, "round", "distribution", r)
    .map((one) => ({
      text: trimmed(tokenText(data, one.token)),
      p: one.p,
      q: 0,
      x: one.token === x && !hidden,
    }))
    .slice(0, ROWS);
  const seen = rows.reduce((sum, one) => sum + one.p, 0);
  return {
    mode: "distribution",
    title: told(data, frame, "title"),
    rows,
    residual,
    overlap: residual && !inBlocks(data) ? 1 - massLeft(data, r) : NaN,
    tail: { p: Math.max(0, 1 - seen), q: 0, over: 0 },
  };
}

/** The end of the scale: the smallest round number that holds every bar. @param {number} most */
export function scaleOf(most) {
  return [0.1, 0.2, 0.5].find((end) => most <= end) ?? 1;
}

function barRow() {
  const label = h("bdi", { class: "svp-lab" });
  const over = h("i", { class: "svp-over" }),
    q = h("i", { class: "svp-q" });
  const p = h("i", { class: "svp-p" }),
    rest = h("i", { class: "svp-rest" });
  const qn = h("span", { class: "svp-qn" }),
    pn = h("span", { class: "svp-pn" });
  const el = h("div", { class: "svp-row", role: "listitem" }, [
    label,
    h("div", { class: "svp-track" }, [over, q, p, rest]),
    h("div", { class: "svp-num" }, [qn, pn]),
  ]);
  return { el, label, over, q, p, rest, qn, pn };
}

export const barsView = {
  name: "bars",
  title: "p and q",
  /** @param {Data} data */
  mount(data) {
    const title = h("div", { class: "svp-sub" });
    const list = h("div", { class: "svp-rows", role: "list", "aria-label": "Probabilities" });
    const rows = pool(list, barRow);
    const axis = [h("span"), h("span"), h("span")];
    const massOver = h("i", { class: "svp-mover" }),
      massRest = h("i", { class: "svp-mrest" });
    const mass = h("div", { class: "svp-mass", "aria-hidden": "true" }, [massOver, massRest]);
    const masses = wholeAxis();
    const overText = h("span", { class: "svp-k-over" }),
      restText = h("span", { class: "svp-k-rest" });
    const key = h("div", { class: "svp-key" }, [overText, restText]);
    const el = h("div", { class: "svp-bars" }, [
      title,
      list,
      h("div", { class: "svp-axis", "aria-hidden": "true" }, axis),
      mass,
      masses,
      key,
    ]);
    rows(ROWS + 1);
    return {
      el,
      /** @param {Frame} frame */
      update(frame) {
        const seen = barsAt(data, frame);
        setAttr(el, "data-mode", seen.mode);
        setAttr(el, "data-residual", seen.residual || null);
        setText(title, seen.title);
        const shown = rows(ROWS + 1);
        /** @type {Row[]} */
        const all = [...seen.rows, { text: "all others", ...seen.tail, x: false, tail: true }];
        const end = scaleOf(
          Math.max(...all.map((one) => Math.max(seen.mode === "q" ? 0 : one.p, one.q))),
        );
        shown.forEach((one, i) => {
          const it = i === ROWS ? all[all.length - 1] : all[i]?.tail ? null : all[i];
          setStyle(one.el, "visibility", it ? "visible" : "hidden");
          if (it) fillRow(one, it, seen, end);
        });
        [0, end / 2, end].forEach((x, i) => setText(axis[i], String(x).replace(/^0\./, ".")));
        const known = seen.overlap >= 0 && seen.mode !== "q";
        for (const one of [mass, masses]) setStyle(one, "visibility", known ? "visible" : "hidden");
        setStyle(key, "visibility", known ? "visible" : "hidden");
        if (known) {
          setBar(massOver, 0, seen.overlap);
          setClip(massRest, seen.overlap, 1 - seen.overlap);
          setText(overText, `overlap Σ min(p, q) = ${number(seen.overlap)}`);
          setText(restText, `residual mass = TV = ${number(1 - seen.overlap)}`);
        }
      },
    };
  },
};

/** @param {any} one @param {Row} it @param {Bars} bars @param {number} end */
function fillRow(one, it, { mode, residual }, end) {
  setText(one.label, it.text);
  setAttr(one.el, "data-x", it.x || null);
  setAttr(one.el, "data-tail", it.tail || null);
  const p = mode === "q" ? 0 : it.p;
  const over = it.over ?? Math.min(p, it.q);
  setBar(one.over, 0, mode === "both" ? over / end : 0);
  setBar(one.q, 0, mode === "distribution" ? 0 : it.q / end);
  setBar(one.p, 0, residual ? 0 : p / end);
  if (residual) setClip(one.rest, 0, p / end);
  else setClip(one.rest, over / end, mode === "both" ? Math.max(0, p - over) / end : 0);
  setText(one.qn, mode === "distribution" ? "" : number(it.q));
  setText(one.pn, mode === "q" ? "" : number(p));
}
