// The laws that are edited: moving one bar moves the others of its law, so that it sums to 1.

import { oneHot, sum } from "./one_position.js";

export const FEWEST = 2;
export const MOST = 12;
const WORDS = ["the", "quick", "brown", "fox", "lazy", "dog", "jumps", "over", "a", "red", "hen", "and"];

const counted = (n) => WORDS.slice(0, n);
const flat = (n) => Array.from({ length: n }, () => 1 / n);

/** What one can begin with. @type {{ name: string, label: string, words: string[], p: number[], q: number[] }[]} */
export const PRESETS = [
  { name: "fox", label: "the quick brown fox", words: counted(5), p: [0.4, 0.1, 0.3, 0.15, 0.05], q: [0.3, 0.2, 0.1, 0.15, 0.25] },
  { name: "worked", label: "a worked case: half overlaps", words: ["a", "b", "c", "d"], p: [0.5, 0.3, 0.1, 0.1], q: [0.1, 0.2, 0.3, 0.4] },
  { name: "close", label: "a good draft", words: counted(6), p: [0.42, 0.23, 0.15, 0.1, 0.06, 0.04], q: [0.46, 0.2, 0.16, 0.08, 0.05, 0.05] },
  { name: "identical", label: "identical laws", words: counted(5), p: [0.4, 0.25, 0.2, 0.1, 0.05], q: [0.4, 0.25, 0.2, 0.1, 0.05] },
  { name: "disjoint", label: "disjoint laws", words: counted(6), p: [0.5, 0.3, 0.2, 0, 0, 0], q: [0, 0, 0, 0.2, 0.3, 0.5] },
  { name: "peaked", label: "an overconfident draft", words: counted(6), p: [0.35, 0.25, 0.15, 0.1, 0.1, 0.05], q: [0.9, 0.04, 0.03, 0.01, 0.01, 0.01] },
  { name: "flat", label: "a draft that knows nothing", words: counted(8), p: [0.55, 0.2, 0.1, 0.06, 0.04, 0.03, 0.01, 0.01], q: flat(8) },
  { name: "one_hot_draft", label: "one-hot draft (prompt lookup)", words: counted(5), p: [0.6, 0.2, 0.1, 0.06, 0.04], q: oneHot(5, 0) },
  { name: "greedy_target", label: "one-hot target (temperature 0)", words: counted(5), p: oneHot(5, 0), q: [0.6, 0.2, 0.1, 0.06, 0.04] },
  { name: "two", label: "two tokens", words: ["heads", "tails"], p: [0.5, 0.5], q: [0.6, 0.4] },
];

/** The preset that has these laws, if one has. */
export const presetLike = ({ words, p, q }) => PRESETS.find((one) => one.words.join() === words.join()
  && [[one.p, p], [one.q, q]].every(([a, b]) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-9)));

export const presetNamed = (name) => PRESETS.find((one) => one.name === name) ?? PRESETS[0];

const capped = (x, low, high) => Math.min(high, Math.max(low, x));

/** How large a bar can become: what the locked ones leave. @param {number[]} law @param {boolean[]} locked */
export function roomFor(law, i, locked) {
  const held = law.reduce((total, x, j) => total + (j !== i && locked[j] ? x : 0), 0);
  return Math.max(0, 1 - held);
}

/**
 * Give one token another probability; the unlocked others keep their proportions.
 * @param {number[]} law @param {number} i @param {number} to @param {boolean[]} [locked]
 * @returns {number[]} sums to 1; the law itself where nothing can move
 */
export function movedTo(law, i, to, locked = []) {
  const others = law.flatMap((_, j) => (j !== i && !locked[j] ? [j] : []));
  if (locked[i] || !others.length || !Number.isFinite(to)) return law;
  const room = roomFor(law, i, locked), value = capped(to, 0, room);
  const before = others.reduce((total, j) => total + law[j], 0), left = Math.max(0, room - value);
  const out = [...law];
  out[i] = value;
  for (const j of others) out[j] = before > 1e-12 ? (law[j] * left) / before : left / others.length;
  const total = sum(out);
  return Math.abs(total - 1) < 1e-12 ? out : out.map((x) => x / total);
}

/** How the others changed: their common factor, for the words. */
export function factorOf(law, i, after, locked = []) {
  const j = law.findIndex((x, at) => at !== i && !locked[at] && x > 1e-12);
  return j < 0 ? NaN : after[j] / law[j];
}

/** With more or fewer tokens: a new one starts with nothing, what a last one had goes to the others. */
export function resized({ words, p, q }, size) {
  const n = capped(Math.trunc(size) || FEWEST, FEWEST, MOST);
  const fit = (law) => {
    const out = Array.from({ length: n }, (_, i) => law[i] ?? 0), total = sum(out);
    return total > 0 ? out.map((x) => x / total) : flat(n);
  };
  const unused = WORDS.filter((word) => !words.includes(word));
  return { words: Array.from({ length: n }, (_, i) => words[i] ?? unused.shift() ?? `⟨${i}⟩`), p: fit(p), q: fit(q) };
}

/** A law from outside, if it is one: what a model's trait holds. @returns {number[] | null} */
export function lawFrom(values, size) {
  if (!Array.isArray(values) || (size && values.length !== size) || values.length < FEWEST || values.length > MOST) return null;
  if (!values.every((x) => Number.isFinite(x) && x >= 0) || !(sum(values) > 0)) return null;
  return values.map((x) => x / sum(values));
}

/** The end of the bars' scale: a round number with room above the largest. */
export const scaleFor = (...laws) => [0.25, 0.5, 0.75].find((end) => Math.max(...laws.flat()) <= 0.9 * end) ?? 1;
