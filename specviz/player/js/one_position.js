// Speculative decoding at one position: one program, read by a sampler and by an enumerator.
// p is the target's law, q the draft's, x a proposal.

import { PURPOSE, philoxUniform } from "./philox.js";

/** @typedef {number[]} Law */

export const sum = (/** @type {Law} */ law) => law.reduce((a, b) => a + b, 0);
const scaled = (/** @type {Law} */ law) => {
  const mass = sum(law);
  return law.map((x) => x / mass);
};
export const oneHot = (size, x) => Array.from({ length: size }, (_, i) => (i === x ? 1 : 0));

/** Σ min(p, q): how often a proposal is kept. @param {Law} p @param {Law} q */
export const overlapOf = (p, q) => sum(p.map((x, i) => Math.min(x, q[i])));

/** Total variation: half the sum of absolute differences. @param {Law} p @param {Law} q */
export const totalVariation = (p, q) => sum(p.map((x, i) => Math.abs(x - q[i]))) / 2;

/** max(0, p − q), scaled up to 1; where that is nothing, p where p ≥ q. @param {Law} p @param {Law} q */
export function residualLaw(p, q) {
  const left = p.map((x, i) => Math.max(0, x - q[i]));
  if (sum(left) > 0) return scaled(left);
  const same = p.map((x, i) => (x >= q[i] ? x : 0));
  return sum(same) > 0 ? scaled(same) : [...p];
}

/** min(1, p(x) / q(x)). @param {Law} p @param {Law} q @param {number} x */
export const ratioAt = (p, q, x) => Math.min(1, p[x] / q[x]);

/** The first token whose cumulative mass exceeds u times the whole, and its interval. */
export function invertLaw(law, u) {
  let mass = 0, before = 0;
  for (let i = 0; i < law.length; i++) mass += law[i];
  const mark = u * mass;
  let last = { token: 0, lo: 0, hi: mass, mass }; // rounding put u at the very end: the last with mass
  for (let token = 0, hi = 0; token < law.length; token++, before = hi) {
    hi = before + law[token];
    if (hi > before) last = { token, lo: before, hi, mass };
    if (hi > mark) return last;
  }
  return last;
}

/** How the proposals of a position are made and judged. */
export const WAYS = [
  { name: "one", label: "one proposal, kept if u < p / q" },
  { name: "match", label: "one proposal, kept if the target draws it too (match)" },
  { name: "two_with", label: "two candidates, drawn with replacement" },
  { name: "two_without", label: "two candidates, drawn without replacement" },
  { name: "top_two", label: "the draft's two favourites, not drawn (one-hot q)" },
];

/** @returns {{ tokens: number[], laws: Law[], spans: any[] }} the proposals, and the laws reported */
function proposals(q, way, fault, draws) {
  const size = q.length;
  if (way === "top_two") {
    const order = q.map((_, i) => i).sort((a, b) => q[b] - q[a] || a - b).slice(0, 2);
    return { tokens: order, laws: order.map((x) => oneHot(size, x)), spans: [null, null] };
  }
  const tokens = [], laws = [], spans = [];
  let law = q;
  for (let lane = 0; lane < (way.startsWith("two") ? 2 : 1); lane++) {
    if (lane && way === "two_without") {
      const rest = law.map((x, i) => (i === tokens[0] ? 0 : x));
      if (!(sum(rest) > 0)) break; // nothing is left to draw
      law = scaled(rest);
    }
    const from = fault?.drawsFrom ? fault.drawsFrom(law) : law;
    const drawn = draws.choose(from, PURPOSE.draft, lane);
    tokens.push(drawn.token), laws.push(law), spans.push({ ...drawn, law: from });
  }
  return { tokens, laws, spans };
}

/**
 * One position, from the proposal to the token that is emitted.
 * @param {Law} p @param {Law} q
 * @param {{ way?: string, fault?: any }} setting
 * @param {any} draws  `choose(law, purpose, lane)` and `accept(chance, lane, how)`
 * @returns {{ proposed: number[], tries: any[], closing: any, kept: boolean, token: number }}
 */
export function position(p, q, { way = "one", fault = null }, draws) {
  let draft = proposals(q, way, fault, draws);
  const proposed = draft.tokens;
  if (fault?.reports) draft = fault.reports(draft);
  const tries = [], correct = fault?.correction ?? residualLaw;
  if (way === "match") {
    const x = draft.tokens[0], own = draws.choose(p, PURPOSE.target, 0);
    const kept = own.token === x;
    tries.push({ x, q: draft.laws[0], p, span: draft.spans[0], kept, own: own.token, chance: p[x], u: NaN });
    return { proposed, tries, closing: { ...own, law: p, kind: "own" }, kept, token: own.token };
  }
  let law = p;
  for (let i = 0; i < draft.tokens.length; i++) {
    const x = draft.tokens[i], one = draft.laws[i], span = draft.spans[i];
    const chance = fault?.chance ? fault.chance(law, one, x) : ratioAt(law, one, x);
    const { kept, u } = draws.accept(chance, i, { sameAs: fault?.sameU ? span : null, grid: fault?.grid ?? 0 });
    tries.push({ x, q: one, p: law, span, kept, chance, u });
    if (kept) return { proposed, tries, closing: null, kept: true, token: x };
    law = correct(law, one, x);
  }
  const drawn = draws.choose(law, PURPOSE.closing, 0);
  return { proposed, tries, closing: { ...drawn, law, kind: tries.length ? "correction" : "plain" }, kept: false, token: drawn.token };
}

const AT = 1; // the position in the keys: the token after a prompt of one

/** Draws computed from their keys: the same as Python's Sampler at the first position. */
export function keyedDraws(seed, sequence) {
  return {
    choose(law, purpose, lane) {
      const u = philoxUniform(seed, sequence, purpose, AT, 0, lane);
      return Object.assign(invertLaw(law, u), { u });
    },
    accept(chance, lane, { sameAs, grid }) {
      const fresh = sameAs ? sameAs.u : philoxUniform(seed, sequence, PURPOSE.accept, AT, 0, lane);
      if (!grid) return { kept: fresh < chance, u: fresh };
      const u = Math.floor(fresh * grid) / grid; // and the comparison lets equality pass
      return { kept: u <= chance, u };
    },
  };
}

/** Run one draw. @param {Law} p @param {Law} q */
export const drawOne = (p, q, setting, seed, sequence) => position(p, q, setting, keyedDraws(seed, sequence));

/** Draw many and count tokens and kept proposals. @param {Law} p @param {Law} q */
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
    choose(law) {
      const token = branch(scaled(law));
      const lo = sum(law.slice(0, token));
      return { token, lo, hi: lo + law[token], mass: sum(law), u: NaN };
    },
    accept(chance, _, { sameAs, grid }) {
      let a = Math.min(1, chance);
      if (grid) a = Math.min(1, (Math.floor(grid * a) + 1) / grid);
      // the uniform is known to lie where the proposal's own draw fell
      if (sameAs) a = Math.min(1, Math.max(0, (a * sameAs.mass - sameAs.lo) / (sameAs.hi - sameAs.lo)));
      return { kept: branch([1 - a, a]) === 1, u: NaN };
    },
  };
  return one;
}

/**
 * The exact law of the emitted token and the exact acceptance, by running every way once.
 * @param {Law} p @param {Law} q @param {{ way?: string, fault?: any }} [setting]
 */
export function enumeratePosition(p, q, setting = {}) {
  const law = p.map(() => 0), scripts = [[]];
  let acceptance = 0;
  while (scripts.length) {
    const one = branching(scripts.pop(), scripts);
    const happened = position(p, q, setting, one.draws);
    law[happened.token] += one.weight;
    if (happened.kept) acceptance += one.weight;
  }
  return { law, acceptance, tv: totalVariation(law, p) };
}
