// (h) The tree of proposals with its accepted path, and the attention mask of its one pass.

import { NONE, tokenText } from "./decode.js";
import { h, setAttr, setText, trimmed } from "./dom.js";
import { pathTo } from "./frame.js";
import { GLYPHS } from "./view_phase.js";
import { oneByOne, walkAt } from "./walk.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const ACROSS = 124, DOWN = 25, HIGH = 21, ROOT = 66;

/**
 * Where each proposal of a round stands: leaves below each other, parents beside their middle.
 * @param {Data} data @param {number} round
 * @returns {{ x: number[], y: number[], leaves: number, levels: number, rootY: number }}
 */
export function layout(data, round) {
  const first = data.start[round], n = data.round.nodes[round];
  const children = Array.from({ length: n + 1 }, () => /** @type {number[]} */ ([]));
  for (let i = 0; i < n; i++) {
    const parent = data.node.parent[first + i];
    children[parent === NONE ? n : parent].push(i);
  }
  const x = new Array(n + 1).fill(0), y = new Array(n + 1).fill(0);
  let leaves = 0, levels = 0;
  // parents come before children, so the deepest are placed by walking in order of drawing
  const place = (/** @type {number} */ i) => {
    const stack = [[i, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1], [at, next] = top;
      if (next < children[at].length) {
        top[1]++;
        stack.push([children[at][next], 0]);
        continue;
      }
      const own = children[at];
      x[at] = at === n ? 0 : data.depth[first + at] + 1;
      levels = Math.max(levels, x[at]);
      y[at] = own.length ? (y[own[0]] + y[own[own.length - 1]]) / 2 : leaves++;
      stack.pop();
    }
  };
  place(n);
  return { x, y, leaves: Math.max(1, leaves), levels, rootY: y[n] };
}

/**
 * Row i of the mask: which proposals number i may look at (its ancestors and itself).
 * @param {Data} data @param {Frame} frame
 * @returns {boolean[][]}
 */
export function maskOf(data, frame) {
  const n = data.round.nodes[frame.round];
  return Array.from({ length: n }, (_, i) => {
    const seen = new Set(pathTo(data, frame, i));
    return Array.from({ length: n }, (_, j) => seen.has(j));
  });
}

export const treeView = {
  name: "tree",
  title: "The tree and its attention mask",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const tree = h("div", { class: "svp-scroll", tabindex: 0, role: "region", "aria-label": "Tree of proposals" });
    const mask = h("div", { class: "svp-mask" });
    const note = h("div", { class: "svp-sub", text: "In the one pass each proposal sees the text so far, its own ancestors and itself: a row per proposal." });
    const badge = h("b", { class: "svp-badge", text: "not what happened" });
    const el = h("div", { class: "svp-tree" }, [tree, h("div", { class: "svp-masked" }, [h("div", {}, [badge, note]), mask])]);
    let drawn = -1;
    /** @type {any[]} */
    let nodes = [];
    /** @type {any[]} */
    let edges = [];
    /** @type {any[]} */
    let rows = [];

    const build = (/** @type {Frame} */ frame) => {
      const n = data.round.nodes[frame.round];
      const at = layout(data, frame.round);
      const px = (/** @type {number} */ i) => 4 + (at.x[i] ? ROOT + (at.x[i] - 1) * ACROSS : 0), py = (/** @type {number} */ i) => 4 + at.y[i] * DOWN;
      const width = ROOT + at.levels * ACROSS - 14, height = at.leaves * DOWN + 4;
      edges = [], nodes = [];
      const svg = h("svg:svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Tree of ${n} proposals` });
      const root = h("svg:text", { x: px(n) + 4, y: py(n) + 15, class: "svp-roottext", text: "text" });
      for (let i = 0; i < n; i++) {
        const parent = data.node.parent[frame.first + i], up = parent === NONE ? n : parent;
        const x0 = px(up) + (up === n ? ROOT - 26 : ACROSS - 22), x1 = px(i), y0 = py(up) + HIGH / 2, y1 = py(i) + HIGH / 2;
        const edge = h("svg:path", { d: `M${x0} ${y0}C${x0 + 12} ${y0} ${x1 - 12} ${y1} ${x1} ${y1}`, class: "svp-edge" });
        edges.push(edge);
      }
      svg.append(root, ...edges);
      for (let i = 0; i < n; i++) {
        const glyph = h("svg:text", { x: px(i) + ACROSS - 38, y: py(i) + 15, class: "svp-tg" });
        const text = trimmed(tokenText(data, data.node.token[frame.first + i]));
        const short = text.length > 9 ? text.slice(0, 8) + "…" : text;
        const group = h("svg:g", { class: "svp-tn", "data-n": i }, [
          h("svg:title", { text: `${text}: p ${data.node.p[frame.first + i].toPrecision(3)}, q ${data.node.q[frame.first + i].toPrecision(3)}` }),
          h("svg:rect", { x: px(i), y: py(i), width: ACROSS - 22, height: HIGH, rx: 4 }),
          h("svg:text", { x: px(i) + 6, y: py(i) + 15, text: short }), glyph,
        ]);
        nodes.push({ group, glyph });
        svg.append(group);
      }
      tree.replaceChildren(svg);
      el.style.setProperty("--svp-leaves", String(at.leaves));
      mask.style.setProperty("--svp-n", String(n));
      rows = maskOf(data, frame).map((row) => row.map((on) => h("i", { "data-on": on })));
      mask.replaceChildren(...rows.flat());
    };
    tree.addEventListener("click", (/** @type {any} */ event) => {
      const hit = event.target.closest?.("[data-n]");
      if (!hit) return;
      const node = Number(hit.dataset.n), round = player.frame.round;
      player.go(time.step({ round, node, phase: data.node.verdict[data.start[round] + node] ? "decide" : "draft" }));
    });
    return {
      el,
      /** @param {Frame} frame @param {any} state */
      update(frame, state) {
        if (drawn !== frame.round) build(frame);
        drawn = frame.round;
        const asked = state.whatIf?.u !== undefined && frame.phase === "decide" && oneByOne(data);
        const would = new Map(asked ? walkAt(data, frame, state.whatIf.u).told.map((one) => [one.node, one.kept]) : []);
        setAttr(el, "data-whatif", asked || null);
        frame.status.forEach((real, i) => {
          const status = asked && would.has(i) ? (would.get(i) ? "accepted" : "rejected") : real;
          setAttr(nodes[i].group, "data-would", would.has(i) || null);
          setAttr(nodes[i].group, "data-status", status);
          setAttr(nodes[i].group, "data-focus", i === frame.node || null);
          setText(nodes[i].glyph, GLYPHS[status]);
          setAttr(edges[i], "data-status", status);
          rows[i].forEach((/** @type {any} */ cell) => setAttr(cell, "data-row", i === frame.node || null));
        });
      },
    };
  },
};
