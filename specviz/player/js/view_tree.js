// (h) The tree of proposals with its accepted path, and the attention mask of its one pass.

import { NONE, tokenText } from "./decode.js";
import { h, pool, setAttr, setText, show, trimmed } from "./dom.js";
import { GLYPHS } from "./view_phase.js";
import { oneByOne, walkAt } from "./walk.js";
import { count, number } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

const ACROSS = 124,
  DOWN = 25,
  HIGH = 21,
  ROOT = 66;

/** Rows kept free for a round whose tree does not fit, so that nothing below it moves. */
const HELD = 22;

/** A proposal in the tree, made once and moved to where a window has it. */
function leaf() {
  const title = h("svg:title"),
    box = h("svg:rect", { width: ACROSS - 22, height: HIGH, rx: 4 });
  const text = h("svg:text", { x: 6, y: 15 }),
    glyph = h("svg:text", { x: ACROSS - 38, y: 15, class: "svp-tg" });
  const el = h("svg:g", { class: "svp-tn" }, [title, box, text, glyph]);
  return { el, title, box, text, glyph };
}

export const treeView = {
  name: "tree",
  title: "The tree and its attention mask",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const root = h("svg:text", { class: "svp-roottext", text: "text" });
    const edgeLayer = h("svg:g"),
      leafLayer = h("svg:g"),
      foldLayer = h("svg:g");
    const svg = h("svg:svg", { role: "img" }, [root, edgeLayer, leafLayer, foldLayer]);
    const tree = h(
      "div",
      { class: "svp-scroll", tabindex: 0, role: "region", "aria-label": "Tree of proposals" },
      [svg],
    );
    const ground = h("svg:rect", { class: "svp-maskground" }),
      cells = h("svg:path", { class: "svp-maskon" });
    const row = h("svg:rect", {
      class: "svp-maskrow",
      x: 0,
      height: 1,
      "vector-effect": "non-scaling-stroke",
    });
    const mask = h(
      "svg:svg",
      { class: "svp-mask", role: "img", "aria-label": "Attention mask: a row per proposal" },
      [ground, cells, row],
    );
    const note = h("div", { class: "svp-sub" });
    const badge = h("b", { class: "svp-badge", text: "not what happened" });
    const el = h("div", { class: "svp-tree" }, [
      tree,
      h("div", { class: "svp-masked" }, [h("div", {}, [badge, note]), mask]),
    ]);
    const edges = pool(edgeLayer, () => ({ el: h("svg:path", { class: "svp-edge" }) }));
    const leaves = pool(leafLayer, leaf);
    const folds = pool(foldLayer, () => ({ el: h("svg:text", { class: "svp-fold" }) }));
    setText(
      note,
      "In the one pass each proposal sees the text so far, its own ancestors and itself: a row " +
        `per proposal. ${data.header.hints.siblings}`,
    );
    let drawn = -1,
      key = "";
    /** @type {Map<number, number>} which of the pool shows a proposal */
    let slot = new Map();
    /** @type {any[]} the labels of what is folded, and below which proposal */
    let hung = [];

    const masked = (/** @type {Frame} */ frame) => {
      const n = data.round.nodes[frame.round];
      setAttr(mask, "viewBox", `0 0 ${n || 1} ${n || 1}`);
      setAttr(mask, "style", `--svp-n: ${n}`);
      for (const name of ["width", "height"]) setAttr(ground, name, n);
      setAttr(row, "width", n);
      setAttr(row, "height", Math.max(1, n / 130));
      setAttr(cells, "d", maskPath(data, frame));
    };

    const place = (/** @type {Frame} */ frame, /** @type {any} */ window) => {
      const n = data.round.nodes[frame.round],
        at = placesOf(window);
      const px = (/** @type {number} */ level) => 4 + (level ? ROOT + (level - 1) * ACROSS : 0);
      const py = (/** @type {number} */ line) => 4 + line * DOWN;
      const bend = (
        /** @type {number} */ up,
        /** @type {number} */ level,
        /** @type {number} */ line,
      ) => {
        const x0 = px(at.x.get(up)) + (up === window.root ? ROOT - 26 : ACROSS - 22),
          x1 = px(level);
        const y0 = py(at.y.get(up)) + HIGH / 2,
          y1 = py(line) + HIGH / 2;
        return `M${x0} ${y0}C${x0 + 12} ${y0} ${x1 - 12} ${y1} ${x1} ${y1}`;
      };
      const lines = at.folds.length ? Math.max(at.leaves, HELD) : at.leaves;
      setAttr(svg, "viewBox", `0 0 ${ROOT + at.levels * ACROSS - 14} ${lines * DOWN + 4}`);
      setAttr(svg, "aria-label", `Tree of ${count(n, "proposal")}`);
      setAttr(el, "style", `--svp-leaves: ${lines}`);
      setAttr(root, "x", px(0) + 4);
      setAttr(root, "y", py(at.y.get(window.root)) + 15);
      setText(root, window.root === n ? "text" : "… " + shortened(data, frame, window.root, 4));
      slot = new Map(at.nodes.map((node, k) => [node, k]));
      const lined = edges(at.nodes.length + at.folds.length),
        made = leaves(at.nodes.length),
        folded = folds(at.folds.length);
      at.nodes.forEach((node, k) => {
        const x = px(at.x.get(node)),
          y = py(at.y.get(node)),
          one = made[k];
        setAttr(lined[k].el, "d", bend(at.up.get(node), at.x.get(node), at.y.get(node)));
        setAttr(one.el, "data-n", node);
        setAttr(one.el, "transform", `translate(${x} ${y})`);
        setText(one.text, shortened(data, frame, node, 9));
      });
      at.folds.forEach(({ parent, more }, k) => {
        const level = at.x.get(parent) + 1,
          line = at.fold.get(parent);
        const edge = lined[at.nodes.length + k].el;
        setAttr(edge, "d", bend(parent, level, line));
        setAttr(folded[k].el, "x", px(level) + 4);
        setAttr(folded[k].el, "y", py(line) + 15);
        setText(folded[k].el, `+${more.toLocaleString("en")} more`);
      });
      hung = at.folds.map(({ parent }, k) => ({
        parent,
        els: [folded[k].el, lined[at.nodes.length + k].el],
      }));
    };
    tree.addEventListener("click", (/** @type {any} */ event) => {
      const hit = event.target.closest?.("[data-n]");
      if (!hit) return;
      const node = Number(hit.dataset.n),
        round = player.frame.round;
      player.go(
        time.step({
          round,
          node,
          phase: data.node.verdict[data.start[round] + node] ? "decide" : "draft",
        }),
      );
    });
    return {
      el,
      /** @param {Frame} frame @param {any} state */
      update(frame, state) {
        if (drawn !== frame.round) masked(frame);
        drawn = frame.round;
        const which = data.step.tree?.[frame.step] ?? -1,
          window = data.header.trees[which] ?? { root: 0, at: 0, nodes: [], folds: [], levels: 0 };
        if (key !== `${frame.round}:${which}`) place(frame, window);
        key = `${frame.round}:${which}`;
        const asked = state.whatIf?.u !== undefined && frame.phase === "decide" && oneByOne(data);
        const would = new Map(
          asked ? walkAt(data, frame, state.whatIf.u).told.map((one) => [one.node, one.kept]) : [],
        );
        setAttr(el, "data-whatif", asked || null);
        const lined = edges(slot.size + hung.length),
          made = leaves(slot.size);
        for (const { parent, els } of hung)
          for (const one of els)
            setAttr(one, "data-status", frame.status[parent] === "hidden" ? "hidden" : "fold");
        for (const [node, k] of slot) {
          const status =
            asked && would.has(node)
              ? would.get(node)
                ? "accepted"
                : "rejected"
              : frame.status[node];
          const one = made[k];
          setAttr(one.el, "data-would", would.has(node) || null);
          setAttr(one.el, "data-status", status);
          setAttr(one.el, "data-focus", node === frame.node || null);
          setText(one.glyph, GLYPHS[status]);
          setText(one.title, titled(data, frame, node));
          setAttr(lined[k].el, "data-status", status);
        }
        show(row, frame.node >= 0);
        if (frame.node >= 0) setAttr(row, "y", frame.node);
      },
    };
  },
};

/** Where the proposals of a window stand, by proposal. @param {any} window */
function placesOf({ root, at, nodes, folds, leaves, levels }) {
  const of = (/** @type {number} */ k) => new Map(nodes.map((one) => [one[0], one[k]]));
  return {
    nodes: nodes.map((one) => one[0]),
    up: of(1),
    x: of(2).set(root, 0),
    y: of(3).set(root, at),
    folds: folds.map(([parent, more]) => ({ parent, more })),
    fold: new Map(folds.map(([parent, , row]) => [parent, row])),
    leaves: leaves ?? 1,
    levels,
  };
}

/**
 * The mask of a round's one pass, as one outline of unit cells: row i has its ancestors and i.
 * @param {Data} data @param {Frame} frame
 */
export function maskPath(data, frame) {
  const n = data.round.nodes[frame.round],
    least = n / 130,
    inset = n > 40 ? 0 : 0.05;
  const pieces = [];
  for (let i = 0; i < n; i++) {
    const seen = [];
    for (let j = i; j !== NONE; j = data.node.parent[frame.first + j]) seen.unshift(j);
    for (let k = 0; k < seen.length; k++) {
      const from = seen[k];
      // a small mask is drawn in cells, a large one in runs
      if (!inset) while (k + 1 < seen.length && seen[k + 1] === seen[k] + 1) k++;
      const long = Math.max(seen[k] + 1 - from, least) - 2 * inset,
        high = Math.max(1, least) - 2 * inset;
      pieces.push(
        `M${from + inset} ` +
          `${i + inset}h${+long.toFixed(2)}v${+high.toFixed(2)}h-${+long.toFixed(2)}z`,
      );
    }
  }
  return pieces.join("");
}

function shortened(data, frame, node, most) {
  const text = trimmed(tokenText(data, data.node.token[frame.first + node]));
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function titled(data, frame, node) {
  const row = frame.first + node,
    text = trimmed(tokenText(data, data.node.token[row]));
  return (
    `${text}: p ${frame.seenP ? number(data.node.p[row]) : "?"}, q ` + `${number(data.node.q[row])}`
  );
}
