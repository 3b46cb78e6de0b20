// What there is to see at a step: everything that the views draw, and nothing else.

import { KINDS } from "./decode.js";

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

const FATES = ["never", "accepted", "rejected"];

/**
 * @param {Data} data @param {Timeline} time @param {number} step
 * @param {boolean} [concealed] hide the verdict in question
 * @returns {Frame}
 */
export function frameAt(data, time, step, concealed = false) {
  const { round, phase, node } = time.at(step);
  const first = data.start[round],
    k = step - time.start[round];
  const over = phase === "close" || phase === "rollback",
    hiding = concealed && phase === "decide";
  let emitted = data.outStart[round];
  const status = Array.from({ length: data.round.nodes[round] }, (_, i) => {
    if (phase === "draft" && i > node) return "hidden";
    if (hiding && i === node) return "asked";
    if (k - (hiding ? 1 : 0) < data.node.settled[first + i]) return "ghost";
    const fate = FATES[data.node.verdict[first + i]];
    if (fate === "accepted" && data.node.emitted[first + i]) emitted++;
    return fate;
  });
  return {
    step,
    round,
    phase,
    node,
    first,
    status,
    emitted: over ? data.outStart[round + 1] : emitted,
    closing: over ? KINDS[data.round.closing_kind[round]] : "hidden",
    seenP: phase !== "draft",
    concealed: hiding,
    settled: phase === "rollback",
  };
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
