// (d) The draw: u on [0, 1] against the acceptance, then the inverse CDF of the distribution that
// the next
// token is drawn from. Both can be dragged: what if the draw had been another one? Where no u
// decides, the races or likeliest tokens that do.

import { board, closingRace, draftRace, targetRace, topTwo } from "./contests.js";
import { NONE, tokenText } from "./decode.js";
import { h, pool, setAttr, setBar, setStyle, setText, show, trimmed } from "./dom.js";
import { blockSaid, oneByOne, walkAt, walked } from "./walk.js";
import { number, quoted } from "./numbers.js";
import { evidence, distributionRows, fill, told } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */
/** @typedef {{ u?: number, v?: number } | null} WhatIf */

/**
 * What the draws at a frame were, or would be with other numbers.
 * @param {Data} data @param {Frame} frame @param {WhatIf} [whatIf]
 * @param {boolean} [hint] tell u even while the verdict is concealed
 * @returns {any} test: {a, u, kept} or null; distribution: {rows, v, chosen, colour, title} or
 *   null; contests:
 *   what decided without a u; walk: what another u would lead to; says
 */
export function drawAt(data, frame, whatIf = null, hint = false) {
  if (frame.phase === "draft") return draftDraw(data, frame);
  if (frame.phase === "verify") return { says: told(data, frame, "says") };
  if (frame.phase === "decide") return testDraw(data, frame, whatIf, hint);
  return closingDraw(data, frame, whatIf);
}

function draftDraw(data, frame) {
  const row = frame.first + frame.node,
    says = told(data, frame, "says"),
    how = data.node.q_draw[row];
  if (how === 0) return { says };
  if (how === 2) return { contests: [draftRace(data, row)], says };
  return { distribution: draftDistribution(data, row, "draft q, stacked from 0 to 1"), says };
}

/** The draft's own inverse CDF: where its draw fell. */
function draftDistribution(data, row, title) {
  const rows = distributionOf(data, row, "top", "top_q");
  const chosen = rows.find((one) => one.token === data.node.token[row]) ?? null;
  return { rows, v: data.node.q_u[row], colour: "q", title, chosen };
}

function distributionOf(data, row, ids, p) {
  const wide = data.width[ids],
    rows = [];
  for (let i = row * wide; i < (row + 1) * wide; i++)
    if (data.node[ids][i] !== NONE && data.node[p][i] > 0)
      rows.push({ token: data.node[ids][i], p: data.node[p][i], lo: data.node.top_lo[i] });
  return rows;
}

function testDraw(data, frame, whatIf, hint) {
  const row = frame.first + frame.node,
    it = evidence(data, row);
  if (!data.header.judged_by_u) return contested(data, frame, row);
  const u = whatIf?.u ?? it.u;
  const changed = whatIf?.u !== undefined;
  // a block's position passes or not; what is kept the last of them decides
  const kept = changed || !oneByOne(data) ? u < it.a : it.kept;
  const test = {
    a: it.a,
    u: frame.concealed ? NaN : u,
    real: frame.concealed ? NaN : it.u,
    kept,
    changed,
  };
  if (frame.concealed)
    return {
      test: { ...test, a: NaN },
      says: hint ? fill(data, frame, data.header.hints.hint) : told(data, frame, "saysAsked"),
    };
  if (changed) return supposed(data, frame, whatIf, test, it, row);
  const says = told(data, frame, "says");
  const mine = data.round.closing_kind[frame.round] === 1 && closes(data, frame);
  if (it.kept || !mine) return { test, says };
  const rows = withClosing(data, frame, restOf(data, frame, row), true);
  if (!rows.length) return { test, says };
  const real = data.round.closing_u[frame.round],
    moved = whatIf?.v !== undefined;
  const v = whatIf?.v ?? real;
  const chosen = moved
    ? at(rows, v)
    : (rows.find((r) => r.token === data.round.closing[frame.round]) ?? null);
  const distribution = { rows, v, real, chosen, colour: "r", title: REST };
  if (!moved) return { test, distribution, says };
  return {
    test,
    distribution,
    says:
      `What if the residual's draw were ${number(v)}? ${name(data, chosen)} would come ` +
      "instead.",
  };
}

const REST = "residual, stacked from 0 to 1: the draw picks the new token";

/** Whether a verdict is the one that the round's residual follows. */
function closes(data, frame) {
  return (
    frame.node === (oneByOne(data) ? data.round.rejected[frame.round] : frame.status.length - 1)
  );
}

/** The residual after a rejection; under block verification a share of p goes into it. */
function restOf(data, frame, row) {
  return oneByOne(data)
    ? distributionRows(data, "node", "residual", row)
    : distributionRows(data, "round", "distribution", frame.round);
}

/** With another u: the verdict, and the walk from there on, as far as it is on record. */
function supposed(data, frame, whatIf, test, it, row) {
  const token = quoted(it.text),
    { u, kept } = test;
  const asks = `What if u were ${number(u)}`;
  if (!oneByOne(data)) return { test, says: blockSaid(data, frame, u) };
  const walk = walkAt(data, frame, u),
    follows = walked(data, frame, walk);
  if (kept === it.kept && whatIf.v === undefined && kept)
    return { test, says: `${asks}? ${token} would still be accepted: nothing else would change.` };
  const first = kept
    ? `${token} would be accepted, and the round would go on.`
    : `${token} would be rejected`;
  if (walk.distribution !== "residual")
    return { test, walk, says: [`${asks}? ${first}${kept ? "" : "."}`, follows].join(" ") };
  // nobody is left to try: what is left of p after the last rejection closes the round
  const last = frame.first + walk.node,
    drawn = walk.placed && data.round.closing_draw[frame.round] === 1;
  const rows = walk.same
    ? withClosing(data, frame, distributionRows(data, "node", "residual", last), true)
    : distributionRows(data, "node", "residual", last);
  if (!rows.length)
    return { test, walk, says: `${asks}? ${first}${kept ? "" : "."} ${follows}`.trim() };
  const real = drawn ? data.round.closing_u[frame.round] : NaN,
    moved = whatIf.v !== undefined;
  const v = whatIf.v ?? real,
    chosen = at(rows, v),
    distribution = { rows, v, real, chosen, colour: "r", title: REST };
  const its = quoted(tokenText(data, data.node.token[last]));
  if (last === row && kept === it.kept && !moved)
    return {
      test,
      distribution,
      walk,
      says: `${asks}? ${token} would still be rejected: nothing else would change.`,
    };
  if (last === row && moved)
    return {
      test,
      distribution,
      walk,
      says:
        `${asks} and the residual's draw were ${number(v)}? ${first}, and ` +
        `${name(data, chosen)} would come instead.`,
    };
  const ending = moved
    ? `If the residual's draw were ${number(v)}, ${name(data, chosen)} would come instead.`
    : drawn
      ? `The residual's draw there was ${number(v)}: ${name(data, chosen)} would come instead.`
      : `A token drawn from the residual after ${its} would come instead; the number behind ` +
        "that draw is not on record: drag it.";
  return {
    test,
    distribution,
    walk,
    says: [`${asks}? ${first}${kept ? "" : "."}`, follows, ending].filter(Boolean).join(" "),
  };
}

/** A proposal that was compared with the target's own token. */
function contested(data, frame, row) {
  const distribution =
    data.node.q_draw[row] === 1
      ? draftDistribution(data, row, "the proposal: the draft's own draw from q")
      : undefined;
  if (frame.concealed)
    return {
      distribution,
      contests: [draftRace(data, row)],
      says: told(data, frame, "saysAsked"),
    };
  const race =
    targetRace(data, row) ?? (data.header.rule === "greedy" ? topTwo(data, "node", row) : null);
  return { distribution, contests: [race, draftRace(data, row)], says: told(data, frame, "says") };
}

function closingDraw(data, frame, whatIf) {
  const r = frame.round,
    how = data.round.closing_draw[r],
    happened = told(data, frame, "says");
  if (how === 0) return { contests: [topTwo(data, "round", r)], says: happened };
  if (how === 2) return { contests: [closingRace(data, r)], says: happened };
  const rows = withClosing(data, frame, distributionRows(data, "round", "distribution", r), true);
  const real = data.round.closing_u[r];
  const changed = whatIf?.v !== undefined;
  const v = whatIf?.v ?? real;
  const chosen = changed
    ? at(rows, v)
    : (rows.find((one) => one.token === data.round.closing[r]) ?? null);
  const residual = data.round.closing_kind[r] === 1 && data.header.judged_by_u;
  const distribution = {
    rows,
    v,
    real,
    chosen,
    changed,
    colour: residual ? "r" : "p",
    title: residual ? "residual, stacked from 0 to 1" : "target p, stacked from 0 to 1",
  };
  return {
    distribution,
    says: changed
      ? `What if the draw were ${number(v)}? Then ${name(data, chosen)} would be emitted.`
      : happened,
  };
}

/**
 * The rows of a distribution, the token that was drawn among them even if it is not one of the
 * likeliest.
 */
function withClosing(data, frame, rows, mine) {
  const r = frame.round,
    token = data.round.closing[r];
  if (!mine || rows.some((one) => one.token === token)) return rows;
  const lo = data.round.closing_lo[r],
    p = data.round.closing_hi[r] - lo;
  return p > 0 ? [...rows, { token, p, lo }] : rows;
}

function at(rows, v) {
  return rows.find((one) => one.lo <= v && v < one.lo + one.p) ?? null;
}

function name(data, chosen) {
  return chosen ? quoted(tokenText(data, chosen.token)) : "a token that is not listed";
}

/** What another u would mean, for whoever hears the slider. */
function verdictAt(data, kept, changed) {
  if (!oneByOne(data))
    return changed
      ? `test would ${kept ? "pass" : "not pass"}`
      : `test ${kept ? "passes" : "does not pass"}`;
  return `${changed ? "would be " : ""}${kept ? "accepted" : "rejected"}`;
}

function piece() {
  const text = h("bdi");
  return { el: h("div", { class: "svp-piece" }, [text]), text };
}

/**
 * A slider under a ruler.
 * @param {string} label
 * @param {(x: number) => void} moved
 * @param {() => void} settled
 */
function slider(label, moved, settled) {
  const el = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.001,
    class: "svp-drag",
    "aria-label": label,
    title: label,
  });
  el.addEventListener("input", () => moved(Math.min(Number(el.value), 0.9999)));
  el.addEventListener("change", settled);
  return el;
}

export const drawView = {
  name: "draw",
  title: "The draw",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const keep = h("i", { class: "svp-keep" }),
      drop = h("i", { class: "svp-drop" });
    const keepText = h("span", { class: "svp-keept" }),
      dropText = h("span", { class: "svp-dropt" });
    const ghost = h("i", { class: "svp-needle svp-real" }),
      needle = h("i", { class: "svp-needle" });
    const ruler = h("div", { class: "svp-ruler" }, [keep, drop, keepText, dropText, ghost, needle]);
    let latest = "";
    const tell = () => player.tell?.(latest);
    const drag = slider(
      "Drag u: what if the draw had been another one?",
      (u) => player.whatIf({ u }),
      tell,
    );
    const test = h("div", { class: "svp-test" }, [ruler, drag, ends()]);

    const distributionTitle = h("div", { class: "svp-sub" });
    const pieces = h("div", { class: "svp-pieces" });
    const many = pool(pieces, piece);
    const distributionGhost = h("i", { class: "svp-needle svp-real" }),
      distributionNeedle = h("i", { class: "svp-needle" });
    const distributionDrag = slider(
      "Drag the draw: what if it had fallen elsewhere?",
      (v) => player.whatIf({ v }),
      tell,
    );
    const distribution = h("div", { class: "svp-distribution" }, [
      distributionTitle,
      h("div", { class: "svp-ruler" }, [pieces, distributionGhost, distributionNeedle]),
      distributionDrag,
      ends(),
    ]);

    const boards = [board(), board()];
    const says = h("div", { class: "svp-says" });
    const badge = h("b", { class: "svp-badge", text: "not what happened" });
    const reset = h("button", {
      type: "button",
      class: "svp-reset",
      text: "back to what happened",
    });
    reset.addEventListener("click", () => player.whatIf(null));
    const unreal = h("div", { class: "svp-wif" }, [badge, reset]);
    const el = h("div", { class: "svp-draw" }, [
      test,
      boards[0].el,
      boards[1].el,
      distribution,
      unreal,
      says,
    ]);

    return {
      el,
      /** @param {Frame} frame @param {any} state */
      update(frame, state) {
        const seen = drawAt(data, frame, state.whatIf, state.hint);
        const changed = Boolean(state.whatIf);
        setAttr(el, "data-whatif", changed || null);
        show(test, Boolean(seen.test));
        show(distribution, Boolean(seen.distribution));
        boards.forEach((one, i) => one.update(seen.contests?.[i] ?? null));
        show(unreal, changed);
        setText(says, seen.says);
        latest = seen.says;
        if (seen.test) {
          const { a, u, real, kept } = seen.test,
            hidden = Number.isNaN(u);
          const share = Math.min(1, a) || 0;
          setBar(keep, 0, share);
          setBar(drop, share, Number.isNaN(a) ? 0 : 1 - share);
          const whole = oneByOne(data);
          setText(
            keepText,
            a > 0.12
              ? whole
                ? `accepted ✓ below ${number(a)}`
                : `passes ✓ below h = ${number(a)}`
              : "",
          );
          setText(dropText, a < 0.8 ? (whole ? "rejected ✗" : "does not pass ✗") : "");
          needles(needle, ghost, u, real, hidden);
          setAttr(needle, "data-kept", kept);
          show(drag, !hidden);
          if (!hidden) slide(drag, u);
          setAttr(
            drag,
            "aria-valuetext",
            hidden ? null : `u = ${number(u)}: ${verdictAt(data, kept, changed)}`,
          );
        }
        if (seen.distribution)
          fillDistribution(data, seen.distribution, {
            distributionTitle,
            many,
            distributionNeedle,
            distributionGhost,
            distributionDrag,
            distribution,
          });
      },
    };
  },
};

function fillDistribution(data, seen, parts) {
  setText(parts.distributionTitle, seen.title);
  setAttr(parts.distribution, "data-colour", seen.colour);
  const shown = parts.many(seen.rows.length);
  seen.rows.forEach((one, i) => {
    setStyle(shown[i].el, "left", `${(100 * one.lo).toFixed(2)}%`);
    setStyle(shown[i].el, "width", `${(100 * one.p).toFixed(2)}%`);
    setText(shown[i].text, one.p > 0.07 ? trimmed(tokenText(data, one.token)) : "");
    setAttr(shown[i].el, "data-on", (seen.chosen && one.token === seen.chosen.token) || null);
    setAttr(shown[i].el, "title", `${trimmed(tokenText(data, one.token))}: ${number(one.p)}`);
  });
  needles(
    parts.distributionNeedle,
    parts.distributionGhost,
    seen.v,
    seen.real ?? seen.v,
    Number.isNaN(seen.v),
  );
  show(parts.distributionDrag, seen.colour !== "q");
  slide(parts.distributionDrag, Number.isNaN(seen.v) ? 0.5 : seen.v);
  setAttr(
    parts.distributionDrag,
    "aria-valuetext",
    Number.isNaN(seen.v) ? "not on record" : `${number(seen.v)}: ${name(data, seen.chosen)}`,
  );
}

function needles(needle, ghost, x, real, hidden) {
  setStyle(needle, "visibility", hidden ? "hidden" : "visible");
  if (!hidden) setBarAt(needle, x);
  const apart = !hidden && Number.isFinite(real) && Math.abs(real - x) > 1e-6;
  setStyle(ghost, "visibility", apart ? "visible" : "hidden");
  if (apart) setBarAt(ghost, real);
}

function setBarAt(node, x) {
  setStyle(node, "transform", `translateX(${(100 * x).toFixed(2)}%)`);
}

function slide(input, x) {
  const text = x.toFixed(3);
  if (input.value !== text) input.value = text;
}

function ends() {
  return h("div", { class: "svp-ends", "aria-hidden": "true" }, [
    h("span", { text: "0" }),
    h("span", { text: "1" }),
  ]);
}
