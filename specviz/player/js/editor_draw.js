// One draw as it goes: the proposal, the comparison, the verdict, and what comes instead.

import { h, pool, setAttr, setBar, setStyle, setText } from "./dom.js";
import { stepSaid } from "./editor_words.js";
import { shown } from "./numbers.js";

/**
 * What is seen of the draw at the state's step.
 * @param {any} state
 * @returns {{ proposal: any, test: any, closing: any, token: number, how: string, title: string,
 *   text: string }}
 */
export function oneDrawAt(state) {
  const said = stepSaid(state),
    nothing = { proposal: null, test: null, closing: null, token: -1, how: "", ...said };
  const one = state.one;
  if (!one) return nothing;
  const { kind, i } = one.steps[one.step],
    { happened } = one,
    it = happened.tries[i];
  const compared = kind === "compare" || kind === "judge" || kind === "close";
  const judged = kind === "judge" || kind === "close",
    match = state.way === "match";
  const proposal = it && {
    distribution: it.span?.distribution ?? it.q,
    u: it.span?.u ?? NaN,
    chosen: it.x,
    index: i,
    of: happened.tries.length,
  };
  const test =
    it && compared && !match
      ? { a: Math.min(1, it.chance), u: judged ? it.u : NaN, kept: it.kept }
      : null;
  const end = happened.closing,
    last = one.step === one.steps.length - 1;
  const closed = end && (kind === "close" || (match && kind === "judge"));
  const closing = closed
    ? {
        distribution: end.distribution,
        u: end.u,
        chosen: end.token,
        residual: end.kind === "correction",
      }
    : null;
  const how = !last
    ? ""
    : happened.kept
      ? "accepted"
      : end?.kind === "plain"
        ? "plain"
        : "correction";
  return {
    ...nothing,
    proposal: proposal ?? null,
    test,
    closing,
    token: last ? happened.token : -1,
    how,
  };
}

/** The tokens' intervals of the cumulative distribution. */
export function piecesOf(distribution, words, chosen) {
  let lo = 0;
  const mass = distribution.reduce((a, b) => a + b, 0) || 1;
  return distribution.map((x, i) => {
    const one = { word: words[i], lo: lo / mass, size: x / mass, on: i === chosen };
    lo += x;
    return one;
  });
}

const GLYPHS = { accepted: "✓ accepted", correction: "↻ instead", plain: "drawn from p" };

function distributionRuler(name) {
  const title = h("div", { class: "svp-sub" }),
    pieces = h("div", { class: "svp-pieces" }),
    needle = h("i", { class: "svp-needle" });
  const many = pool(pieces, () => {
    const text = h("bdi");
    return { el: h("div", { class: "svp-piece" }, [text]), text };
  });
  const el = h("div", { class: "svp-distribution", "data-step": name }, [
    title,
    h("div", { class: "svp-ruler" }, [pieces, needle]),
  ]);
  return {
    el,
    /** @param {any} seen distribution, u, chosen; null to clear it */
    update(seen, words, heading, colour) {
      setText(title, heading);
      setAttr(el, "data-colour", colour);
      setAttr(el, "data-empty", seen ? null : true);
      const laid = seen ? piecesOf(seen.distribution, words, seen.chosen) : [],
        made = many(laid.length);
      laid.forEach((one, i) => {
        setStyle(made[i].el, "left", `${(100 * one.lo).toFixed(2)}%`);
        setStyle(made[i].el, "width", `${(100 * one.size).toFixed(2)}%`);
        setStyle(made[i].el, "visibility", one.size > 0 ? "visible" : "hidden");
        setText(made[i].text, one.size > 0.055 ? one.word : "");
        setAttr(made[i].el, "data-on", one.on || null);
        setAttr(made[i].el, "title", `${one.word}: ${shown(one.size)}`);
      });
      const at = seen && Number.isFinite(seen.u);
      setStyle(needle, "visibility", at ? "visible" : "hidden");
      if (at) setStyle(needle, "left", `${(100 * seen.u).toFixed(2)}%`);
    },
  };
}

export function mountDraw() {
  const says = h("p", { class: "svp-caption svp-step1", "data-testid": "svp-step" }),
    title = h("b"),
    text = h("span");
  says.append(title, " ", text);
  const drawn = distributionRuler("propose"),
    instead = distributionRuler("close");
  const keep = h("i", { class: "svp-keep" }),
    drop = h("i", { class: "svp-drop" }),
    needle = h("i", { class: "svp-needle" });
  const keepText = h("span", { class: "svp-keept" }),
    dropText = h("span", { class: "svp-dropt" });
  const testTitle = h("div", { class: "svp-sub" });
  const test = h("div", { class: "svp-test", "data-step": "judge" }, [
    testTitle,
    h("div", { class: "svp-ruler" }, [keep, drop, keepText, dropText, needle]),
    h("div", { class: "svp-ends", "aria-hidden": "true" }, [
      h("span", { text: "0" }),
      h("span", { text: "1" }),
    ]),
  ]);
  const chip = h("bdi", { class: "svp-w" }),
    how = h("span");
  const out = h("div", { class: "svp-out", "data-testid": "svp-emitted" }, [
    h("span", { class: "svp-sub", text: "emitted:" }),
    chip,
    how,
  ]);
  const el = h("div", { class: "svp-draw svp-edraw" }, [says, drawn.el, test, instead.el, out]);
  return {
    el,
    update(state) {
      const seen = oneDrawAt(state),
        { proposal, closing } = seen,
        match = state.way === "match";
      setText(title, `${seen.title}:`);
      setText(text, seen.text);
      const nth =
        proposal && proposal.of > 1 ? `, candidate ${proposal.index + 1} of ${proposal.of}` : "";
      const from =
        proposal && Number.isNaN(proposal.u) ? "draft q, one-hot" : "draft q, stacked from 0 to 1";
      drawn.update(proposal, state.words, `1 · ${from}${nth}`, "q");
      setText(
        testTitle,
        match
          ? "2 · no u: accepted if the target draws the same"
          : "2 · u against the probability of keeping it",
      );
      setAttr(test, "data-empty", seen.test ? null : true);
      const a = seen.test?.a ?? 0,
        judged = seen.test && Number.isFinite(seen.test.u);
      setBar(keep, 0, a);
      setBar(drop, a, seen.test ? 1 - a : 0);
      setText(keepText, seen.test && a > 0.2 ? `accepted ✓ below ${shown(a)}` : "");
      setText(dropText, seen.test && a < 0.75 ? "rejected ✗" : "");
      setStyle(needle, "visibility", judged ? "visible" : "hidden");
      if (judged) setStyle(needle, "left", `${(100 * seen.test.u).toFixed(2)}%`);
      const instruction = match
        ? "3 · target p, stacked from 0 to 1"
        : closing && !closing.residual
          ? "3 · target p, stacked from 0 to 1"
          : "3 · if rejected: the residual, stacked from 0 to 1";
      instead.update(closing, state.words, instruction, closing?.residual ? "r" : "p");
      setStyle(out, "visibility", seen.token >= 0 ? "visible" : "hidden");
      setText(chip, seen.token >= 0 ? state.words[seen.token] : "");
      setAttr(chip, "data-mark", seen.how || null);
      setText(how, GLYPHS[seen.how] ?? "");
      const draws = state.one ? `draw number ${state.one.number}` : "";
      setAttr(el, "title", draws || null);
      setAttr(el, "data-draw", state.one ? state.one.number : null);
    },
  };
}
