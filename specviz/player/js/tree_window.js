// Which proposals of a round are drawn as its tree: all of a small one; of a large one the path to
// the proposal in question, the siblings along it and what may come next, the rest counted.

import { NONE } from "./decode.js";
import { pathTo } from "./frame.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/** At most so many proposals are drawn, and so many levels of a path. */
export const MOST_IN_TREE = 24;
const LEVELS = 10,
  LEAST = 2;

/**
 * @param {Data} data
 * @param {number} round
 * @returns {number[][]} by parent; the text's come last
 */
function childrenOf(data, round) {
  const first = data.start[round],
    n = data.round.nodes[round];
  const children = Array.from({ length: n + 1 }, () => /** @type {number[]} */ ([]));
  for (let i = 0; i < n; i++) {
    const parent = data.node.parent[first + i];
    children[parent === NONE ? n : parent].push(i);
  }
  return children;
}

/** The proposal that the window is about: in question, or the last one judged. */
function about(data, frame) {
  if (frame.node >= 0) return frame.node;
  let last = -1;
  frame.status.forEach((status, i) => {
    if (status !== "accepted" && status !== "rejected") return;
    if (last < 0 || data.depth[frame.first + i] >= data.depth[frame.first + last]) last = i;
  });
  return last;
}

/**
 * @typedef {object} Window
 * @property {string} key       the same for the same picture
 * @property {number} root      the proposal at its left, or the number of all for the text so far
 * @property {Map<number, { shown: number[], more: number }>} under  children drawn, others counted
 */

/**
 * @param {Data} data @param {Frame} frame
 * @returns {Window}
 */
export function windowAt(data, frame) {
  const n = data.round.nodes[frame.round],
    children = childrenOf(data, frame.round);
  if (n <= MOST_IN_TREE) {
    const under = new Map(children.map((shown, parent) => [parent, { shown, more: 0 }]));
    return { key: `${frame.round}`, root: n, under };
  }
  const below = new Array(n).fill(1); // a proposal and all under it
  for (let i = n - 1; i >= 0; i--) {
    const parent = data.node.parent[frame.first + i];
    if (parent !== NONE) below[parent] += below[i];
  }
  const node = about(data, frame),
    path = pathTo(data, frame, node);
  const cut = Math.max(0, path.length - LEVELS),
    root = cut ? path[cut - 1] : n;
  let levels = 1;
  for (let i = 0; i < n; i++) levels = Math.max(levels, data.depth[frame.first + i] + 1);
  const each = Math.max(LEAST, Math.floor(MOST_IN_TREE / Math.min(levels, LEVELS)));
  /** @type {Map<number, { shown: number[], more: number }>} */
  const under = new Map();
  const keys = [];
  const parents = [root, ...path.slice(cut)];
  parents.forEach((parent, k) => {
    const own = children[parent],
      on = path[cut + k];
    // page by page, so that a step to the next sibling seldom moves anything
    const from = Math.min(
      on === undefined ? 0 : Math.floor(own.indexOf(on) / each) * each,
      Math.max(0, own.length - each),
    );
    const shown = own.slice(from, from + each);
    keys.push(parent, from);
    under.set(parent, {
      shown,
      more: own.reduce((sum, i) => sum + (shown.includes(i) ? 0 : below[i]), 0),
    });
  });
  for (const { shown } of [...under.values()])
    for (const i of shown) if (!under.has(i)) under.set(i, { shown: [], more: below[i] - 1 });
  return { key: `${frame.round}:${keys.join(",")}`, root, under };
}

/** A number for every proposal that is drawn. @typedef {Map<number, any>} Lookup */

/**
 * Where each proposal of a window stands: leaves below each other, parents beside their middle.
 * @param {Window} window
 * @returns {{ nodes: number[], folds: { parent: number, more: number }[], leaves: number,
 *   levels: number, up: Lookup, x: Lookup, y: Lookup, fold: Lookup }}
 */
export function placesIn({ root, under }) {
  /** @type {Lookup} */
  const x = new Map([[root, 0]]);
  /** @type {Lookup[]} */
  const [y, up, fold] = [new Map(), new Map(), new Map()];
  /** @type {number[]} */
  const nodes = [];
  const folds = [];
  let leaves = 0,
    levels = 0;
  // parents come before children, so the deepest are placed by walking in order of drawing
  const stack = [[root, 0]];
  while (stack.length) {
    const top = stack[stack.length - 1],
      [at, next] = top;
    const { shown, more } = under.get(at) ?? { shown: [], more: 0 };
    if (next < shown.length) {
      const child = shown[next];
      top[1]++;
      x.set(child, x.get(at) + 1);
      up.set(child, at);
      nodes.push(child);
      stack.push([child, 0]);
      continue;
    }
    if (more) {
      folds.push({ parent: at, more });
      fold.set(at, leaves++);
    }
    levels = Math.max(levels, x.get(at) + (more ? 1 : 0));
    const rows = [...shown.map((i) => y.get(i)), ...(more ? [fold.get(at)] : [])];
    y.set(at, rows.length ? (rows[0] + rows[rows.length - 1]) / 2 : leaves++);
    stack.pop();
  }
  nodes.sort((a, b) => a - b);
  return { nodes, up, folds, x, y, fold, leaves: Math.max(1, leaves), levels };
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
    const seen = pathTo(data, frame, i).sort((a, b) => a - b);
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

/** What the numbers of a tree's proposals are: a later sibling's depend on those before it. */
export function judgedBy(data) {
  if (!data.isTree || !data.header.judged_by_u) return "";
  return (
    "The p and q at a proposal are those it is judged by: what its earlier siblings leave " +
    "if they are rejected."
  );
}

/** Whether a proposal has siblings before it, by whose rejection its p and q are changed. */
export function comesLater(data, frame, node) {
  if (!data.isTree || !data.header.judged_by_u) return false;
  for (let i = 0; i < node; i++)
    if (data.node.parent[frame.first + i] === data.node.parent[frame.first + node]) return true;
  return false;
}

/**
 * The proposals of a large round that matter most at a frame, in their order.
 * @param {Data} data @param {Frame} frame @param {number} most
 */
export function nearest(data, frame, most) {
  const node = about(data, frame),
    path = new Set(node < 0 ? [] : pathTo(data, frame, node));
  const parent = (/** @type {number} */ i) => data.node.parent[frame.first + i];
  const rank = (/** @type {number} */ i) => {
    if (path.has(i)) return 0;
    if (node >= 0 && parent(i) === parent(node)) return 1;
    return frame.status[i] === "accepted" || frame.status[i] === "rejected" ? 2 : 3;
  };
  const near = new Set(placesIn(windowAt(data, frame)).nodes);
  // always as many, so that nothing below moves
  for (let i = 0; near.size < Math.min(most, frame.status.length); i++) near.add(i);
  const drawn = [...near].map((i) => [rank(i), i]);
  drawn.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return drawn
    .slice(0, most)
    .map((one) => one[1])
    .sort((a, b) => a - b);
}
