// The distributions that are edited: moving one bar moves the others of its distribution, so that
// it sums to 1.

import { oneHot, sum } from "./one_position.js";

export const FEWEST = 2;
export const MOST = 12;
const WORDS = [
  "the",
  "quick",
  "brown",
  "fox",
  "lazy",
  "dog",
  "jumps",
  "over",
  "a",
  "red",
  "hen",
  "and",
];

const counted = (n) => WORDS.slice(0, n);
const flat = (n) => Array.from({ length: n }, () => 1 / n);

/**
 * What one can begin with.
 * @type {{ name: string, label: string, words: string[], p: number[], q: number[] }[]}
 */
export const PRESETS = [
  {
    name: "fox",
    label: "the quick brown fox",
    words: counted(5),
    p: [0.4, 0.1, 0.3, 0.15, 0.05],
    q: [0.3, 0.2, 0.1, 0.15, 0.25],
  },
  {
    name: "worked",
    label: "a worked case: half overlaps",
    words: ["a", "b", "c", "d"],
    p: [0.5, 0.3, 0.1, 0.1],
    q: [0.1, 0.2, 0.3, 0.4],
  },
  {
    name: "close",
    label: "a good draft",
    words: counted(6),
    p: [0.42, 0.23, 0.15, 0.1, 0.06, 0.04],
    q: [0.46, 0.2, 0.16, 0.08, 0.05, 0.05],
  },
  {
    name: "identical",
    label: "identical distributions",
    words: counted(5),
    p: [0.4, 0.25, 0.2, 0.1, 0.05],
    q: [0.4, 0.25, 0.2, 0.1, 0.05],
  },
  {
    name: "disjoint",
    label: "disjoint distributions",
    words: counted(6),
    p: [0.5, 0.3, 0.2, 0, 0, 0],
    q: [0, 0, 0, 0.2, 0.3, 0.5],
  },
  {
    name: "peaked",
    label: "an overconfident draft",
    words: counted(6),
    p: [0.35, 0.25, 0.15, 0.1, 0.1, 0.05],
    q: [0.9, 0.04, 0.03, 0.01, 0.01, 0.01],
  },
  {
    name: "flat",
    label: "a draft that knows nothing",
    words: counted(8),
    p: [0.55, 0.2, 0.1, 0.06, 0.04, 0.03, 0.01, 0.01],
    q: flat(8),
  },
  {
    name: "one_hot_draft",
    label: "one-hot draft (prompt lookup)",
    words: counted(5),
    p: [0.6, 0.2, 0.1, 0.06, 0.04],
    q: oneHot(5, 0),
  },
  {
    name: "greedy_target",
    label: "one-hot target (temperature 0)",
    words: counted(5),
    p: oneHot(5, 0),
    q: [0.6, 0.2, 0.1, 0.06, 0.04],
  },
  { name: "two", label: "two tokens", words: ["heads", "tails"], p: [0.5, 0.5], q: [0.6, 0.4] },
];

/** The preset that has these distributions, if one has. */
export const presetLike = ({ words, p, q }) =>
  PRESETS.find(
    (one) =>
      one.words.join() === words.join() &&
      [
        [one.p, p],
        [one.q, q],
      ].every(([a, b]) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-9)),
  );

export const presetNamed = (name) => PRESETS.find((one) => one.name === name) ?? PRESETS[0];

const capped = (x, low, high) => Math.min(high, Math.max(low, x));

/**
 * How large a bar can become: what the locked ones leave.
 * @param {number[]} distribution
 * @param {boolean[]} locked
 */
export function roomFor(distribution, i, locked) {
  const held = distribution.reduce((total, x, j) => total + (j !== i && locked[j] ? x : 0), 0);
  return Math.max(0, 1 - held);
}

/**
 * Give one token another probability; the unlocked others keep their proportions.
 * @param {number[]} distribution @param {number} i @param {number} to @param {boolean[]} [locked]
 * @returns {number[]} sums to 1; the distribution itself where nothing can move
 */
export function movedTo(distribution, i, to, locked = []) {
  const others = distribution.flatMap((_, j) => (j !== i && !locked[j] ? [j] : []));
  if (locked[i] || !others.length || !Number.isFinite(to)) return distribution;
  const room = roomFor(distribution, i, locked),
    value = capped(to, 0, room);
  const before = others.reduce((total, j) => total + distribution[j], 0),
    left = Math.max(0, room - value);
  const out = [...distribution];
  out[i] = value;
  for (const j of others)
    out[j] = before > 1e-12 ? (distribution[j] * left) / before : left / others.length;
  const total = sum(out);
  return Math.abs(total - 1) < 1e-12 ? out : out.map((x) => x / total);
}

/** How the others changed: their common factor, for the words. */
export function factorOf(distribution, i, after, locked = []) {
  const j = distribution.findIndex((x, at) => at !== i && !locked[at] && x > 1e-12);
  return j < 0 ? NaN : after[j] / distribution[j];
}

/**
 * With more or fewer tokens: a new one starts with nothing, what a last one had goes to the others.
 */
export function resized({ words, p, q }, size) {
  const n = capped(Math.trunc(size) || FEWEST, FEWEST, MOST);
  const fit = (distribution) => {
    const out = Array.from({ length: n }, (_, i) => distribution[i] ?? 0),
      total = sum(out);
    return total > 0 ? out.map((x) => x / total) : flat(n);
  };
  const unused = WORDS.filter((word) => !words.includes(word));
  return {
    words: Array.from({ length: n }, (_, i) => words[i] ?? unused.shift() ?? `⟨${i}⟩`),
    p: fit(p),
    q: fit(q),
  };
}

/**
 * A distribution from outside, if it is one: what a model's trait holds.
 * @returns {number[] | null}
 */
export function distributionFrom(values, size) {
  if (
    !Array.isArray(values) ||
    (size && values.length !== size) ||
    values.length < FEWEST ||
    values.length > MOST
  )
    return null;
  if (!values.every((x) => Number.isFinite(x) && x >= 0) || !(sum(values) > 0)) return null;
  return values.map((x) => x / sum(values));
}

/** The end of the bars' scale: a round number with room above the largest. */
export const scaleFor = (...distributions) =>
  [0.25, 0.5, 0.75].find((end) => Math.max(...distributions.flat()) <= 0.9 * end) ?? 1;
