// The editor's state and what follows from it: pure, so that it is tested without a browser.

import {
  chanceBound,
  detectable,
  noiseFloor,
  pearson,
  poolRare,
  shareInterval,
} from "./chance_numbers.js";
import {
  factorOf,
  distributionFrom,
  movedTo,
  presetLike,
  presetNamed,
  resized,
  roomFor,
} from "./editing.js";
import { faultAtOne, settingOf } from "./faults_at_one.js";
import {
  drawMany,
  drawOne,
  enumeratePosition,
  overlapOf,
  residualDistribution,
  totalVariation,
  WAYS,
} from "./one_position.js";

/** Of the p-value, and of all intervals together. */
export const LEVEL = 0.01;
export const SIZES = [100, 1_000, 10_000, 100_000];

/**
 * @typedef {{ words: string[], p: number[], q: number[],
 *   locked: { p: boolean[], q: boolean[] }, preset: string, way: string, fault: string,
 *   seed: number, next: number, one: any, many: any, size: number, changed: any }} State
 */

const fresh = { one: null, many: null, changed: null };

/** Begin with a preset, or with distributions of one's own. @returns {State} */
export function begin(
  { preset = "fox", words, p, q, way = "one", fault = "", seed = 0 } = /** @type {any} */ ({}),
) {
  const own = distributionFrom(p, words?.length),
    other = distributionFrom(q, words?.length),
    from = presetNamed(preset);
  const given = own && other && words ? { words, p: own, q: other } : from;
  const distributions = presetLike(given) ?? given;
  return {
    ...fresh,
    words: [...distributions.words],
    p: [...distributions.p],
    q: [...distributions.q],
    preset: distributions.name ?? "",
    locked: { p: distributions.p.map(() => false), q: distributions.p.map(() => false) },
    way: settingOf(WAYS.some((one) => one.name === way) ? way : "one", fault).way,
    fault: faultAtOne(fault) ? fault : "",
    seed: seed >>> 0,
    next: 0,
    size: 10_000,
  };
}

/** The reader's acts: each returns the next state. */
export const ACTS = {
  preset: (state, name) => ({
    ...begin({ preset: name, way: state.way, fault: state.fault, seed: state.seed }),
    size: state.size,
  }),
  /**
   * Move one bar.
   * @param {State} state
   * @param {"p" | "q"} which
   * @param {number} i
   * @param {number} to
   */
  move(state, which, i, to) {
    const distribution = state[which],
      after = movedTo(distribution, i, to, state.locked[which]);
    if (after === distribution) return { ...state, changed: { which, i, stuck: true } };
    const factor = factorOf(distribution, i, after, state.locked[which]);
    return {
      ...state,
      ...fresh,
      [which]: after,
      preset: "",
      changed: { which, i, from: distribution[i], to: after[i], factor },
    };
  },
  lock(state, which, i) {
    const locked = state.locked[which].map((on, j) => (j === i ? !on : on));
    return { ...state, locked: { ...state.locked, [which]: locked }, changed: null };
  },
  /** Take a distribution from outside. */
  distribution(state, which, values) {
    const distribution = distributionFrom(values, state.words.length);
    return distribution ? { ...state, ...fresh, [which]: distribution, preset: "" } : state;
  },
  resize(state, size) {
    const after = resized(state, size),
      keep = (on) => after.words.map((_, i) => Boolean(on[i]));
    return {
      ...state,
      ...fresh,
      ...after,
      preset: "",
      locked: { p: keep(state.locked.p), q: keep(state.locked.q) },
    };
  },
  way: (state, way) => ({
    ...state,
    ...fresh,
    way,
    fault: settingOf(way, state.fault).way === way ? state.fault : "",
  }),
  fault: (state, name) => ({
    ...state,
    ...fresh,
    fault: faultAtOne(name) ? name : "",
    way: settingOf(state.way, name).way,
  }),
  seed: (state, seed) => ({ ...state, ...fresh, seed: Math.trunc(Number(seed)) >>> 0, next: 0 }),
  size: (state, size) => ({ ...state, size }),
  /** Go on by one phase: of the draw that is shown, or of a new one. */
  step(state) {
    const one = state.one;
    if (one && one.step < one.steps.length - 1)
      return { ...state, one: { ...one, step: one.step + 1 } };
    const happened = drawOne(state.p, state.q, setting(state), state.seed, state.next);
    return {
      ...state,
      next: state.next + 1,
      one: { happened, steps: stepsOf(happened, state.way), step: 0, number: state.next },
    };
  },
  /** To the end of a draw. */
  finish: (state) =>
    state.one ? { ...state, one: { ...state.one, step: state.one.steps.length - 1 } } : state,
  /** Begin a sample; `more` takes it in. */
  many: (state) => ({
    ...state,
    next: state.next + state.size,
    many: { counts: state.p.map(() => 0), kept: 0, n: 0, wanted: state.size, first: state.next },
  }),
  more(state, n) {
    const many = state.many,
      take = Math.min(n, many.wanted - many.n);
    const got = drawMany(state.p, state.q, setting(state), state.seed, many.first + many.n, take);
    const counts = many.counts.map((k, i) => k + got.counts[i]);
    return { ...state, many: { ...many, counts, kept: many.kept + got.kept, n: many.n + take } };
  },
};

export const setting = (state) => settingOf(state.way, state.fault);

/** What a draw is told in: propose, compare and judge each candidate, then what comes instead. */
export function stepsOf(happened, way) {
  const steps = happened.tries.flatMap((_, i) =>
    ["propose", "compare", "judge"].map((kind) => ({ kind, i })),
  );
  if (way === "match")
    return [
      { kind: "propose", i: 0 },
      { kind: "judge", i: 0 },
    ];
  if (!happened.tries.length) steps.push({ kind: "dropped", i: 0 });
  if (happened.closing) steps.push({ kind: "close", i: Math.max(0, happened.tries.length - 1) });
  return steps;
}

/** Everything that is exact: no draw is in it. @param {State} state */
export function exactAt(state) {
  const { p, q } = state,
    right = enumeratePosition(p, q, { way: state.way });
  const wrong = state.fault ? enumeratePosition(p, q, setting(state)) : null;
  return {
    overlap: overlapOf(p, q),
    tv: totalVariation(p, q),
    residual: residualDistribution(p, q),
    acceptance: right.acceptance,
    comesOut: wrong ?? right,
    wrong,
  };
}

/** The bars: p and q of each token, what they share, how far each can go. @param {State} state */
export const rowsAt = (state) =>
  state.words.map((word, i) => ({
    word,
    p: state.p[i],
    q: state.q[i],
    shared: Math.min(state.p[i], state.q[i]),
    room: { p: roomFor(state.p, i, state.locked.p), q: roomFor(state.q, i, state.locked.q) },
    locked: { p: state.locked.p[i], q: state.locked.q[i] },
  }));

/**
 * A sample beside what was expected: intervals, total variation, p-values; null without one.
 * @param {State} state @param {any} exact
 */
export function manyAt(state, exact) {
  const many = state.many;
  if (!many || !many.n) return null;
  const { p } = state,
    { counts, n } = many,
    share = LEVEL / p.length;
  const seen = counts.map((k) => k / n),
    distribution = exact.comesOut.distribution;
  const rows = state.words.map((word, i) => {
    const [low, high] = shareInterval(counts[i], n, share);
    return {
      word,
      count: counts[i],
      seen: seen[i],
      low,
      high,
      expected: p[i],
      distribution: distribution[i],
      outside: p[i] < low || p[i] > high,
    };
  });
  const done = n === many.wanted;
  const impossible = counts.findIndex((k, i) => k > 0 && p[i] < 1e-15);
  const test = pearson(counts, p),
    dof = Math.max(...poolRare(p.map((x) => x * n)));
  const follows = exact.wrong ? pearson(counts, distribution).p : NaN;
  return {
    rows,
    n,
    done,
    wanted: many.wanted,
    first: many.first,
    accepted: many.kept / n,
    tv: totalVariation(seen, p),
    floor: noiseFloor(p, n),
    bound: chanceBound(p, n, LEVEL),
    p: test.p,
    dof,
    follows,
    impossible,
    caught: dof > 0 ? detectable(n, dof) : NaN,
    answer: !done
      ? "drawing"
      : impossible >= 0
        ? "impossible"
        : Number.isNaN(test.p)
          ? "untestable"
          : test.p < LEVEL
            ? "differs"
            : "as expected",
  };
}
