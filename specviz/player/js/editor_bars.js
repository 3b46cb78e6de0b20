// The bars of p and q, which can be dragged, moved by keys and locked.

import { scaleFor } from "./editing.js";
import { rowsAt } from "./editor_state.js";
import { changeSaid } from "./editor_words.js";
import { h, pool, setAttr, setBar, setClip, setStyle, setText, wholeAxis } from "./dom.js";
import { aligned, quoted, shown } from "./numbers.js";

const DISTRIBUTIONS = /** @type {("q" | "p")[]} */ (["q", "p"]);
const NAMES = { q: "draft q", p: "target p" };

/** How far a key moves a bar, or where to: a number, or "low" or "high"; null if it is not ours. */
export function keyMove({ key, shiftKey = false }) {
  const step = shiftKey ? 0.05 : 0.01;
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return step;
    case "ArrowLeft":
    case "ArrowDown":
      return -step;
    case "PageUp":
      return 0.1;
    case "PageDown":
      return -0.1;
    case "Home":
      return "low";
    case "End":
      return "high";
    default:
      return null;
  }
}

/**
 * Where a key takes a bar that stands at x.
 * @param {any} by
 * @param {number} x
 * @param {number} room
 */
export const movedBy = (by, x, room) =>
  by === "low" ? 0 : by === "high" ? room : Math.round(1000 * (x + by)) / 1000;

/** The share of a track at which a pointer stands. */
export const shareAt = (clientX, { left, width }) =>
  Math.min(1, Math.max(0, (clientX - left) / width));

function padlock() {
  return h("svg:svg", { viewBox: "0 0 12 14", class: "svp-padlock", "aria-hidden": "true" }, [
    h("svg:path", {
      d: "M3 6V4a3 3 0 0 1 6 0v2",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.6,
    }),
    h("svg:rect", { x: 1.5, y: 6, width: 9, height: 7, rx: 1, fill: "currentColor" }),
  ]);
}

/** @param {any} editor  state, act(name, …) */
export function mountBars(editor) {
  const list = h("div", {
    class: "svp-erows",
    role: "group",
    "aria-label": "Probabilities of each token",
  });
  let scale = 1,
    dragging = false;

  const half = (which, rowOf) => {
    const bar = h("i", { class: `svp-${which}` }),
      grip = h("i", { class: "svp-grip" });
    const rest = which === "p" ? [h("i", { class: "svp-rest" })] : [];
    const el = h(
      "div",
      {
        class: "svp-half",
        "data-which": which,
        role: "slider",
        tabindex: 0,
        "aria-valuemin": 0,
        "aria-orientation": "horizontal",
      },
      [bar, ...rest, grip],
    );
    const to = (event) =>
      editor.act(
        "move",
        which,
        rowOf(),
        shareAt(event.clientX, el.getBoundingClientRect()) * scale,
      );
    el.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      el.setPointerCapture?.(event.pointerId);
      el.focus?.({ preventScroll: true });
      dragging = true;
      to(event);
      event.preventDefault?.();
    });
    el.addEventListener(
      "pointermove",
      (event) => dragging && el.hasPointerCapture?.(event.pointerId) !== false && to(event),
    );
    const end = () => {
      if (!dragging) return;
      dragging = false;
      editor.settle("move");
    };
    el.addEventListener("pointerup", end);
    el.addEventListener("pointercancel", end);
    el.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const i = rowOf(),
        by = keyMove(event),
        row = rowsAt(editor.state)[i];
      if (by === null && event.key !== "l") return;
      event.preventDefault();
      event.stopPropagation();
      if (by === null) return (editor.act("lock", which, i), editor.settle("lock"));
      editor.act("move", which, i, movedBy(by, row[which], row.room[which]));
      editor.settle("move");
    });
    return { el, bar, grip, rest: rest[0] };
  };

  const rows = pool(list, () => {
    let at = 0;
    const rowOf = () => at,
      label = h("bdi", { class: "svp-lab" }),
      over = h("i", { class: "svp-over" });
    const halves = { q: half("q", rowOf), p: half("p", rowOf) };
    const number = (which) => {
      const text = h("span"),
        el = h("button", { type: "button", class: `svp-${which}n svp-lock`, "data-which": which }, [
          padlock(),
          text,
        ]);
      el.addEventListener("click", () => (editor.act("lock", which, at), editor.settle("lock")));
      return { el, text };
    };
    const numbers = { q: number("q"), p: number("p") };
    const el = h("div", { class: "svp-erow" }, [
      label,
      h("div", { class: "svp-etrack" }, [over, halves.q.el, halves.p.el]),
      numbers.q.el,
      numbers.p.el,
    ]);
    return { el, label, over, halves, numbers, place: (i) => (at = i) };
  });

  const head = h("div", { class: "svp-erow svp-ehead", "aria-hidden": "true" }, [
    h("span"),
    h("span"),
    h("span", { class: "svp-qn", text: "draft q" }),
    h("span", { class: "svp-pn", text: "target p" }),
  ]);
  const axis = [h("span"), h("span"), h("span")];
  const massOver = h("i", { class: "svp-mover" }),
    massRest = h("i", { class: "svp-mrest" });
  const overText = h("span", { class: "svp-k-over" }),
    restText = h("span", { class: "svp-k-rest" });
  const says = h("p", { class: "svp-esays", "data-testid": "svp-change" });
  const el = h("div", { class: "svp-ebars" }, [
    head,
    list,
    h("div", { class: "svp-erow svp-eaxis", "aria-hidden": "true" }, [
      h("span"),
      h("div", { class: "svp-axis" }, axis),
    ]),
    h("div", { class: "svp-mass", "aria-hidden": "true" }, [massOver, massRest]),
    wholeAxis(),
    h("div", { class: "svp-key", "data-testid": "svp-masses" }, [overText, restText]),
    says,
  ]);

  return {
    el,
    update(state, exact) {
      const told = rowsAt(state),
        made = rows(told.length);
      if (!dragging) scale = scaleFor(state.p, state.q);
      told.forEach((row, i) => fill(made[i], row, i, scale));
      [0, scale / 2, scale].forEach((x, i) => setText(axis[i], String(x).replace(/^0\./, ".")));
      setBar(massOver, 0, exact.overlap);
      setClip(massRest, exact.overlap, 1 - exact.overlap);
      setText(overText, `overlap Σ min(p, q) = ${shown(exact.overlap)}`);
      setText(restText, `residual mass = TV(p, q) = ${shown(exact.tv)}`);
      setText(says, changeSaid(state));
    },
  };
}

function fill(made, row, i, scale) {
  made.place(i);
  setText(made.label, row.word);
  const within = (x) => Math.min(1, x / scale),
    shared = within(row.shared);
  setBar(made.over, 0, shared);
  setClip(made.halves.p.rest, shared, Math.max(0, within(row.p) - shared));
  for (const which of DISTRIBUTIONS) {
    const { el, bar, grip } = made.halves[which],
      x = row[which],
      locked = row.locked[which];
    setBar(bar, 0, within(x));
    setStyle(grip, "left", `${(100 * within(x)).toFixed(2)}%`);
    setAttr(el, "aria-label", `${NAMES[which]} of ${quoted(row.word)}`);
    setAttr(el, "aria-valuenow", x.toFixed(3));
    setAttr(el, "aria-valuemax", row.room[which].toFixed(3));
    setAttr(el, "aria-valuetext", `${shown(x)}${locked ? ", locked" : ""}`);
    setAttr(el, "aria-disabled", locked ? "true" : null);
    const number = made.numbers[which],
      words = `${locked ? "Unlock" : "Lock"} ${NAMES[which]} of ${quoted(row.word)} (l)`;
    setText(number.text, aligned(x));
    setAttr(number.el, "aria-pressed", String(locked));
    setAttr(number.el, "aria-label", `${aligned(x)}. ${words}`);
    setAttr(number.el, "title", words);
  }
}
