// Buttons, scrubbing, search, help, and what each key does.

import { h, setAttr, setText, show } from "./dom.js";
import { SPEEDS } from "./playback.js";

/** Key → what it does; the help lists these. */
export const KEYS = [
  ["Space", "play or pause (in predict mode: reveal)"],
  ["→ ←", "next, previous token"],
  ["Shift → ←", "next, previous phase"],
  ["↓ ↑", "next, previous round"],
  ["Home End", "first, last step"],
  ["n N", "next, previous rejection"],
  ["b B", "next, previous bonus"],
  ["/", "search for a token"],
  ["+ −", "faster, slower"],
  ["p", "predict, then reveal: k accept, x reject, u shows u"],
  ["e", "every detail, or only the story"],
  ["w", "why it is exact"],
  ["g", "captions on or off"],
  ["f", "full screen"],
  ["c", "copy a link to this position (pages)"],
  ["Esc", "back to what happened; close this"],
  ["?", "this list"],
];

/**
 * What a key asks for; null if it is not ours.
 * @param {{ key: string, shiftKey?: boolean }} event
 * @returns {[string, ...any[]] | null}
 */
export function command({ key, shiftKey }) {
  switch (key) {
    case " ":
      return ["toggle"];
    case "ArrowRight":
      return ["jump", shiftKey ? "phase" : "token", 1];
    case "ArrowLeft":
      return ["jump", shiftKey ? "phase" : "token", -1];
    case "ArrowDown":
    case "PageDown":
      return ["jump", "round", 1];
    case "ArrowUp":
    case "PageUp":
      return ["jump", "round", -1];
    case "Home":
      return ["edge", -1];
    case "End":
      return ["edge", 1];
    case "n":
      return ["jump", "rejection", 1];
    case "N":
      return ["jump", "rejection", -1];
    case "b":
      return ["jump", "bonus", 1];
    case "B":
      return ["jump", "bonus", -1];
    case "/":
      return ["find"];
    case "+":
    case "=":
      return ["speed", 1];
    case "-":
    case "−":
      return ["speed", -1];
    case "p":
      return ["predict"];
    case "k":
      return ["guess", true];
    case "x":
      return ["guess", false];
    case "r":
      return ["guess", null];
    case "u":
      return ["hint"];
    case "e":
      return ["details"];
    case "w":
      return ["why"];
    case "g":
      return ["guided"];
    case "f":
      return ["full"];
    case "c":
      return ["link"];
    case "?":
      return ["help"];
    case "Escape":
      return ["escape"];
    default:
      return null;
  }
}

/**
 * @param {string} glyph
 * @param {string} label
 * @param {() => void} does
 * @param {any} [extra] attributes
 */
export function button(glyph, label, does, extra = {}) {
  const made = h("button", {
    type: "button",
    title: label,
    "aria-label": label,
    text: glyph,
    ...extra,
  });
  made.addEventListener("click", does);
  return made;
}

/** The list of keys that "?" shows. @param {string[][]} keys @param {string} more */
export function helpList(keys, more) {
  return h("div", { class: "svp-help", hidden: true, role: "dialog", "aria-label": "Keys" }, [
    h("b", { text: "Keys" }),
    h(
      "dl",
      {},
      keys.flatMap(([key, does]) => [h("dt", { text: key }), h("dd", { text: does })]),
    ),
    h("p", { text: more }),
  ]);
}

/**
 * A short message above the bar, which takes no room from it; or an address to copy.
 * @param {() => void} leave  where the keys go when it closes
 */
export function notice(leave) {
  const said = h("span", { role: "status" });
  const address = h("input", {
    type: "text",
    readonly: true,
    hidden: true,
    class: "svp-address",
    "aria-label": "Link to this position",
  });
  const el = h("div", { class: "svp-notice" }, [said, address]);
  const say = (/** @type {string} */ text) => {
    show(address, false);
    setText(said, text);
  };
  const hush = () => say("");
  address.addEventListener("keydown", (/** @type {any} */ event) => {
    if (event.ctrlKey || event.metaKey) return; // copying
    event.stopPropagation();
    if (event.key !== "Escape" && event.key !== "Enter") return;
    hush();
    leave();
  });
  return {
    el,
    say,
    hush,
    /**
     * Copy an address. In a frame, or where copying is not allowed, show it, ready to be copied.
     * @param {{ href: string, hash: string }} place
     */
    offer({ href, hash }) {
      const text = /^(about|blob|data):/.test(href) ? hash : href;
      const shown = () => {
        say("the link:");
        address.value = text;
        show(address, true);
        address.focus({ preventScroll: true });
        address.select();
      };
      if (window.self !== window.top) shown();
      const copying = navigator.clipboard?.writeText(text);
      if (copying)
        copying.then(() => (address.hidden ? say("copied") : setText(said, "copied:")), shown);
      else shown();
    },
  };
}

/**
 * The bar of buttons: few at first, the others with the details.
 * @param {any} player
 * @param {{ standalone: boolean, length: number, details: boolean, why: boolean }} options  what
 *   there is to open, and whether the rule has a reason to show
 */
export function controls(player, options) {
  const play = button("▶", "Play (space)", () => player.toggle(), {
    class: "svp-play",
    "data-testid": "svp-play",
  });
  const scrub = h("input", {
    type: "range",
    min: 0,
    max: Math.max(0, options.length - 1),
    step: 1,
    value: 0,
    class: "svp-scrub",
    "aria-label": "Position in steps",
    "data-testid": "svp-scrub",
  });
  scrub.addEventListener("input", () => player.go(Number(scrub.value)));
  const where = h("output", { class: "svp-where", "data-testid": "svp-where" });
  const speed = h(
    "select",
    { "aria-label": "Steps per second", title: "Steps per second" },
    SPEEDS.map((x) => h("option", { value: x, text: `${x}/s` })),
  );
  speed.addEventListener("change", () => player.setSpeed(Number(speed.value)));
  const find = h("input", {
    type: "search",
    placeholder: "find a token",
    "aria-label": "Find a token",
    class: "svp-find",
  });
  const note = notice(() => player.focus());
  find.addEventListener("keydown", (/** @type {any} */ event) => {
    event.stopPropagation();
    if (event.key === "Enter") note.say(player.find(find.value) ? "" : "not in this run");
    if (event.key !== "Escape") return;
    note.hush();
    player.focus();
  });
  find.addEventListener("input", () => note.hush());
  const predict = button("predict", "Predict, then reveal (p)", () => player.predict(), {
    "aria-pressed": "false",
  });
  const guided = button("captions", "Captions (g)", () => player.guided(), {
    "aria-pressed": "false",
  });
  const link = button("link", "Copy a link to this position (c)", () => player.link());
  show(link, options.standalone);
  const full = button("full", "Full screen (f)", () => player.full(), { class: "svp-full" });
  const help = button("?", "Keys (?)", () => player.help());
  const details = button("Details", "Bars, draws, caches, times (e)", () => player.details(), {
    "aria-pressed": "false",
    "data-testid": "svp-details",
  });
  show(details, options.details);
  const why = button("Why exact?", "Why the text is exactly the target's (w)", () => player.why(), {
    "aria-pressed": "false",
    class: "svp-why",
  });
  show(why, options.why);

  const group = (...children) => h("div", { class: "svp-group" }, children);
  const rare = group(
    button("✗▸", "Next rejection (n)", () => player.jump("rejection", 1), {
      class: "svp-rejects",
    }),
    button("+▸", "Next bonus (b)", () => player.jump("bonus", 1), { class: "svp-bonuses" }),
    speed,
    find,
    guided,
    link,
  );
  const el = h("div", { class: "svp-bar", role: "toolbar", "aria-label": "Player" }, [
    group(
      button("|◂", "Previous round (up)", () => player.jump("round", -1), { class: "svp-rare" }),
      button("◂", "Back (left)", () => player.jump("token", -1), { "data-testid": "svp-back" }),
      play,
      button("▸", "Forward (right)", () => player.jump("token", 1), { "data-testid": "svp-next" }),
      button("▸|", "Next round (down)", () => player.jump("round", 1), { class: "svp-rare" }),
    ),
    scrub,
    where,
    group(why, predict, details, full, help),
    rare,
    note.el,
  ]);
  const list = helpList(
    KEYS,
    "Click a token, a card or a block to go there. Drag u, or the draw below it, to see what " +
      "would have happened.",
  );
  let last = "";
  return {
    el,
    list,
    find,
    say: note.say,
    hush: note.hush,
    offer: note.offer,
    showHelp(on) {
      show(list, on ?? list.hidden);
      if (!list.hidden) list.scrollIntoView?.({ block: "nearest" });
    },
    /** There are more steps now. @param {number} length */
    grown(length) {
      options.length = length;
      scrub.max = String(Math.max(0, length - 1));
    },
    /** @param {any} frame @param {any} state */
    update(frame, state) {
      if (Number(scrub.value) !== frame.step) scrub.value = String(frame.step);
      const words = `round ${frame.round}, step ${frame.step} of ${options.length - 1}`;
      if (words !== last) {
        last = words;
        note.hush(); // it was about another step
        setText(where, `round ${frame.round}`);
        scrub.setAttribute("aria-valuetext", words);
      }
      setText(play, state.playing ? "❚❚" : "▶");
      setAttr(play, "aria-label", state.playing ? "Pause (space)" : "Play (space)");
      setAttr(play, "title", state.playing ? "Pause (space)" : "Play (space)");
      setAttr(predict, "aria-pressed", String(state.predict));
      setAttr(guided, "aria-pressed", String(state.guided));
      setAttr(details, "aria-pressed", String(state.details));
      setAttr(why, "aria-pressed", String(state.why));
      show(rare, !options.details || state.details);
      if (speed.value !== String(state.speed)) speed.value = String(state.speed);
    },
  };
}
