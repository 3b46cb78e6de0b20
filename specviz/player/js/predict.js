// Predict, then reveal: the player stops before each verdict, asks, and keeps score.

import { h, setAttr, setText, show } from "./dom.js";
import { inBlocks, passes } from "./block.js";
import { count } from "./numbers.js";
import { evidence, told } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/**
 * What there is to guess: the verdict; of a block's position whether its own test passes.
 * @param {Data} data
 * @param {Frame} frame
 */
export function answerAt(data, frame) {
  const row = frame.first + frame.node;
  return inBlocks(data) ? passes(data, row) : evidence(data, row).kept;
}

/**
 * What was guessed so far. `best` is what always naming the likelier verdict would get on average.
 * @param {Data} data
 */
export function scorebook(data) {
  /** @type {Map<number, boolean | null>} step → guess (null: only revealed) */
  const guesses = new Map();
  let right = 0,
    asked = 0,
    best = 0;
  return {
    /** @param {Frame} frame whether its verdict is still to be guessed */
    asks: (frame) => frame.phase === "decide" && !guesses.has(frame.step),
    /** @param {Frame} frame @param {boolean | null} guess kept, rejected, or only show it */
    answer(frame, guess) {
      if (frame.phase !== "decide" || guesses.has(frame.step)) return;
      guesses.set(frame.step, guess);
      if (guess === null) return;
      const it = evidence(data, frame.first + frame.node);
      asked++;
      if (guess === answerAt(data, frame)) right++;
      const a = Math.min(1, it.a);
      best += Math.max(a, 1 - a);
    },
    /** @param {Frame} frame */
    guess: (frame) => guesses.get(frame.step),
    score: () => ({ right, asked, best }),
    clear() {
      guesses.clear();
      right = asked = best = 0;
    },
  };
}

/**
 * @param {Data} data @param {any} player
 */
export function predictPanel(data, player) {
  const question = h("b", { class: "svp-q1" });
  const kept = h("button", {
    type: "button",
    text: inBlocks(data) ? "✓ passes (k)" : "✓ accepted (k)",
  });
  const rejected = h("button", {
    type: "button",
    text: inBlocks(data) ? "✗ does not (x)" : "✗ rejected (x)",
  });
  const hint = h("button", { type: "button", text: "show u (u)" });
  const reveal = h("button", { type: "button", text: "reveal (space)" });
  const score = h("span", { class: "svp-score" });
  const buttons = h("span", { class: "svp-answers" }, [kept, rejected, hint, reveal]);
  const el = h("div", { class: "svp-predict", hidden: true }, [question, buttons, score]);
  kept.addEventListener("click", () => player.guess(true));
  rejected.addEventListener("click", () => player.guess(false));
  reveal.addEventListener("click", () => player.guess(null));
  hint.addEventListener("click", () => player.showHint());
  return {
    el,
    /** @param {Frame} frame @param {any} state */
    update(frame, state) {
      show(el, state.predict);
      if (!state.predict) return;
      const book = state.book,
        guess = book.guess(frame);
      const deciding = frame.phase === "decide";
      show(buttons, frame.concealed);
      show(hint, data.header.judged_by_u && !state.hint);
      let said = "Predict: play on to the next verdict.";
      /** @type {string | null} */
      let mark = null;
      if (frame.concealed) said = told(data, frame, "question");
      else if (deciding && guess !== undefined) {
        const yes = answerAt(data, frame);
        mark = guess === null ? null : guess === yes ? "right" : "wrong";
        const was = inBlocks(data)
          ? yes
            ? "it passes"
            : "it does not pass"
          : yes
            ? "accepted"
            : "rejected";
        said = `${guess === null ? "" : guess === yes ? "Right: " : "Not this time: "}${was}.`;
      }
      setText(question, said);
      setAttr(el, "data-mark", mark);
      const { right, asked, best } = book.score();
      setText(
        score,
        asked
          ? `${right} of ${count(asked, "guess", "guesses")} right; always naming the likelier ` +
              `answer gets ${best.toFixed(1)} on average`
          : "",
      );
    },
  };
}
