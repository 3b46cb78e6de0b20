// (b) The stage: two models, the draft's cards between them, one picture of the step below.

import { inBlocks, passes } from "./block.js";
import { NONE, tokenText } from "./decode.js";
import { h, pool, setAttr, setBar, setText, show, trimmed } from "./dom.js";
import { PHASES } from "./timeline.js";
import { count, number } from "./numbers.js";
import { stagePanel } from "./stage_panel.js";
import { evidence } from "./words.js";

/** @typedef {import("./decode.js").Data} Data */
/** @typedef {import("./frame.js").Frame} Frame */

/** How many proposals of a round get a card; the tree view shows all of a tree. */
const MOST = 16;

export const GLYPHS = {
  hidden: "",
  ghost: "",
  asked: "?",
  accepted: "✓",
  rejected: "✗",
  never: "–",
  correction: "↻",
  bonus: "+",
  plain: "·",
  cut: "¦",
};

const SAYS = {
  draft: ["Draft", "one by one, from q"],
  verify: ["Verify", "one pass, all at once"],
  decide: ["Accept?", ""],
  close: ["Resample", "from the residual"],
  rollback: ["Roll back", "both caches"],
};

function card() {
  const q = h("i", { class: "svp-q" }),
    p = h("i", { class: "svp-p" });
  const text = h("bdi", { class: "svp-word" });
  const glyph = h("b", { class: "svp-glyph" });
  const numbers = [h("span", { class: "svp-qn" }), h("span", { class: "svp-pn" })];
  const test = h("div", { class: "svp-passes", hidden: true });
  const el = h("div", { class: "svp-card", role: "listitem" }, [
    h("div", { class: "svp-cardhead" }, [text, glyph]),
    h("div", { class: "svp-mini" }, [h("span", { class: "svp-track" }, [q]), numbers[0]]),
    h("div", { class: "svp-mini" }, [h("span", { class: "svp-track" }, [p]), numbers[1]]),
    test,
  ]);
  return { el, text, glyph, q, p, numbers, test };
}

export const phaseView = {
  name: "phase",
  title: "The round",
  /** @param {Data} data @param {any} time @param {any} player */
  mount(data, time, player) {
    const steps = PHASES.map((phase) =>
      h("div", { class: "svp-step", role: "listitem", "data-phase": phase }, [
        h("b", { text: SAYS[phase][0] }),
        h("span", { text: phase === "decide" ? data.header.hints.asks : SAYS[phase][1] }),
      ]),
    );
    const strip = h(
      "div",
      { class: "svp-strip", role: "list", "aria-label": "Phases of a round" },
      steps,
    );
    const { models } = data.header.hints;
    const model = (/** @type {"draft" | "target"} */ which) =>
      h("div", { class: `svp-model svp-model-${which}` }, [
        h("b", { text: models[which][0] }),
        h("span", { text: models[which][1] }),
      ]);
    const draft = model("draft"),
      target = model("target"),
      panel = stagePanel(data),
      under = h("div", { class: "svp-under" });
    const cards = h("div", {
      class: "svp-cards",
      role: "list",
      "aria-label": "Proposals of this round, in the order of drawing",
    });
    const more = h("div", { class: "svp-more" });
    const proposals = pool(cards, card);
    const closing = card();
    closing.el.classList.add("svp-closing");
    cards.append(closing.el);
    const widest = Math.max(0, ...new Set(data.round.nodes));
    if (!data.isTree) proposals(Math.min(MOST, widest));
    cards.append(closing.el); // after the proposals made so far
    cards.style.setProperty("--svp-n", String(Math.min(MOST, widest) + 1));
    const deck = h("div", { class: "svp-deck" }, [cards, more]);
    const arena = h("div", { class: "svp-arena" }, [
      draft,
      h("div", { class: "svp-middle" }, [deck]),
      target,
    ]);
    const el = h("div", { class: "svp-phase" }, [strip, arena, under, panel.el]);

    cards.addEventListener("click", (/** @type {any} */ event) => {
      const hit = event.target.closest?.(".svp-card");
      if (!hit) return;
      const round = player.frame.round;
      if (hit === closing.el) return player.go(time.step({ round, phase: "close", node: -1 }));
      const node = Number(hit.dataset.n);
      const judged = data.node.verdict[data.start[round] + node];
      player.go(time.step({ round, phase: judged ? "decide" : "draft", node }));
    });

    return {
      el,
      /** Where the text goes, between the two models. */
      middle: arena.childNodes[1],
      /** Where the caption goes, above the picture of the step. */
      under,
      /** @param {Frame} frame @param {any} [state] */
      update(frame, state = {}) {
        const n = frame.status.length;
        panel.update(frame, state);
        setAttr(draft, "data-on", frame.phase === "draft" || null);
        setAttr(target, "data-on", (frame.phase !== "draft" && frame.phase !== "rollback") || null);
        const at = PHASES.indexOf(frame.phase);
        const kind = data.round.closing_kind[frame.round];
        steps.forEach((step, i) => {
          setAttr(step, "data-now", i === at || null);
          setAttr(step, "data-done", i < at || null);
          setAttr(step, "data-off", !n && i !== 1 && i !== 3 ? true : null);
          setAttr(step, "aria-current", i === at ? "step" : null);
        });
        const last = steps[3].firstChild,
          hint = steps[3].lastChild;
        setText(last, kind === 1 ? "Resample" : kind === 2 ? "Bonus" : "Sample");
        setText(hint, kind === 1 ? data.header.hints.instead : "from the target's p");
        setAttr(deck, "data-flash", frame.phase === "verify" || null);

        show(deck, !data.isTree);
        const shown = data.isTree ? [] : chosen(frame);
        const made = proposals(shown.length);
        shown.forEach((node, k) => fill(data, frame, made[k], node));
        if (closing.el !== cards.lastChild) cards.append(closing.el);
        fillClosing(data, frame, closing);
        const others =
          n > shown.length
            ? `and ${n - shown.length} more of the ${count(n, "proposal")} of this round. `
            : "";
        const order = data.header.right_to_left
          ? "Cards stand in the order of drawing, the text in its reading order. "
          : "";
        const told = others + order + data.header.hints.siblings;
        show(more, told !== "");
        if (told) setText(more, told);
      },
    };
  },
};

/** The proposals that get a card; a large tree is shown by the view of the tree. */
function chosen(frame) {
  return frame.status.map((_, i) => i).slice(0, MOST);
}

function fill(data, frame, one, node) {
  const row = frame.first + node,
    it = evidence(data, row),
    status = frame.status[node];
  const cut = status === "accepted" && !it.emitted;
  setText(one.text, trimmed(it.text));
  setText(one.glyph, GLYPHS[cut ? "cut" : status]);
  setAttr(one.el, "data-status", cut ? "cut" : status);
  setAttr(one.el, "data-n", node);
  setAttr(one.el, "data-focus", node === frame.node || null);
  setAttr(one.el, "data-gone", (frame.settled && status !== "accepted") || null);
  setBar(one.q, 0, status === "hidden" ? 0 : it.q);
  setBar(one.p, 0, frame.seenP ? it.p : 0);
  setText(one.numbers[0], `q ${it.said.q}`);
  setText(one.numbers[1], frame.seenP ? `p ${it.said.p}` : "p ?");
  // a block's position may be kept although its own test did not pass
  const said = testSaid(data, frame, node);
  show(one.test, inBlocks(data));
  setText(one.test, said || "test ?");
  setAttr(
    one.el,
    "aria-label",
    status === "hidden"
      ? null
      : `${trimmed(it.text)}: ` +
          `${NAMES[cut ? "cut" : status]}${said && `, its own ${said.replace(/ [✓✗]/, "")}`}`,
  );
}

/**
 * A block's test at a position, once it is known.
 * @param {Data} data
 * @param {Frame} frame
 * @param {number} node
 */
export function testSaid(data, frame, node) {
  if (!inBlocks(data) || frame.phase === "draft" || frame.phase === "verify") return "";
  if (frame.phase === "decide" && (node > frame.node || (node === frame.node && frame.concealed)))
    return "";
  return passes(data, frame.first + node) ? "test ✓ passes" : "test ✗ fails";
}

const CLOSES = { correction: "replaces it", bonus: "bonus", plain: "from p" };

const NAMES = {
  ghost: "proposed",
  asked: "in question",
  accepted: "accepted",
  rejected: "rejected",
  never: "never examined",
  cut: "past the end of the text",
};

function fillClosing(data, frame, one) {
  const r = frame.round,
    hidden = frame.closing === "hidden",
    open = hidden && frame.seenP && frame.status.length > 0;
  const token = data.round.closing[r];
  const cut = !data.round.closing_emitted[r];
  setText(one.text, hidden || token === NONE ? "" : trimmed(tokenText(data, token)));
  setText(one.glyph, open ? "p" : GLYPHS[cut ? "cut" : frame.closing]);
  setAttr(one.el, "data-status", open ? "open" : hidden ? "hidden" : cut ? "cut" : frame.closing);
  setAttr(one.el, "data-focus", frame.phase === "close" || null);
  setBar(one.p, 0, hidden ? 0 : data.round.closing_p[r]);
  setText(one.numbers[0], open ? "one more p," : hidden ? "" : CLOSES[frame.closing]);
  setText(one.numbers[1], open ? "after the last" : hidden ? "" : number(data.round.closing_p[r]));
  setAttr(
    one.el,
    "aria-label",
    hidden ? null : `${trimmed(tokenText(data, token))}: ${frame.closing}`,
  );
}
