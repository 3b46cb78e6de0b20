// What there is to see at a step: everything that the views draw, and nothing else.

import { inBlocks, settleBlock } from "./block.js";
import { ACCEPTED, KINDS } from "./decode.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./timeline.js").Timeline} Timeline */
/**
 * @typedef {object} Frame
 * @property {number} step
 * @property {number} round
 * @property {"draft" | "verify" | "decide" | "close" | "rollback"} phase
 * @property {number} node      the proposal in question, within the round; -1 for none
 * @property {number} first     the round's first row in the table of proposals
 * @property {string[]} status of each proposal: hidden, ghost (waits for a verdict), asked (the one
 *                              in question, verdict not told), accepted, rejected, never
 * @property {string} closing   hidden, or the kind of the token that closed the round
 * @property {boolean} seenP    whether the target has looked
 * @property {boolean} concealed  the verdict in question is not told yet (predict mode)
 * @property {boolean} settled  whether the round is over: the text is what it added
 * @property {number} emitted   tokens in the text, those of this round included as far as they are
 *                              decided
 */

/**
 * @param {Data} data @param {Timeline} time @param {number} step
 * @param {boolean} [concealed] hide the verdict in question
 * @returns {Frame}
 */
export function frameAt(data, time, step, concealed = false) {
  const { round, phase, node } = time.at(step);
  const first = data.start[round],
    n = data.round.nodes[round];
  const status = new Array(n).fill("ghost");
  let emitted = data.outStart[round];
  const judged = phase === "draft" || phase === "verify" ? [] : time.examined(round);
  const hiding = concealed && phase === "decide";
  if (phase === "draft") for (let i = node + 1; i < n; i++) status[i] = "hidden";
  const blocks = inBlocks(data) && phase === "decide";
  if (blocks) {
    settleBlock(data, first, hiding ? node - 1 : node, n - 1, status);
    if (hiding) status[node] = "asked";
    for (let i = 0; i < n; i++)
      if (status[i] === "accepted" && data.node.emitted[first + i]) emitted++;
  } else
    for (const i of judged) {
      if (phase === "decide" && i === node && hiding) {
        status[i] = "asked";
        break;
      }
      const verdict = data.node.verdict[first + i];
      status[i] = verdict === ACCEPTED ? "accepted" : "rejected";
      if (verdict === ACCEPTED && data.node.emitted[first + i]) emitted++;
      if (phase === "decide" && i === node) break;
    }
  const over = phase === "close" || phase === "rollback";
  // in a tree a sibling may still be kept
  const decided =
    over || (phase === "decide" && !hiding && !data.isTree && status[node] === "rejected");
  if (decided) for (let i = 0; i < n; i++) if (status[i] === "ghost") status[i] = "never";
  if (over) emitted = data.outStart[round + 1];
  return {
    step,
    round,
    phase,
    node,
    first,
    status,
    emitted,
    closing: over ? KINDS[data.round.closing_kind[round]] : "hidden",
    seenP: phase !== "draft",
    concealed: hiding,
    settled: phase === "rollback",
  };
}

/**
 * Cache lengths at a frame, and what is marked in them.
 * @param {Data} data @param {Frame} frame @param {"target" | "draft"} which
 * @returns {{ before: number, now: number, peak: number, after: number, used: boolean }}
 */
export function cacheAt(data, frame, which) {
  const of = (/** @type {string} */ name) => data.round[`${which}_${name}`][frame.round];
  const before = of("before"),
    after = of("after");
  const peak = of(which === "target" ? "verified" : "proposed");
  const n = data.round.nodes[frame.round];
  let now = peak;
  if (frame.phase === "draft") {
    now = before;
    // a proposal is drawn from what is in the cache; it is fed only for the next one
    if (which === "draft") now = data.isTree ? peak : Math.max(before, peak - (n - 1 - frame.node));
  }
  if (frame.settled || (frame.phase === "close" && !n)) now = after;
  return { before, now, peak, after, used: peak > 0 };
}

/**
 * Seconds run until a frame, as measured; within the drafting in equal parts.
 * @param {Data} data @param {Frame} frame
 */
export function secondsAt(data, frame) {
  const r = frame.round,
    before = data.sums.seconds[r];
  const draft = data.round.draft_seconds[r],
    verify = data.round.verify_seconds[r];
  const n = data.round.nodes[r];
  if (frame.phase === "draft") return before + (draft * (frame.node + 1)) / n;
  if (frame.phase === "verify") return before + draft + verify;
  if (frame.settled || !n) return data.sums.seconds[r + 1];
  return before + draft + verify + data.round.other_seconds[r] / 2;
}

/**
 * The proposals from the root of the round's tree to one of them, itself last.
 * @param {Data} data @param {Frame} frame @param {number} node
 */
export function pathTo(data, frame, node) {
  const path = [];
  for (let i = node; i !== 65535 && i >= 0; i = data.node.parent[frame.first + i]) path.unshift(i);
  return path;
}
