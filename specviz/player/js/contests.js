// What decides where nothing is compared with a u: the target's race for its own token, the
// draft's race with the same noise, or at temperature 0 the target's most likely token.

import { NONE, rowOf, tokenText } from "./decode.js";
import { h, pool, setAttr, setClip, setText, show, trimmed } from "./dom.js";
import { number } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */
/**
 * @typedef {object} Lane
 * @property {string} text   the token, or "" for one that is not on record
 * @property {string} role
 * @property {"✓" | "✗" | ""} mark
 * @property {"first" | "second" | "lost" | "open"} look  open: somewhere from `from` on
 * @property {number} from   shares of the lane
 * @property {number} to
 * @property {string} value
 * @typedef {{ title: string, lanes: Lane[], of?: string }} Contest
 */

/** How far a lane reaches, in arrivals of the runner-up. */
const REACH = 3,
  BEHIND = 1.3;

/**
 * A race of tokens: who arrived first and when, when the next one did, and the proposal.
 * @param {string} title @param {string} winner @param {number} first @param {number} second
 * @param {{ text: string, same: boolean, time: number } | null} [proposal]  its arrival, NaN if
 *   that is not on record
 * @returns {Contest}
 */
function raceOf(title, winner, first, second, proposal = null) {
  // an arrival that is not on record lies behind the runner-up: room for that
  const unknown = proposal && !proposal.same && !(proposal.time >= 0);
  const reach = unknown ? BEHIND * second : Math.min(proposal?.time || 0, REACH * second);
  const end =
    Math.max(first, second < Infinity ? second : first, reach < Infinity ? reach : 0) || 1;
  const at = (/** @type {number} */ time) => Math.min(1, time / end);
  /** @type {Lane[]} */
  const lanes = [
    {
      text: winner,
      role: proposal?.same ? "first: the proposal" : "first",
      mark: proposal?.same ? "✓" : "",
      look: "first",
      from: 0,
      to: at(first),
      value: number(first),
    },
  ];
  const lost = proposal && !proposal.same;
  const runnerUp = lost && Math.abs(proposal.time - second) <= 1e-5 * second;
  if (second < Infinity)
    lanes.push({
      text: runnerUp ? proposal.text : "",
      role: runnerUp ? "second: the proposal" : "second",
      mark: runnerUp ? "✗" : "",
      look: runnerUp ? "lost" : "second",
      from: 0,
      to: at(second),
      value: number(second),
    });
  if (lost && !runnerUp) {
    const known = proposal.time >= 0;
    lanes.push({
      text: proposal.text,
      role: "the proposal",
      mark: "✗",
      look: known && proposal.time <= end ? "lost" : "open",
      from: known ? 0 : at(Math.min(second, end)),
      to: 1,
      value: proposal.time === Infinity ? "never" : known ? number(proposal.time) : "later",
    });
  }
  return { title, lanes };
}

/**
 * The target's race at a proposal that was judged; null if none is on record.
 * @param {Data} data @param {number} row
 */
export function targetRace(data, row) {
  const own = data.node.own[row],
    first = data.node.own_time[row];
  if (own === NONE || !(first >= 0)) return null;
  const same = own === data.node.token[row];
  const text = trimmed(tokenText(data, data.node.token[row]));
  return raceOf(
    "the target's race: likelier tokens run faster",
    trimmed(tokenText(data, own)),
    first,
    data.node.own_second[row],
    { text, same, time: same ? first : data.node.late[row] },
  );
}

/**
 * The draft's own race, with the target's noise; null if it had none.
 * @param {Data} data
 * @param {number} row
 */
export function draftRace(data, row) {
  if (data.node.q_draw[row] !== 2) return null;
  const text = trimmed(tokenText(data, data.node.token[row]));
  const race = raceOf(
    "the draft's race: the same noise, speeds from q",
    text,
    data.node.q_time[row],
    data.node.q_second[row],
  );
  return { ...race, of: "draft" };
}

/** The race for a closing token. @param {Data} data @param {number} r */
export function closingRace(data, r) {
  const token = trimmed(tokenText(data, data.round.closing[r]));
  return raceOf(
    "the target's race: likelier tokens run faster",
    token,
    data.round.closing_time[r],
    data.round.closing_second[r],
  );
}

/**
 * The target's two most likely tokens, and the proposal.
 * @param {Data} data @param {"node" | "round"} table @param {number} row
 * @returns {Contest}
 */
export function topTwo(data, table, row) {
  const name = table === "node" ? "top" : "distribution",
    x = table === "node" ? data.node.token[row] : NONE;
  const ids = rowOf(data, table, name, row),
    p = rowOf(data, table, `${name}_p`, row);
  const all = [...ids]
    .map((token, i) => ({ token, p: p[i] }))
    .filter((one) => one.token !== NONE && one.p > 0);
  all.sort((a, b) => b.p - a.p);
  const shown = all.slice(0, 2);
  if (x !== NONE && !shown.some((one) => one.token === x))
    shown.push({ token: x, p: all.find((one) => one.token === x)?.p ?? 0 });
  return {
    title: "the target's most likely tokens",
    lanes: shown.map((one, i) => {
      const mine = one.token === x;
      const rank =
        all.length > i && one.p > 0 ? ["most likely", "second", "the proposal"][i] : "the proposal";
      return {
        text: trimmed(tokenText(data, one.token)),
        role: mine && rank !== "the proposal" ? `${rank}: the proposal` : rank,
        mark: mine ? (i ? "✗" : "✓") : "",
        look: i ? (mine ? "lost" : "second") : "first",
        from: 0,
        to: one.p,
        value: number(one.p),
      };
    }),
  };
}

function lane() {
  const mark = h("b", { class: "svp-glyph" }),
    text = h("bdi"),
    role = h("small");
  const bar = h("i"),
    value = h("span", { class: "svp-time" });
  const el = h("div", { class: "svp-runner", role: "listitem" }, [
    h("div", { class: "svp-who" }, [h("div", {}, [mark, text]), role]),
    h("div", { class: "svp-track" }, [bar]),
    value,
  ]);
  return { el, mark, text, role, bar, value };
}

/** A board that shows one contest, lane by lane. */
export function board() {
  const title = h("div", { class: "svp-sub" });
  const list = h("div", { class: "svp-runners", role: "list" });
  const lanes = pool(list, lane);
  const el = h("div", { class: "svp-contest" }, [title, list]);
  return {
    el,
    /** @param {Contest | null} contest */
    update(contest) {
      setAttr(el, "data-of", contest?.of ?? null);
      show(el, Boolean(contest));
      if (!contest) return;
      setText(title, contest.title);
      const made = lanes(contest.lanes.length);
      contest.lanes.forEach((one, i) => {
        const at = made[i];
        setText(at.mark, one.mark);
        setText(at.text, one.text || "another token");
        setAttr(at.text, "data-none", !one.text || null);
        setText(at.role, one.role);
        setText(at.value, one.value);
        setAttr(at.el, "data-look", one.look);
        setAttr(at.el, "data-mark", one.mark || null);
        if (one.look === "open") setClip(at.bar, one.from, one.to - one.from);
        else setClip(at.bar, 0, one.to);
      });
    },
  };
}
