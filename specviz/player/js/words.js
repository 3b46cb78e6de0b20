// The sentences of a step: looked up in the run, their blanks filled with tokens and numbers.

import { ACCEPTED, NONE, rowOf, tokenText } from "./decode.js";
import { apart, duration, inStep, is, number, quoted } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/** What is said at a step, in the order of the table. */
const WORDS = [
  "caption",
  "says",
  "title",
  "picture",
  "lines",
  "asked",
  "saysAsked",
  "question",
  "linesAsked",
];

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
    pq = at("ratio") ? inStep(p, q, a, au) : 2;
  return {
    text: tokenText(data, at("token")),
    p,
    q,
    a,
    u,
    overlap: at("overlap"),
    // as they are shown: enough digits that p / q gives a, and that u and a differ
    said: {
      p: number(p, pq),
      q: at("q_draw") === 0 ? "1" : number(q, pq),
      a: number(a, au),
      u: number(u, au),
    },
    kept: at("verdict") === ACCEPTED,
    oneHot: at("q_draw") === 0,
    emitted: at("emitted") === 1,
  };
}

/**
 * A sentence of a step, with this step's numbers.
 * @param {Data} data @param {Frame} frame
 * @param {"caption" | "says" | "title" | "asked" | "saysAsked" | "question"} which
 */
export function told(data, frame, which) {
  return fill(data, frame, data.header.words[data.step.words[frame.step]][WORDS.indexOf(which)]);
}

/** What is drawn of a step, and what is written into it. @param {Data} data @param {Frame} frame */
export function pictureAt(data, frame) {
  const words = data.header.words[data.step.words[frame.step]],
    lines = words[WORDS.indexOf(frame.concealed ? "linesAsked" : "lines")];
  return {
    name: words[WORDS.indexOf("picture")],
    lines: lines.map((one) => fill(data, frame, one)),
  };
}

/** The row that a step is about; at the end of a round that of its rejected or last proposal. */
export function rowInQuestion(data, frame) {
  const at = data.round.rejected[frame.round],
    last = frame.status.length - 1;
  return frame.first + (frame.node >= 0 ? frame.node : at === NONE ? last : at);
}

/** @param {Data} data @param {Frame} frame */
export function caption(data, frame) {
  return told(data, frame, frame.concealed ? "asked" : "caption");
}

/** The same for a screen reader: where one is, then the caption. @param {Data} data */
export function spoken(data, frame) {
  return `Round ${frame.round}. ${caption(data, frame)}`;
}

/** @param {Data} data @param {Frame} frame @param {string} template */
export function fill(data, frame, template) {
  return template.replace(/\{(=?)([a-z]+)(\d*)\}/g, (_, sign, name, index) => {
    const said = valueOf(data, frame, name, index);
    return sign ? is(said) : said;
  });
}

const OF_ROUND = {
  cp: ["closing_p", number],
  v: ["closing_u", number],
  verify: ["verify_seconds", duration],
  draft: ["draft_seconds", duration],
  peak: ["target_verified", String],
  after: ["target_after", String],
};
const OF_RACE = { first: "own_time", second: "own_second", late: "late" };

function valueOf(data, frame, name, index) {
  const r = frame.round,
    row = frame.first + Math.max(frame.node, 0),
    token = (/** @type {number} */ one) => quoted(tokenText(data, one));
  if (name === "x") return token(data.node.token[index ? frame.first + Number(index) : row]);
  if (["p", "q", "a", "u"].includes(name))
    return index
      ? number(data.node[name === "a" ? "acceptance" : name][row])
      : evidence(data, row).said[name];
  if (name === "c") return token(data.round.closing[r]);
  if (name === "mass") return number(massLeft(data, r));
  if (OF_ROUND[name]) return OF_ROUND[name][1](data.round[OF_ROUND[name][0]][r]);
  if (name === "ours") return duration(data.round.draft_seconds[r] + data.round.verify_seconds[r]);
  if (name === "alone") return duration((data.round.nodes[r] + 1) * data.header.baseline.seconds);
  const overlap = data.node.overlap[rowInQuestion(data, frame)];
  if (name === "over" || name === "left") return number(name === "over" ? overlap : 1 - overlap);
  const own = data.node.own[row];
  if (name === "own") return own === NONE ? "another one" : token(own);
  if (OF_RACE[name]) return number(data.node[OF_RACE[name]][row]);
  const most = Math.max(...rowOf(data, "node", "top_p", row));
  return number(name === "gap" ? most - data.node.p[row] : most);
}

/** 1 − Σ min(p, q) at the proposal whose rejection a round's residual follows, or NaN. */
export function massLeft(data, r) {
  const at = data.round.rejected[r];
  return at === NONE ? NaN : 1 - data.node.overlap[data.start[r] + at];
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
