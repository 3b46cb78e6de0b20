// Below the cards: one picture of the step. What the draft knows, one pass beside many, the bar on
// which u falls, what is left of p and how it grows to 1, and the caches that are cut back.

import { NONE, rowOf, tokenText } from "./decode.js";
import { h, pool, setAttr, setStyle, setText, show, trimmed } from "./dom.js";
import { number } from "./numbers.js";
import { scaleOf } from "./view_bars.js";
import { cachesView } from "./view_caches.js";
import { distributionRows, evidence, fill, massLeft, pictureAt, rowInQuestion } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const ROWS = 5;

/**
 * p and q of the likeliest tokens at a proposal, what both have and what p has above q; the rest
 * last.
 * @param {Data} data @param {number} row @param {"p" | "q" | "rest"} by of which the most
 */
export function partsAt(data, row, by) {
  const [ids, ps, qs] = ["top", "top_p", "top_q"].map((name) => rowOf(data, "node", name, row));
  const token = data.node.token[row];
  const rows = [];
  ids.forEach((id, i) => {
    if (id === NONE) return;
    const own = id === token && data.node.p[row] >= 0;
    const p = own ? data.node.p[row] : ps[i],
      q = own ? data.node.q[row] : qs[i];
    const text = trimmed(tokenText(data, id));
    rows.push({ id, text, p, q, over: Math.min(p, q), rest: Math.max(0, p - q), x: id === token });
  });
  rows.sort((a, b) => b[by] - a[by]);
  const kept = rows.slice(0, ROWS),
    x = rows.findIndex((one) => one.x);
  if (x >= ROWS) kept[ROWS - 1] = rows[x];
  const left = rows.filter((one) => !kept.includes(one));
  const [pa, pb] = rowOf(data, "node", "tail_p", row),
    [qa, qb] = rowOf(data, "node", "tail_q", row);
  const sum = (/** @type {string} */ name) => left.reduce((all, one) => all + one[name], 0);
  const rest = { p: pa + pb + sum("p"), q: qa + qb + sum("q"), over: qa + pb + sum("over") };
  const others = { ...rest, rest: Math.max(0, rest.p - rest.over), text: "all others", tail: true };
  return [...kept, others];
}

const percent = (/** @type {number} */ x) => `${(100 * Math.min(1, Math.max(0, x))).toFixed(2)}%`;
const line = (/** @type {string} */ kind) => h("div", { class: kind });

/** Rows of p and q: bars on one scale, with the scale's end written under it. */
function rowsOf() {
  const list = h("div", { class: "svp-prows", role: "list" });
  const many = pool(list, () => {
    const parts = Object.fromEntries(
      ["over", "rest", "q"].map((n) => [n, h("i", { class: `svp-r${n}` })]),
    );
    const label = h("bdi", { class: "svp-plab" }),
      value = h("span", { class: "svp-pval" });
    const track = h("div", { class: "svp-ptrack" }, Object.values(parts));
    return {
      el: h("div", { class: "svp-prow", role: "listitem" }, [label, track, value]),
      label,
      value,
      ...parts,
    };
  });
  const axis = [h("span"), h("span")];
  const el = h("div", {}, [list, h("div", { class: "svp-paxis", "aria-hidden": "true" }, axis)]);
  return {
    el,
    /** @param {any[]} rows @param {"q" | "p" | "both"} mode @param {(one: any) => string} say */
    update(rows, mode, say) {
      const end = scaleOf(
        Math.max(
          ...rows.map((one) =>
            mode === "q" ? one.q : Math.max(one.p, mode === "both" ? one.q : 0),
          ),
        ),
      );
      setAttr(el, "data-mode", mode);
      const made = many(rows.length);
      rows.forEach((one, i) => {
        const at = made[i];
        setText(at.label, one.text);
        setAttr(at.el, "data-x", one.x || null);
        setAttr(at.el, "data-tail", one.tail || null);
        setStyle(at.over, "width", percent((mode === "q" ? one.q : one.over) / end));
        setStyle(at.rest, "left", percent(one.over / end));
        setStyle(at.rest, "width", percent(mode === "q" ? 0 : one.rest / end));
        setStyle(at.q, "left", percent(one.q / end));
        setStyle(at.q, "display", mode === "both" ? "" : "none");
        setText(at.value, say(one));
      });
      setText(axis[0], "0");
      setText(axis[1], String(end).replace(/^0\./, "."));
    },
  };
}

/** A bar of length 1, in pieces that stand where the cumulative distribution has them. */
function wholeBar() {
  const pieces = h("div", { class: "svp-pieces" }),
    needle = h("i", { class: "svp-fall" });
  const many = pool(pieces, () => {
    const text = h("bdi");
    return { el: h("div", { class: "svp-piece" }, [text]), text };
  });
  const el = h("div", { class: "svp-wbar" }, [pieces, needle]);
  return {
    el,
    /**
     * @param {Data} data @param {any[]} rows @param {number} hit @param {number} share
     * @param {number} v
     */
    update(data, rows, hit, share, v) {
      const made = many(rows.length);
      rows.forEach((one, i) => {
        const text = trimmed(tokenText(data, one.token));
        setStyle(made[i].el, "left", percent(one.lo * share));
        setStyle(made[i].el, "width", percent(one.p * share));
        setText(made[i].text, one.p * share * 62 > text.length ? text : "");
        setAttr(made[i].el, "data-on", one.token === hit || null);
      });
      setStyle(needle, "display", v >= 0 ? "" : "none");
      if (v >= 0) setStyle(needle, "left", percent(v));
    },
  };
}

function rowsPicture() {
  const title = line("svp-ptitle"),
    rows = rowsOf();
  return {
    el: h("div", { class: "svp-pic svp-pic-rows" }, [title, rows.el]),
    update(data, frame, lines) {
      const row = frame.first + frame.node;
      setText(title, lines[0]);
      rows.update(partsAt(data, row, "q"), "q", (x) => number(x.q));
    },
  };
}

function passesPicture() {
  const lanes = ["ours", "alone"].map((name) => {
    const title = line("svp-ptitle"),
      track = h("div", { class: "svp-plane" });
    const blocks = pool(track, () => ({ el: h("i", { class: "svp-pblock" }) }));
    return { el: h("div", { class: `svp-p${name}` }, [title, track]), title, blocks };
  });
  return {
    el: h(
      "div",
      { class: "svp-pic svp-pic-passes" },
      lanes.map((one) => one.el),
    ),
    update(data, frame, lines) {
      const n = data.round.nodes[frame.round],
        baseline = data.header.baseline?.measured ? data.header.baseline.seconds : 0;
      const timed = baseline > 0 && data.round.verify_seconds[frame.round] > 0;
      const draft = timed ? data.round.draft_seconds[frame.round] : 0.25 * n,
        verify = timed ? data.round.verify_seconds[frame.round] : 1,
        each = timed ? baseline : 1;
      const all = Math.max(draft + verify, (n + 1) * each);
      const lay = (lane, sizes) => {
        let at = 0;
        const made = lane.blocks(sizes.length);
        sizes.forEach(([kind, size], i) => {
          setAttr(made[i].el, "data-kind", kind);
          setStyle(made[i].el, "left", percent(at / all));
          setStyle(made[i].el, "width", percent(size / all));
          setText(made[i].el, kind === "draft" ? "" : kind === "once" ? "1 pass" : String(i + 1));
          at += size;
        });
      };
      setText(lanes[0].title, lines[0]);
      lay(lanes[0], [...(draft > 0 ? [["draft", draft]] : []), ["once", verify]]);
      setText(lanes[1].title, lines[1] ?? "");
      lay(
        lanes[1],
        Array.from({ length: n + 1 }, () => ["each", each]),
      );
      show(lanes[1].el, n > 0);
    },
  };
}

/** The verdict in large letters, and lines that explain it. */
function verdictBox() {
  const verdict = h("b", { class: "svp-verd" }),
    says = [0, 1, 2].map(() => h("div"));
  return {
    el: h("div", { class: "svp-vbox" }, [verdict, ...says]),
    /** @param {string[]} lines */
    update([large, ...lines]) {
      setAttr(verdict, "data-mark", { "✓": "accepted", "✗": "rejected" }[large[0]] ?? null);
      setText(verdict, large);
      says.forEach((one, i) => setText(one, lines[i] ?? ""));
    },
  };
}

function acceptPicture() {
  const green = h("i", { class: "svp-green" }),
    dot = h("i", { class: "svp-u" }),
    label = h("span", { class: "svp-ulab" }),
    top = h("span", { class: "svp-glab" });
  const tower = h("div", { class: "svp-tower", "aria-hidden": "true" }, [green, dot, label, top]);
  const ends = h("div", { class: "svp-tends", "aria-hidden": "true" }, [
    h("span", { text: "1" }),
    h("span", { text: "0" }),
  ]);
  const box = verdictBox();
  const el = h("div", { class: "svp-pic svp-pic-u" }, [ends, tower, box.el]);
  return {
    el,
    update(data, frame, lines, state) {
      const it = evidence(data, frame.first + frame.node),
        hidden = frame.concealed,
        a = Math.min(1, it.a);
      setStyle(green, "height", hidden ? "0" : percent(a));
      setText(top, hidden || a > 0.97 || a < 0.05 ? "" : it.said.a);
      setStyle(top, "bottom", percent(a));
      const shown = it.u >= 0 && (!hidden || state.hint);
      setStyle(dot, "display", shown ? "" : "none");
      setStyle(dot, "bottom", percent(it.u));
      setText(label, shown ? `u ${it.said.u}` : "");
      setStyle(label, "bottom", percent(it.u));
      setAttr(el, "data-odd", frame.step % 2 === 1 || null);
      box.update(lines);
    },
  };
}

function samePicture() {
  const chip = (/** @type {string} */ kind, /** @type {string} */ says) => {
    const word = h("bdi", { class: "svp-word" });
    return {
      word,
      el: h("div", { class: `svp-chip svp-chip-${kind}` }, [h("small", { text: says }), word]),
    };
  };
  const draft = chip("q", "the draft proposed"),
    target = chip("p", "the target's own token"),
    sign = h("b", { class: "svp-sign" }),
    box = verdictBox();
  return {
    el: h("div", { class: "svp-pic svp-pic-same" }, [draft.el, sign, target.el, box.el]),
    update(data, frame, lines) {
      const row = frame.first + frame.node,
        own = data.node.own[row],
        name = own === NONE ? "another one" : trimmed(tokenText(data, own));
      setText(draft.word, trimmed(tokenText(data, data.node.token[row])));
      setText(target.word, frame.concealed ? "?" : name);
      setText(sign, frame.concealed ? "=?" : data.node.verdict[row] === 1 ? "=" : "≠");
      box.update(lines);
    },
  };
}

function enoughPicture() {
  const rows = rowsOf(),
    box = verdictBox();
  return {
    el: h("div", { class: "svp-pic svp-pic-enough" }, [rows.el, box.el]),
    update(data, frame, lines) {
      const row = frame.first + frame.node;
      rows.update(partsAt(data, row, "p"), "p", (x) => number(x.p));
      box.update(lines);
    },
  };
}

function residualPicture() {
  const rows = rowsOf(),
    gathered = wholeBar(),
    grown = wholeBar(),
    titles = [0, 1, 2].map(() => line("svp-ptitle"));
  const el = h("div", { class: "svp-pic svp-pic-residual" }, [
    h("div", { class: "svp-p1" }, [titles[0], rows.el]),
    h("div", { class: "svp-p23" }, [
      h("div", { class: "svp-p2" }, [titles[1], gathered.el]),
      h("div", { class: "svp-p3" }, [titles[2], grown.el]),
    ]),
  ]);
  return {
    el,
    update(data, frame, lines) {
      const r = frame.round,
        row = data.start[r] + data.round.rejected[r],
        mass = massLeft(data, r),
        token = data.round.closing[r];
      titles.forEach((one, i) => setText(one, lines[i]));
      rows.update(partsAt(data, row, "rest"), "both", (x) => (x.rest > 0 ? number(x.rest) : ""));
      let pieces = distributionRows(data, "round", "distribution", r);
      if (!pieces.some((one) => one.token === token)) {
        const lo = data.round.closing_lo[r];
        pieces = [...pieces, { token, lo, p: data.round.closing_hi[r] - lo }];
      }
      gathered.update(data, pieces, NONE, mass, NaN);
      setStyle(grown.el, "--svp-mass", String(mass));
      grown.update(
        data,
        pieces,
        token,
        1,
        data.round.closing_draw[r] === 1 ? data.round.closing_u[r] : NaN,
      );
    },
  };
}

function drawnPicture() {
  const title = line("svp-ptitle"),
    bar = wholeBar(),
    rows = rowsOf();
  return {
    el: h("div", { class: "svp-pic svp-pic-drawn" }, [title, bar.el, rows.el]),
    update(data, frame, lines) {
      const r = frame.round,
        token = data.round.closing[r],
        how = data.round.closing_draw[r];
      const pieces = distributionRows(data, "round", "distribution", r);
      setText(title, lines[0]);
      show(bar.el, how === 1);
      if (how === 1) bar.update(data, pieces, token, 1, data.round.closing_u[r]);
      const shown = pieces.slice(0, ROWS - 1).map((one) => ({
        text: trimmed(tokenText(data, one.token)),
        p: one.p,
        q: 0,
        over: 0,
        rest: one.p,
        x: one.token === token,
      }));
      rows.update(shown, "p", (x) => number(x.p));
    },
  };
}

function cachesPicture(data) {
  const view = cachesView.mount(data),
    title = line("svp-ptitle");
  return {
    el: h("div", { class: "svp-pic svp-pic-caches" }, [title, view.el]),
    update(_, frame, lines) {
      setText(title, lines[0]);
      view.update(frame);
    },
  };
}

/** Why it is exact: what acceptance gives of each token, and what the replacement adds, is p. */
function whyPicture() {
  const rows = rowsOf(),
    title = line("svp-ptitle"),
    says = h("div", { class: "svp-whysays" });
  return {
    el: h("div", { class: "svp-pic svp-pic-why" }, [title, rows.el, says]),
    update(data, frame) {
      const [heading, text] = data.header.hints.why;
      setText(title, heading);
      rows.update(partsAt(data, rowInQuestion(data, frame), "p"), "both", (x) => number(x.p));
      setText(says, fill(data, frame, text));
    },
  };
}

/**
 * @param {Data} data
 * @returns {{ el: any, update: (frame: Frame, state: any) => void }}
 */
export function stagePanel(data) {
  const pictures = {
    rows: rowsPicture(),
    passes: passesPicture(),
    u: acceptPicture(),
    token: samePicture(),
    p: enoughPicture(),
    residual: residualPicture(),
    drawn: drawnPicture(),
    caches: cachesPicture(data),
    why: whyPicture(),
  };
  const el = h(
    "div",
    { class: "svp-panel" },
    Object.values(pictures).map((one) => one.el),
  );
  return {
    el,
    update(frame, state) {
      const why =
        state.why &&
        data.header.hints.decides === "u" &&
        frame.status.length > 0 &&
        frame.seenP &&
        !frame.concealed;
      const { name, lines } = pictureAt(data, frame),
        which = why ? "why" : name;
      for (const [other, one] of Object.entries(pictures)) show(one.el, other === which);
      pictures[which].update(data, frame, lines, state);
      setAttr(el, "data-picture", which);
    },
  };
}
