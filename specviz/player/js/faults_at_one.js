// Planted faults that show at one position: each replaces one part of the program and leaves the
// rest as it is. Names are those of Python's lossless/faults where it has them.

import { oneHot, ratioAt, residualDistribution, sum } from "./one_position.js";

const divided = (distribution, mass = sum(distribution)) => distribution.map((x) => x / mass);
const orP = (distribution, p) => (sum(distribution) > 0 ? divided(distribution) : [...p]);
const best = (distribution, n) =>
  distribution
    .map((_, i) => i)
    .sort((a, b) => distribution[b] - distribution[a] || a - b)
    .slice(0, n);
const picked = (draft, order) => ({
  tokens: order.map((i) => draft.tokens[i]),
  distributions: order.map((i) => draft.distributions[i]),
  spans: order.map((i) => draft.spans[i]),
});

/** The residual as it is, not scaled up to 1: draws beyond its end fall on the last token. */
function unscaled(p, q) {
  const left = p.map((x, i) => Math.max(0, x - q[i]));
  left[left.length - 1] += 1 - sum(left);
  return left;
}

export const GRID = 16;

const of = (name, group, wrong, parts) => ({ name, group, wrong, ...parts });
const KEEP = "accepted or not",
  INSTEAD = "what comes instead",
  REPORT = "the distribution that is reported",
  TWO = "two candidates";

/** Every fault: name, group, what is done wrong, and the part that does it. */
export const FAULTS_AT_ONE = [
  of("bare_threshold", KEEP, "accepted if u < p(x): the draft's distribution is forgotten", {
    chance: (p, _, x) => p[x],
  }),
  of("ratio_upside_down", KEEP, "accepted with min(1, q / p): target and draft are swapped", {
    chance: (p, q, x) => (p[x] > 0 ? Math.min(1, q[x] / p[x]) : 1),
  }),
  of("no_draw", KEEP, "accepted if p(x) ≥ q(x), without a draw", {
    chance: (p, q, x) => (p[x] >= q[x] ? 1 : 0),
  }),
  of("always_accept", KEEP, "every proposal is accepted", { chance: () => 1 }),
  of(
    "less_or_equal",
    KEEP,
    `accepted if u ≤ p / q, with a u that has only ${GRID} values, 0 among them`,
    { grid: GRID },
  ),
  of("same_u_twice", KEEP, "the number that drew the proposal judges it too", { sameU: true }),
  of("resample_from_p", INSTEAD, "the correction is a fresh draw from p", { correction: (p) => p }),
  of("residual_absolute_difference", INSTEAD, "the residual is |p − q|, not cut at 0", {
    correction: (p, q) =>
      orP(
        p.map((x, i) => Math.abs(x - q[i])),
        p,
      ),
  }),
  of(
    "residual_not_scaled",
    INSTEAD,
    "the residual is not scaled up to 1: draws past its end fall on the last token",
    { correction: unscaled },
  ),
  of("p_without_the_rejected_token", INSTEAD, "the correction is drawn from p without x", {
    correction: (p, _, x) =>
      orP(
        p.map((one, i) => (i === x ? 0 : one)),
        p,
      ),
  }),
  of("correction_from_the_draft", INSTEAD, "the correction is a second draw from q", {
    correction: (_, q) => q,
  }),
  of("greedy_draft_soft_q", REPORT, "the draft proposes its favourite but reports a soft q", {
    drawsFrom: (distribution) => oneHot(distribution.length, best(distribution, 1)[0]),
  }),
  of("q_before_top_k", REPORT, "proposals come from the top 2, q is taken before that cut", {
    drawsFrom: (distribution) =>
      ((two) => divided(distribution.map((x, i) => (two.includes(i) ? x : 0))))(
        best(distribution, 2),
      ),
  }),
  of("q_before_temperature", REPORT, "proposals are drawn colder than the q reported", {
    drawsFrom: (distribution) => divided(distribution.map((x) => x * x)),
  }),
  of(
    "uniform_q",
    REPORT,
    "the draft's distribution never reaches the verifier, which takes it as flat",
    {
      reports: (draft) => ({
        ...draft,
        distributions: draft.distributions.map((distribution) =>
          distribution.map(() => 1 / distribution.length),
        ),
      }),
    },
  ),
  of("sure_proposals_only", REPORT, "a proposal is dropped because its own q is below 1/2", {
    reports: (draft) => (draft.distributions[0][draft.tokens[0]] < 0.5 ? picked(draft, []) : draft),
  }),
  of("siblings_deduplicated", TWO, "a candidate drawn twice is tried once", {
    way: "two_with",
    reports: (draft) => (draft.tokens[0] === draft.tokens[1] ? picked(draft, [0]) : draft),
  }),
  of("siblings_by_confidence", TWO, "candidates are tried by confidence, not as drawn", {
    way: "two_without",
    reports: (draft) =>
      draft.tokens.length > 1 &&
      draft.distributions[0][draft.tokens[1]] > draft.distributions[0][draft.tokens[0]]
        ? picked(draft, [1, 0])
        : draft,
  }),
  of(
    "siblings_one_distribution",
    TWO,
    "the second candidate is reported with the first one's distribution",
    {
      way: "two_without",
      reports: (draft) => ({
        ...draft,
        distributions: draft.distributions.map(() => draft.distributions[0]),
      }),
    },
  ),
];

/** @param {string | null | undefined} name @returns {any} null for none, or an unknown name */
export const faultAtOne = (name) => FAULTS_AT_ONE.find((fault) => fault.name === name) ?? null;

/** The setting that a fault needs: its own way of proposing, where it has one. */
export const settingOf = (way, name) => {
  const fault = faultAtOne(name);
  const own = fault?.way ?? (fault && way !== "one" ? "one" : way);
  return { way: own, fault };
};

/** What a right decoder would have done in the fault's place: for the words. */
export const rightly = (p, q, x) => ({
  chance: ratioAt(p, q, x),
  correction: residualDistribution(p, q),
});
