// Speculative decoding at one position: one program, read by a sampler and by an enumerator.
// p is the target's distribution, q the draft's, x a proposal.

import { PURPOSE, philoxUniform } from "./philox.js";

/** @typedef {number[]} Distribution */

export const sum = (/** @type {Distribution} */ distribution) =>
  distribution.reduce((a, b) => a + b, 0);
const scaled = (/** @type {Distribution} */ distribution) => {
  const mass = sum(distribution);
  return distribution.map((x) => x / mass);
};
export const oneHot = (size, x) => Array.from({ length: size }, (_, i) => (i === x ? 1 : 0));

/** Σ min(p, q): how often a proposal is kept. @param {Distribution} p @param {Distribution} q */
export const overlapOf = (p, q) => sum(p.map((x, i) => Math.min(x, q[i])));

/**
 * Total variation: half the sum of absolute differences.
 * @param {Distribution} p
 * @param {Distribution} q
 */
export const totalVariation = (p, q) => sum(p.map((x, i) => Math.abs(x - q[i]))) / 2;

/**
 * max(0, p − q), scaled up to 1; where that is nothing, p where p ≥ q.
 * @param {Distribution} p
 * @param {Distribution} q
 */
export function residualDistribution(p, q) {
  const left = p.map((x, i) => Math.max(0, x - q[i]));
  if (sum(left) > 0) return scaled(left);
  const same = p.map((x, i) => (x >= q[i] ? x : 0));
  return sum(same) > 0 ? scaled(same) : [...p];
}

/** min(1, p(x) / q(x)). @param {Distribution} p @param {Distribution} q @param {number} x */
export const ratioAt = (p, q, x) => Math.min(1, p[x] / q[x]);

/** The first token whose cumulative mass exceeds u times the whole, and its interval. */
export function invertDistribution(distribution, u) {
  let mass = 0,
    before = 0;
  for (let i = 0; i < distribution.length; i++) mass += distribution[i];
  const mark = u * mass;
  // where rounding put u at the very end it is the last token with mass
  let last = { token: 0, lo: 0, hi: mass, mass };
  for (let token = 0; token < distribution.length; token++) {
    const hi = before + distribution[token];
    if (hi > before) last = { token, lo: before, hi, mass };
    if (hi > mark) return last;
    before = hi;
  }
  return last;
}

/** How the proposals of a position are made and judged. */
export const WAYS = [
  { name: "one", label: "one proposal, accepted if u < p / q" },
  { name: "match", label: "one proposal, accepted if the target draws it too (match)" },
  { name: "two_with", label: "two candidates, drawn with replacement" },
  { name: "two_without", label: "two candidates, drawn without replacement" },
  { name: "top_two", label: "the draft's two favourites, not drawn (one-hot q)" },
];

/**
 * @returns {{ tokens: number[], distributions: Distribution[], spans: any[] }} the proposals, and
 *   the distributions reported
 */
function proposals(q, way, fault, draws) {
  const size = q.length;
  if (way === "top_two") {
    const order = q
      .map((_, i) => i)
      .sort((a, b) => q[b] - q[a] || a - b)
      .slice(0, 2);
    return { tokens: order, distributions: order.map((x) => oneHot(size, x)), spans: [null, null] };
  }
  const tokens = [],
    distributions = [],
    spans = [];
  let distribution = q;
  for (let lane = 0; lane < (way.startsWith("two") ? 2 : 1); lane++) {
    if (lane && way === "two_without") {
      const rest = distribution.map((x, i) => (i === tokens[0] ? 0 : x));
      if (!(sum(rest) > 0)) break; // nothing is left to draw
      distribution = scaled(rest);
    }
    const from = fault?.drawsFrom ? fault.drawsFrom(distribution) : distribution;
    const drawn = draws.choose(from, PURPOSE.draft, lane);
    (tokens.push(drawn.token),
      distributions.push(distribution),
      spans.push({ ...drawn, distribution: from }));
  }
  return { tokens, distributions, spans };
}

/**
 * One position, from the proposal to the token that is emitted.
 * @param {Distribution} p @param {Distribution} q
 * @param {{ way?: string, fault?: any }} setting
 * @param {any} draws  `choose(distribution, purpose, lane)` and `accept(chance, lane, how)`
 * @returns {{ proposed: number[], tries: any[], closing: any, kept: boolean, token: number }}
 */
export function position(p, q, { way = "one", fault = null }, draws) {
  let draft = proposals(q, way, fault, draws);
  const proposed = draft.tokens;
  if (fault?.reports) draft = fault.reports(draft);
  const tries = [],
    correct = fault?.correction ?? residualDistribution;
  if (way === "match") {
    const x = draft.tokens[0],
      own = draws.choose(p, PURPOSE.target, 0);
    const kept = own.token === x;
    tries.push({
      x,
      q: draft.distributions[0],
      p,
      span: draft.spans[0],
      kept,
      own: own.token,
      chance: p[x],
      u: NaN,
    });
    return {
      proposed,
      tries,
      closing: { ...own, distribution: p, kind: "own" },
      kept,
      token: own.token,
    };
  }
  let distribution = p;
  for (let i = 0; i < draft.tokens.length; i++) {
    const x = draft.tokens[i],
      one = draft.distributions[i],
      span = draft.spans[i];
    const chance = fault?.chance
      ? fault.chance(distribution, one, x)
      : ratioAt(distribution, one, x);
    const { kept, u } = draws.accept(chance, i, {
      sameAs: fault?.sameU ? span : null,
      grid: fault?.grid ?? 0,
    });
    tries.push({ x, q: one, p: distribution, span, kept, chance, u });
    if (kept) return { proposed, tries, closing: null, kept: true, token: x };
    distribution = correct(distribution, one, x);
  }
  const drawn = draws.choose(distribution, PURPOSE.closing, 0);
  return {
    proposed,
    tries,
    closing: { ...drawn, distribution, kind: tries.length ? "correction" : "plain" },
    kept: false,
    token: drawn.token,
  };
}

const AT = 1; // the position in the keys: the token after a prompt of one

/** Draws computed from their keys: the same as Python's Sampler at the first position. */
export function keyedDraws(seed, sequence) {
  return {
    choose(distribution, purpose, lane) {
      const u = philoxUniform(seed, sequence, purpose, AT, 0, lane);
      return Object.assign(invertDistribution(distribution, u), { u });
    },
    accept(chance, lane, { sameAs, grid }) {
      const fresh = sameAs ? sameAs.u : philoxUniform(seed, sequence, PURPOSE.accept, AT, 0, lane);
      if (!grid) return { kept: fresh < chance, u: fresh };
      const u = Math.floor(fresh * grid) / grid; // and the comparison lets equality pass
      return { kept: u <= chance, u };
    },
  };
}

/** Run one draw. @param {Distribution} p @param {Distribution} q */
export const drawOne = (p, q, setting, seed, sequence) =>
  position(p, q, setting, keyedDraws(seed, sequence));

/**
 * Draw many and count tokens and kept proposals.
 * @param {Distribution} p
 * @param {Distribution} q
 */
export function drawMany(p, q, setting, seed, first, n) {
  const counts = p.map(() => 0);
  let kept = 0;
  for (let i = 0; i < n; i++) {
    const one = drawOne(p, q, setting, seed, first + i);
    counts[one.token]++;
    if (one.kept) kept++;
  }
  return { counts, kept, n };
}

/** Draws that follow a script, then take the first way open and note the others. */
function branching(script, untaken) {
  const taken = [];
  const one = { weight: 1, draws: /** @type {any} */ (null) };
  const branch = (/** @type {number[]} */ chances) => {
    let way = script[taken.length];
    if (way === undefined) {
      const open = chances.flatMap((chance, i) => (chance > 0 ? [i] : []));
      way = open[0];
      for (const other of open.slice(1)) untaken.push([...taken, other]);
    }
    taken.push(way);
    one.weight *= chances[way];
    return way;
  };
  one.draws = {
    choose(distribution) {
      const token = branch(scaled(distribution));
      const lo = sum(distribution.slice(0, token));
      return { token, lo, hi: lo + distribution[token], mass: sum(distribution), u: NaN };
    },
    accept(chance, _, { sameAs, grid }) {
      let a = Math.min(1, chance);
      if (grid) a = Math.min(1, (Math.floor(grid * a) + 1) / grid);
      // the uniform is known to lie where the proposal's own draw fell
      if (sameAs)
        a = Math.min(1, Math.max(0, (a * sameAs.mass - sameAs.lo) / (sameAs.hi - sameAs.lo)));
      return { kept: branch([1 - a, a]) === 1, u: NaN };
    },
  };
  return one;
}

/**
 * The exact distribution of the emitted token and the exact acceptance, by running every way once.
 * @param {Distribution} p @param {Distribution} q @param {{ way?: string, fault?: any }} [setting]
 */
export function enumeratePosition(p, q, setting = {}) {
  const distribution = p.map(() => 0),
    scripts = [[]];
  let acceptance = 0;
  while (scripts.length) {
    const one = branching(scripts.pop(), scripts);
    const happened = position(p, q, setting, one.draws);
    distribution[happened.token] += one.weight;
    if (happened.kept) acceptance += one.weight;
  }
  return { distribution, acceptance, tv: totalVariation(distribution, p) };
}
