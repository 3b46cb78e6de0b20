// (a) The text so far; the round's proposals stand after it until their fate is known.

import { KINDS, NONE, pieceText, tokenText } from "./decode.js";
import { h, pool, setAttr, setText, show, trimmed } from "./dom.js";
import { stepOfToken } from "./timeline.js";
import { number } from "./numbers.js";
import { evidence } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/** How many tokens of the past are in the page. */
const WINDOW = 90;

/** The mark of an emitted token. @param {number} kind */
export function markOf(kind) {
  return kind === 1 ? "accepted" : KINDS[kind - 10];
}

/**
 * Which of a round's proposals stand behind the text at a frame, in order.
 * @param {Data} data @param {Frame} frame
 * @returns {number[]}
 */
export function pending(data, frame) {
  const n = frame.status.length;
  const all = Array.from({ length: n }, (_, i) => i);
  if (frame.settled) return [];
  if (!data.isTree) return all.filter((i) => frame.status[i] !== "hidden");
  // of a tree: what was judged, and the branch in question
  if (frame.phase === "draft") return pathTo(data, frame, frame.node);
  const judged = all.filter((i) => ["accepted", "rejected", "asked"].includes(frame.status[i]));
  const depth = (/** @type {number} */ i) => data.depth[frame.first + i];
  if (judged.length || frame.phase !== "verify")
    return judged.sort((a, b) => depth(a) - depth(b) || a - b);
  const chain = [];
  for (let i = 0, parent = NONE; i < n; i++)
    if (data.node.parent[frame.first + i] === parent) (chain.push(i), (parent = i));
  return chain;
}

/** The proposals from the root of the round's tree to one of them, itself last. */
function pathTo(data, frame, node) {
  const path = [];
  for (let i = node; i !== NONE && i >= 0; i = data.node.parent[frame.first + i]) path.unshift(i);
  return path;
}

function token() {
  const gap = document.createTextNode("");
  const word = h("span", { class: "svp-w" });
  return { el: h("span", { class: "svp-t" }, [gap, word]), gap, word };
}

/** @param {any} one @param {string} text @param {string} mark */
function write(one, text, mark) {
  const broken = /⏎(×[\d,]+)?$/.test(text) ? "\n" : "";
  const gap = text.length > 1 && text.startsWith(" ") ? " " : "";
  if (one.gap.data !== gap) one.gap.data = gap;
  setText(one.word, text.slice(gap.length) + broken);
  setAttr(one.word, "data-mark", mark);
}

export const textView = {
  name: "text",
  title: "Text so far",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const prompt = h("span", { class: "svp-prompt", text: data.header.prompt });
    const past = h("span");
    const now = h("span");
    const inner = h("bdi", { class: "svp-inner" }, [prompt, past, now]);
    const el = h("div", { class: "svp-text" }, [inner]);
    const nowTokens = pool(now, token);
    /** @type {any[]} */
    let spans = [];
    let low = 0,
      high = 0;

    const make = (/** @type {number} */ index) => {
      const one = token();
      write(one, pieceText(data, index), markOf(data.outKind[index]));
      one.el.dataset.i = index;
      one.el.title = told(data, index);
      return one.el;
    };
    const sync = (/** @type {number} */ to) => {
      const from = Math.max(0, to - WINDOW);
      if (from === low && to === high) return;
      if (from >= high || to <= low || from < low) {
        spans = [];
        past.textContent = "";
        low = high = from;
      }
      const fresh = [];
      while (high < to) fresh.push(make(high++));
      past.append(...fresh);
      spans.push(...fresh);
      while (high > to) (spans.pop().remove(), high--);
      while (low < from) (spans.shift().remove(), low++);
    };
    el.addEventListener("click", (/** @type {any} */ event) => {
      const hit = event.target.closest?.("[data-i],[data-n]");
      if (!hit) return;
      if (hit.dataset.i) return player.go(stepOfToken(data, time, Number(hit.dataset.i)));
      player.go(
        time.step({ round: player.frame.round, phase: "decide", node: Number(hit.dataset.n) }),
      );
    });

    return {
      el,
      /** @param {Frame} frame */
      update(frame) {
        const start = data.outStart[frame.round];
        sync(frame.settled ? frame.emitted : start);
        show(prompt, low === 0);
        const waiting = pending(data, frame);
        const closing = frame.closing !== "hidden" && !frame.settled;
        const shown = nowTokens(waiting.length + (closing ? 1 : 0));
        waiting.forEach((node, k) => {
          const row = frame.first + node;
          const cut = frame.status[node] === "accepted" && !data.node.emitted[row];
          write(shown[k], tokenText(data, data.node.token[row]), cut ? "cut" : frame.status[node]);
          setAttr(shown[k].el, "data-n", node);
          setAttr(shown[k].word, "data-focus", node === frame.node || null);
        });
        if (closing) {
          const last = shown[waiting.length];
          const mark = data.round.closing_emitted[frame.round] ? frame.closing : "cut";
          write(last, tokenText(data, data.round.closing[frame.round]), mark);
          setAttr(last.el, "data-n", null);
          setAttr(last.word, "data-focus", true);
        }
      },
    };
  },
};

/** What a token of the text says under the cursor. */
function told(data, index) {
  const mark = markOf(data.outKind[index]),
    round = data.outRound[index];
  if (mark === "accepted") {
    const it = evidence(data, data.outNode[index]);
    const u = data.header.judged_by_u ? `, u = ${it.said.u}` : "";
    return `round ${round}: accepted; p = ${it.said.p}, q = ${it.said.q}${u}`;
  }
  let instead = "";
  if (mark === "correction")
    for (let i = data.start[round]; i < data.start[round + 1]; i++)
      if (data.node.verdict[i] === 2)
        instead = ` in place of ${trimmed(tokenText(data, data.node.token[i]))}`;
  return (
    `round ${round}: ${mark}${instead}; it had probability ` +
    `${number(data.round.closing_p[round])}`
  );
}
