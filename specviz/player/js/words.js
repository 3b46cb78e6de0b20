// Numbers and sentences: what the captions and the screen reader say at a step.

import { inBlocks, keptOf, passes } from "./block.js";
import { ACCEPTED, NONE, rowOf, tokenText } from "./decode.js";
import { secondsAt } from "./frame.js";
import { looksAtP } from "./judging.js";
import { apart, count, duration, inStep, is, number, quoted } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/**
 * The numbers of a proposal, as the rule used them.
 * @param {Data} data @param {number} row of the table of proposals
 */
export function evidence(data, row) {
  const at = (/** @type {string} */ name) => data.node[name][row];
  const p = at("p"),
    q = at("q"),
    a = at("acceptance"),
    u = at("u");
  const au = apart(a, u),
    ratio = q > 0 && a < 1 && Math.abs(p - a * q) <= 1e-5 * p;
  const pq = ratio ? inStep(p, q, a, au) : 2;
  return {
    text: tokenText(data, at("token")),
    p,
    q,
    a,
    u,
    overlap: at("overlap"),
    ratio,
    // as they are shown: enough digits that p / q gives a, and that u and a differ
    said: {
      p: number(p, pq),
      q: at("q_draw") === 0 ? "1" : number(q, pq),
      a: number(a, au),
      u: number(u, au),
    },
    kept: at("verdict") === ACCEPTED,
    verdict: at("verdict"),
    oneHot: at("q_draw") === 0,
    own: ownOf(data, row),
    emitted: at("emitted") === 1,
  };
}

/** The target's own token at a proposal: of its race, or at temperature 0 its most likely one. */
function ownOf(data, row) {
  if (data.header.rule !== "greedy") return data.node.own[row];
  const ids = rowOf(data, "node", "top", row),
    p = rowOf(data, "node", "top_p", row);
  let best = NONE,
    most = 0;
  for (let i = 0; i < ids.length; i++)
    if (ids[i] !== NONE && p[i] > most) ((best = ids[i]), (most = p[i]));
  return best;
}

/**
 * One or two sentences about a frame, with this token's numbers.
 * @param {Data} data @param {Frame} frame
 */
export function caption(data, frame) {
  const n = data.round.nodes[frame.round];
  if (frame.phase === "draft") return drafted(data, frame, n);
  if (frame.phase === "verify") return verified(data, frame, n);
  if (frame.phase === "decide") return judged(data, frame);
  if (frame.phase === "close") return closed(data, frame, n);
  return rolledBack(data, frame, n);
}

function drafted(data, frame, n) {
  const { text, said, oneHot } = evidence(data, frame.first + frame.node);
  const which = n === 1 ? "" : ` (${frame.node + 1} of ${n})`;
  if (oneHot) return `The draft chooses ${quoted(text)} without a draw: it has q = 1${which}.`;
  return (
    `The draft samples ${quoted(text)} from its own distribution, q ${is(said.q)}${which}. ` +
    "The target has not checked it yet."
  );
}

function verified(data, frame, n) {
  const took = data.round.verify_seconds[frame.round];
  const time = took > 0 ? ` It took ${duration(took)}` : "";
  if (!n)
    return (
      "Nothing was proposed: one pass of the target gives the distribution p of the next " +
      `token.${time && time + "."}`
    );
  const draft = data.round.draft_seconds[frame.round];
  const beside =
    time && draft > 0 ? `${time}; drafting took ${duration(draft)}.` : time && time + ".";
  const what = n === 1 ? "the proposal" : `all ${n} proposals at once`;
  return (
    `One pass of the target reads ${what} and gives ${count(n + 1, "distribution")} p: ` +
    `one before the first and one after each.${beside}`
  );
}

function judged(data, frame) {
  const row = frame.first + frame.node;
  const it = evidence(data, row);
  const token = quoted(it.text);
  if (!data.header.judged_by_u) return byToken(data, it, token, frame);
  const who = laterSibling(data, frame)
    ? "what its rejected siblings leave of the target"
    : "the target";
  const gave = it.oneHot
    ? `The draft chose ${token} without a draw (q = 1), ${who} gives it p ${is(it.said.p)}`
    : `The draft gave ${token} q ${is(it.said.q)}, ${who} p ${is(it.said.p)}`;
  if (inBlocks(data))
    return (
      `${gave}. ` +
      (frame.concealed
        ? `Does test ${frame.node + 1} of ${frame.status.length} pass?`
        : testedInBlock(data, frame))
    );
  const how = it.ratio && !it.oneHot ? "p / q " : "";
  const chance =
    it.a >= 1
      ? "so it is always accepted"
      : `so it is accepted with probability ${how ? how + is(it.said.a) : it.said.a}`;
  if (frame.concealed) return `${gave}. Accepted or rejected?`;
  const end = `The draw was u ${is(it.said.u)}: ${it.kept ? "accepted" : "rejected"}.`;
  const rest =
    it.kept || data.isTree || !left(data, frame) ? "" : " Everything after it is discarded.";
  return `${gave}, ${chance}. ${end}${rest}`;
}

/**
 * A block's test at a position, and what is settled by then.
 * @param {Data} data
 * @param {Frame} frame
 */
export function testedInBlock(data, frame) {
  const row = frame.first + frame.node,
    n = frame.status.length,
    pass = passes(data, row);
  const falls = pass ? "falls below" : "does not fall below",
    { said } = evidence(data, row);
  const test =
    `Test ${frame.node + 1} of ${n}: u = ${said.u} ${falls} h = ${said.a}, it ` +
    `${pass ? "passes" : "does not pass"}.`;
  return `${test} ${settledInBlock(data, frame, pass)}`;
}

function settledInBlock(data, frame, pass) {
  const n = frame.status.length;
  if (frame.node < n - 1)
    return pass
      ? "Everything up to it is accepted; a later one that passes keeps more."
      : "That does not settle it: the last position that passes decides.";
  if (pass)
    return n === 1 ? "It is accepted." : "It is the last one, so the whole block is accepted.";
  const kept = keptOf(data, frame);
  if (!kept)
    return n === 1 ? "It is rejected." : "No position passes: the whole block is rejected.";
  const last = quoted(tokenText(data, data.node.token[frame.first + kept - 1]));
  return (
    `The last that passes is position ${kept} (${last}): everything up to it is accepted, ` +
    "the rest is rejected."
  );
}

function byToken(data, it, token, frame) {
  const { rule } = data.header,
    raced = !looksAtP(data);
  // a race is run over p itself, also for a later sibling
  const gives = number(rule === "match" || rule === "coupled" ? it.a : it.p);
  if (!raced)
    return frame.concealed
      ? `The draft proposed ${token}; the target gives it ${gives}. Is that enough?`
      : `The draft proposed ${token}; the target gives it ${gives}, which is ` +
          `${it.kept ? "enough: accepted" : "too little: rejected"}.`;
  const does = rule === "greedy" ? "takes its most likely token" : "draws its own token";
  if (frame.concealed)
    return rule === "greedy"
      ? `The draft proposed ${token}; the target ${does} here. The same one?`
      : `The draft proposed ${token}; the target gives it ${gives} and ${does} here. The same one?`;
  const own = it.own === NONE ? "" : tokenText(data, it.own);
  if (it.kept) return `The target's own token here is ${token} too (p = ${gives}): accepted.`;
  return (
    `The draft proposed ${token}; the target's own token here is ` +
    `${own ? quoted(own) : "another one"}: rejected.`
  );
}

/** Whether a candidate for the same place was rejected before: p is then a residual. */
function laterSibling(data, frame) {
  const parent = data.node.parent[frame.first + frame.node];
  for (let i = 0; i < frame.node; i++)
    if (data.node.parent[frame.first + i] === parent && data.node.verdict[frame.first + i] === 2)
      return true;
  return false;
}

function left(data, frame) {
  return data.round.nodes[frame.round] - 1 - frame.node;
}

function closed(data, frame, n) {
  const r = frame.round;
  const token = quoted(tokenText(data, data.round.closing[r]));
  const p = number(data.round.closing_p[r]);
  if (!data.round.closing_emitted[r])
    return `The text had already ended: ${token} is not part of it.`;
  if (frame.closing === "plain") return `The target samples ${token} itself, p ${is(p)}.`;
  if (frame.closing === "bonus") {
    const kept = data.isTree
      ? "A whole branch was accepted"
      : n === 1
        ? "It was accepted"
        : `All ${n} were accepted`;
    return (
      `${kept}, so the same pass gives one more token, the bonus: ${token}, sampled from ` +
      `p after the last one (p ${is(p)}).`
    );
  }
  const row = rejectedRow(data, frame);
  if (data.header.rule === "block")
    return (
      "The rest is replaced by one token sampled from the residual of the accepted block: " +
      `${token}, which has probability ${p} there.`
    );
  if (looksAtP(data))
    return (
      `It is replaced by a token sampled from the target's own distribution: ${token}, p ` +
      `= ${p}.`
    );
  if (!data.header.judged_by_u) return `It is replaced by the target's own token: ${token}.`;
  const mass = row < 0 ? NaN : 1 - data.node.overlap[row];
  const scaled = mass > 0 ? `, divided by ${number(mass)} so that it sums to 1` : "";
  return (
    `It is replaced by a token sampled from the residual max(0, p − q)${scaled}: ` +
    `${token}, which has probability ${p} there.`
  );
}

/**
 * The rejected proposal whose residual closes a round: the last one tried after what was kept; -1
 * if none.
 */
export function rejectedRow(data, frame) {
  let found = -1,
    end = NONE;
  const first = data.start[frame.round],
    last = data.start[frame.round + 1];
  for (let i = first; i < last; i++) if (data.node.verdict[i] === ACCEPTED) end = i - first;
  for (let i = first; i < last; i++)
    if (data.node.verdict[i] === 2 && data.node.parent[i] === end) found = i;
  return found;
}

function rolledBack(data, frame, n) {
  const r = frame.round;
  const gave = data.outStart[r + 1] - data.outStart[r];
  const gone = n - (data.sums.accepted[r + 1] - data.sums.accepted[r]);
  const peak = data.round.target_verified[r],
    after = data.round.target_after[r];
  const forgets =
    peak > after
      ? ` The target's cache is cut back from ${peak} to ${after} tokens.`
      : " The target's cache needs no cut.";
  const thrown = gone
    ? ` ${count(gone, "proposal")} ${gone === 1 ? "was" : "were"} thrown away.`
    : "";
  return `This pass of the target gave ${count(gave, "token")}.${thrown}${forgets}`;
}

/**
 * The same for a screen reader: where one is, then the caption.
 * @param {Data} data @param {Frame} frame
 */
export function spoken(data, frame) {
  return `Round ${frame.round}. ${caption(data, frame)}`;
}

/**
 * Tokens that the target alone would have by now, from its time per token.
 * @param {Data} data @param {Frame} frame
 */
export function aloneAt(data, frame) {
  const baseline = data.header.baseline;
  return baseline ? secondsAt(data, frame) / baseline.seconds : NaN;
}

/**
 * Tokens and probabilities of a distribution, likeliest first.
 * @returns {{ token: number, p: number, lo: number }[]}
 */
export function distributionRows(data, table, name, row) {
  const ids = rowOf(data, table, name, row);
  const p = rowOf(data, table, `${name}_p`, row),
    lo = rowOf(data, table, `${name}_lo`, row);
  const found = [];
  for (let i = 0; i < ids.length; i++)
    if (ids[i] !== NONE && p[i] > 0) found.push({ token: ids[i], p: p[i], lo: lo[i] });
  return found;
}
