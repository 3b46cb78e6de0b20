// Runs made by hand: small enough to say by heart what the player must show.

import { indexed, NONE } from "../../../specviz/player/js/decode.js";
import { PHASES, timeline } from "../../../specviz/player/js/timeline.js";

const F = Float32Array,
  U = Uint16Array,
  B = Uint8Array,
  I = Int32Array;
const K = 3,
  M = 2;

/**
 * A run of chains or trees. A round is { nodes: [[word, verdict, p, q, u, parent?]], closing: word,
 * kind }, a node may go on with [own token, its arrival, the proposal's arrival in the draft's race],
 * verdicts 0 never examined, 1 accepted, 2 rejected; kinds 0 plain, 1 correction, 2 bonus.
 */
export function run(rounds, more = {}) {
  const strings = [];
  const id = (word) => {
    if (!strings.includes(word)) strings.push(word);
    return strings.indexOf(word);
  };
  const flat = rounds.flatMap((r) => r.nodes.map((n, i) => ({ n, i })));
  const of = (pick) => flat.map(({ n, i }) => pick(n, i));
  const wide = (pick) => flat.flatMap(({ n }) => pick(n));
  id("other");
  const node = {
    token: U.from(of((n) => id(n[0]))),
    parent: U.from(
      of((n, i) => (n[5] === undefined ? i - 1 : n[5])).map((p) => (p < 0 ? NONE : p)),
    ),
    verdict: B.from(of((n) => n[1])),
    emitted: B.from(of((n) => (n[1] === 1 ? 1 : 0))),
    q_draw: B.from(of(() => more.draw ?? 1)),
    own: U.from(of((n) => (n[6] === undefined ? NONE : id(n[6])))),
    settled: U.from(of(() => 0)),
    ratio: B.from(of((n) => (n[2] < n[3] ? 1 : 0))),
    late: F.from(of((n) => ((n[8] ?? NaN) * n[3]) / n[2])),
    p: F.from(of((n) => n[2])),
    q: F.from(of((n) => n[3])),
    acceptance: F.from(of((n) => Math.min(1, n[2] / n[3]))),
    u: F.from(of((n) => n[4])),
    overlap: F.from(of((n) => 1 - Math.abs(n[2] - n[3]))),
    q_u: F.from(of(() => 0.5)),
    q_time: F.from(of((n) => n[8] ?? NaN)),
    q_second: F.from(of((n) => (n[8] ?? NaN) * 2)),
    own_time: F.from(of((n) => (n[6] === undefined ? NaN : (n[7] ?? 0.1)))),
    own_second: F.from(of((n) => (n[6] === undefined ? NaN : 0.3))),
    top: U.from(wide((n) => [id(n[0]), id("other"), NONE])),
    top_p: F.from(wide((n) => [n[2], 0.9 * (1 - n[2]), 0])),
    top_q: F.from(wide((n) => [n[3], 0.9 * (1 - n[3]), 0])),
    top_lo: F.from(wide((n) => [0, n[3], 0])),
    tail_p: F.from(wide((n) => [0.1 * (1 - n[2]), 0])),
    tail_q: F.from(wide((n) => [0.05 * (1 - n[3]), 0.05 * (1 - n[3])])),
    residual: U.from(wide(() => [id("other"), id("else")])),
    residual_p: F.from(wide(() => [0.75, 0.2])),
    residual_lo: F.from(wide(() => [0.2, 0])),
  };
  let position = more.prompt ?? 2;
  const column = (pick) => rounds.map(pick);
  const emitted = column((r) => r.nodes.filter((n) => n[1] === 1).length + 1);
  const positions = emitted.map((n) => (position += n) - n);
  const round = {
    position: I.from(positions),
    nodes: I.from(column((r) => r.nodes.length)),
    closing: U.from(column((r) => id(r.closing))),
    rejected: U.from(
      column((r) => {
        const at = r.nodes.findLastIndex((n) => n[1] === 2);
        return at < 0 ? NONE : at;
      }),
    ),
    closing_kind: B.from(column((r) => r.kind)),
    closing_emitted: B.from(column((r) => (r.cut ? 0 : 1))),
    closing_draw: B.from(column((r) => r.how ?? 1)),
    closing_p: F.from(column(() => 0.25)),
    closing_u: F.from(column((r) => r.v ?? 0.5)),
    closing_lo: F.from(column(() => 0.4)),
    closing_hi: F.from(column(() => 0.65)),
    closing_time: F.from(column(() => 0.1)),
    closing_second: F.from(column(() => 0.2)),
    distribution: U.from(rounds.flatMap((r) => [id(r.closing), id("other")])),
    distribution_p: F.from(rounds.flatMap(() => [0.25, 0.5])),
    distribution_lo: F.from(rounds.flatMap(() => [0.4, 0.65])),
    target_before: I.from(positions.map((p) => p - 1)),
    target_verified: I.from(column((r, k) => positions[k] + r.nodes.length)),
    target_after: I.from(column((r, k) => positions[k] + emitted[k] - 1)),
    draft_before: I.from(positions.map((p) => p - 1)),
    draft_proposed: I.from(column((r, k) => positions[k] + Math.max(0, r.nodes.length - 1))),
    draft_after: I.from(
      column((r, k) =>
        Math.min(positions[k] + emitted[k] - 1, positions[k] + Math.max(0, r.nodes.length - 1)),
      ),
    ),
    draft_seconds: F.from(column((r) => 0.001 * r.nodes.length)),
    verify_seconds: F.from(column(() => 0.01)),
    other_seconds: F.from(column(() => 0)),
  };
  const rule = more.rule ?? "rejection";
  const header = {
    rounds: rounds.length,
    nodes: flat.length,
    strings,
    pieces: {},
    prompt: "Once upon",
    prompt_length: more.prompt ?? 2,
    rule,
    rule_label: "rejection (lossless)",
    judged_by_u: more.judged ?? true,
    label: "draft model",
    baseline: { seconds: 0.01, measured: false },
    hints: {
      decides:
        rule === "block"
          ? "block"
          : (more.judged ?? true)
            ? "u"
            : rule === "typical"
              ? "p"
              : "token",
      models: { draft: ["Draft", "guesses"], target: ["Target", "checks"] },
      opening: "A draft guesses, a target checks.",
      why: ["Why", "{over} and {left}"],
      asks: "u < p / q",
      chance: "min(1, p / q)",
      instead: "from the residual",
      hint: "u = {u2}",
      siblings: "",
    },
    words: WORDS,
    trees: [{ root: 0, at: 0, nodes: [], folds: [], leaves: 1, levels: 1 }],
    opening: 0,
  };
  const width = {
    top: K,
    top_p: K,
    top_q: K,
    top_lo: K,
    tail_p: 2,
    tail_q: 2,
    residual: M,
    residual_p: M,
    residual_lo: M,
    distribution: M,
    distribution_p: M,
    distribution_lo: M,
  };
  const step = stepsOf(rounds, node, round, header.rule);
  if (flat.some(({ n, i }) => (n[5] ?? i - 1) !== i - 1)) header.trees = treesOf(rounds);
  const data = indexed(header, node, round, step, width);
  return { data, time: timeline(data) };
}

/** What is said, in a few words: the sentences themselves are Python's, and tested there. */
const ASKED = [
  "{x} q {=q} p {=p}. Accepted or rejected?",
  "Hidden.",
  "q = {q}, p = {p}. Accepted or rejected?",
  ["?"],
];
const judged = (mark, verdict, then) => [
  `{x} q {=q} p {=p} a {=a}, u {=u}: ${verdict}.`,
  `u {=u}: ${verdict}.${then}`,
  "p and q",
  "u",
  [`${mark} ${verdict}`, "q {q}", "p {p}", "u {u}"],
  ...ASKED,
];
const closes = (caption, picture) => [
  caption,
  "The draw {v} falls on {c}.",
  "closing",
  picture,
  ["{c}"],
];
const WORDS = [
  ["{x} drafted, q {=q}.", "{x} was drawn.", "draft q", "rows", ["q"]],
  ["One pass.", "Next.", "p and q", "passes", ["one", "many"]],
  judged("✓", "accepted", ""),
  judged("✗", "rejected", " {c} is next."),
  closes("Closed with {c}, p {=cp}.", "drawn"),
  closes("From {peak} to {after}.", "caches"),
];

/** The table of steps, written down as the rounds go. */
function stepsOf(rounds, node, round, rule) {
  const rows = [];
  let first = 0;
  rounds.forEach((one, r) => {
    const n = one.nodes.length,
      depth = [],
      made = [];
    const add = (phase, i, words, target, draft) =>
      made.push({ phase: PHASES.indexOf(phase), node: i < 0 ? NONE : i, words, target, draft });
    const grown = (which, end) => round[`${which}_${end}`][r] - round[`${which}_before`][r];
    const [verified, proposed] = [grown("target", "verified"), grown("draft", "proposed")];
    one.nodes.forEach((x, i) => {
      depth.push((x[5] ?? i - 1) < 0 ? 0 : depth[x[5] ?? i - 1] + 1);
      add("draft", i, 0, 0, Math.max(0, proposed - (n - 1 - i)));
    });
    add("verify", -1, 1, verified, proposed);
    const judged = one.nodes.map((_, i) => i).filter((i) => one.nodes[i][1]);
    judged.sort((a, b) => depth[a] - depth[b] || a - b);
    for (const i of judged) {
      node.settled[first + i] = made.length;
      add("decide", i, one.nodes[i][1] === 1 ? 2 : 3, verified, proposed);
    }
    if (rule === "block")
      judged.forEach((i) => {
        const passed = judged.filter(
          (j) => j >= i && one.nodes[j][4] < one.nodes[j][2] / one.nodes[j][3],
        );
        node.settled[first + i] =
          one.nodes[i][1] === 1 && passed.length ? n + 1 + passed[0] : 2 * n;
      });
    const tree = one.nodes.some((x, i) => (x[5] ?? i - 1) !== i - 1),
      turned = tree || rule === "block" ? -1 : judged.find((i) => one.nodes[i][1] === 2);
    one.nodes.forEach((x, i) => {
      if (!x[1]) node.settled[first + i] = turned >= 0 ? node.settled[first + turned] : made.length;
    });
    add(
      "close",
      -1,
      4,
      n ? verified : grown("target", "after"),
      n ? proposed : grown("draft", "after"),
    );
    if (n) add("rollback", -1, 5, grown("target", "after"), grown("draft", "after"));
    first += n;
    rows.push(...made);
  });
  const column = (name) => rows.map((one) => one[name]);
  return {
    phase: B.from(column("phase")),
    node: U.from(column("node")),
    words: U.from(column("words")),
    target_new: I.from(column("target")),
    draft_new: I.from(column("draft")),
    tree: U.from(rows.map(() => 0)),
  };
}

/** A window that shows every proposal of the first round, each on a line of its own. */
function treesOf(rounds) {
  const { nodes } = rounds[0],
    n = nodes.length,
    level = [];
  nodes.forEach((x) => level.push(x[5] < 0 ? 1 : level[x[5]] + 1));
  return [
    {
      root: n,
      at: 0,
      nodes: nodes.map((x, i) => [i, x[5] < 0 ? n : x[5], level[i], i]),
      folds: [],
      leaves: n,
      levels: Math.max(...level),
    },
  ];
}

/** Three rounds: one with a rejection, one without proposals, one with a bonus. */
export const story = () =>
  run([
    {
      nodes: [
        [" a", 1, 0.6, 0.5, 0.3],
        [" fox", 2, 0.31, 0.62, 0.71],
        [" who", 0, 0.4, 0.5, 0.1],
      ],
      closing: " cat",
      kind: 1,
    },
    { nodes: [], closing: " sat", kind: 0 },
    {
      nodes: [
        [" down", 1, 0.5, 0.5, 0.9],
        [".", 1, 0.9, 0.3, 0.2],
      ],
      closing: " Then",
      kind: 2,
    },
  ]);

/** One round with a tree: two candidates for the first place, one and two behind them. */
export const tree = () =>
  run([
    {
      nodes: [
        [" a", 2, 0.2, 0.5, 0.9, -1],
        [" the", 1, 0.6, 0.4, 0.1, -1],
        [" cat", 0, 0.3, 0.3, 0.5, 0],
        [" dog", 2, 0.1, 0.6, 0.8, 1],
        [" fox", 1, 0.5, 0.4, 0.2, 1],
      ],
      closing: " ran",
      kind: 2,
    },
  ]);
