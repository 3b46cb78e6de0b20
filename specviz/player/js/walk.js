// What would follow from another u: the rule's walk over the proposals with the draws on record.
//
// Every proposal has its own u and its acceptance probability on record, examined or not; a later
// sibling's is against what its earlier siblings leave of p, and it is tried only if they were all
// rejected. So the walk is known to its end; the distribution that closes it may not be.

import { blockAt, inBlocks, keptOf, passes } from "./block.js";
import { tokenText } from "./decode.js";
import { number, quoted } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */
/**
 * @typedef {object} Walk
 * @property {{ node: number, u: number, a: number, kept: boolean, sibling: boolean }[]} told
 *   the proposals judged from the one in question on, itself first
 * @property {"p" | "residual" | "unknown"} distribution  what the closing token would come from
 * @property {number} node    after which proposal, or after whose rejection
 * @property {boolean} same   whether it is the distribution that did close the round
 * @property {boolean} placed whether the closing token would stand where it did stand
 */

/** The first child of a node, or its next sibling: the next index with that parent. */
function nextOf(data, frame, parent, after) {
  for (let i = after + 1; i < frame.status.length; i++)
    if (data.node.parent[frame.first + i] === parent) return i;
  return -1;
}

/** Whether a rule walks from verdict to verdict. @param {Data} data */
export function oneByOne(data) {
  return !inBlocks(data);
}

/**
 * @param {Data} data @param {Frame} frame @param {number} u for the proposal in question
 * @returns {Walk}
 */
export function walkAt(data, frame, u) {
  const told = [],
    at = (/** @type {string} */ name, /** @type {number} */ i) => data.node[name][frame.first + i];
  let node = frame.node,
    up = at("parent", node),
    sibling = false;
  /** @type {Walk["distribution"]} */
  let distribution;
  for (;;) {
    const a = at("acceptance", node),
      own = told.length ? at("u", node) : u;
    if (!(a >= 0 && own >= 0)) {
      distribution = "unknown";
      break;
    }
    const kept = own < a;
    told.push({ node, u: own, a, kept, sibling });
    if (kept) up = node;
    sibling = !kept;
    const next = nextOf(data, frame, up, node);
    if (next < 0) {
      distribution = kept ? "p" : "residual";
      break;
    }
    node = next;
  }
  const r = frame.round,
    depth = data.depth[frame.first + node] + (distribution === "p" ? 1 : 0);
  const accepted = data.sums.accepted[r + 1] - data.sums.accepted[r];
  const last = lastOf(data, frame);
  return {
    told,
    distribution,
    node,
    placed: depth === accepted,
    same: last.node === node && last.distribution === distribution,
  };
}

/** Where the walk that happened ended. */
function lastOf(data, frame) {
  let node = -1;
  for (let i = 0; i < frame.status.length; i++) if (data.node.verdict[frame.first + i]) node = i;
  if (node < 0) return { node, distribution: "p" };
  return { node, distribution: data.node.verdict[frame.first + node] === 1 ? "p" : "residual" };
}

/**
 * What another u would do to a block, in words.
 * @param {Data} data
 * @param {Frame} frame
 * @param {number} u
 */
export function blockSaid(data, frame, u) {
  const kept = blockAt(data, frame, u),
    was = keptOf(data, frame),
    row = frame.first + frame.node;
  const name = (/** @type {number} */ k) =>
    `position ${k} (${quoted(tokenText(data, data.node.token[frame.first + k - 1]))})`;
  const pass = u < data.node.acceptance[row],
    still = pass === passes(data, row) ? " still" : "";
  const test =
    `What if u were ${number(u)}? Test ${frame.node + 1} would${still} ` +
    `${pass ? "pass" : "not pass"}.`;
  if (kept === was)
    return (
      `${test} ` +
      (kept
        ? `The last that passes would still be ${name(kept)}`
        : "Still no position would pass") +
      ": " +
      "nothing else would change."
    );
  const upTo = kept
    ? `The last that passes would be ${name(kept)}: everything up to it would be accepted.`
    : "No position would pass: the whole block would be rejected.";
  const distribution =
    kept === frame.status.length ? `p after ${name(kept)}` : "what that leaves of p, less q";
  return (
    `${test} ${upTo} The closing token would come from ${distribution}: which one is not ` +
    "on record."
  );
}

/**
 * The walk in words, after the verdict in question.
 * @param {Data} data @param {Frame} frame @param {Walk} walk
 */
export function walked(data, frame, walk) {
  const name = (/** @type {number} */ i) =>
    quoted(tokenText(data, data.node.token[frame.first + i]));
  const out = walk.told.slice(1).map((one) => {
    const how = one.sibling
      ? `Its sibling ${name(one.node)} is tried against the residual of p`
      : data.isTree
        ? `The walk descends to ${name(one.node)}`
        : `Next ${name(one.node)}`;
    return (
      `${how}: u = ${number(one.u)} ${one.kept ? "<" : "≥"} ${number(one.a)}, ` +
      `${one.kept ? "accepted" : "rejected"}.`
    );
  });
  if (walk.distribution === "unknown")
    out.push(`Whether ${name(walk.node)} would be accepted is not on record.`);
  else if (walk.distribution === "p")
    out.push(
      "The closing token would come from p after " +
        `${name(walk.node)}${walk.same ? ", as it did." : ", which is not on record."}`,
    );
  return out.join(" ");
}
