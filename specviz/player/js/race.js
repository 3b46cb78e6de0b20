// A race: several runs side by side on one clock of measured time.

import { button, helpList, notice } from "./controls.js";
import { decode, pieceText, unzip } from "./decode.js";
import { h, setAttr, setStyle, setText, show } from "./dom.js";
import { afterPointer, keepingFocus, listenToKeys } from "./focus.js";
import { playback } from "./playback.js";
import { RACE_KEYS, hashOf, nextEnd, raceCommand, timeOf, tokensAt } from "./race_time.js";
import { clamp } from "./timeline.js";
import { markOf } from "./view_text.js";
import { count, duration } from "./numbers.js";

/** @typedef {import("./decode.js").Data} Data */

const WINDOW = 160;
const PACES = [0.1, 0.25, 0.5, 1, 2, 4];

/** @param {Data} data */
function lane(data) {
  const text = h("bdi", { class: "svp-inner" }, [
    h("span", { class: "svp-prompt", text: data.header.prompt }),
  ]);
  const past = h("span");
  text.append(past);
  const bar = h("i", { class: "svp-fill" });
  const numbers = h("div", { class: "svp-len" }),
    flag = h("div", { class: "svp-flag" });
  const el = h("div", { class: "svp-racer", role: "listitem" }, [
    h("b", { class: "svp-name", text: data.header.label }),
    h("div", { class: "svp-sofar" }, [numbers, flag]),
    h("div", { class: "svp-progress", "aria-hidden": "true" }, [bar]),
    h("div", { class: "svp-text" }, [text]),
  ]);
  let low = 0,
    high = 0;
  /** @type {any[]} */
  let spans = [];
  const total = data.out.length,
    finish = data.sums.seconds[data.rounds];
  return {
    el,
    flag,
    finish,
    total,
    /** @param {number} seconds */
    update(seconds) {
      const { tokens, rounds } = tokensAt(data, seconds);
      const from = Math.max(0, tokens - WINDOW);
      if (from >= high || tokens <= low || from < low) {
        past.textContent = "";
        spans = [];
        low = high = from;
      }
      const fresh = [];
      for (; high < tokens; high++) {
        const kind = markOf(data.outKind[high]);
        const piece =
          pieceText(data, high) + (/⏎(×[\d,]+)?$/.test(pieceText(data, high)) ? "\n" : "");
        fresh.push(
          h("span", { class: "svp-t" }, [
            piece.length > 1 && piece.startsWith(" ") ? " " : "",
            h("span", {
              class: "svp-w",
              "data-mark": kind,
              text: piece.length > 1 ? piece.replace(/^ /, "") : piece,
            }),
          ]),
        );
      }
      past.append(...fresh);
      spans.push(...fresh);
      while (high > tokens) (spans.pop().remove(), high--);
      while (low < from) (spans.shift().remove(), low++);
      setStyle(bar, "transform", `scaleX(${total ? (tokens / total).toFixed(4) : 1})`);
      setText(numbers, `${count(tokens, "token")}, ${count(rounds, "pass", "passes")}`);
      return tokens;
    },
  };
}

/**
 * Buttons, scrubber and pace of a race.
 * @param {any} race what they act on @param {any} note
 * @param {{ end: number, pace: number, standalone: boolean }} of
 */
function panelOf(race, note, { end, pace, standalone }) {
  const play = button("▶", "Play (space)", () => race.toggle(), {
    class: "svp-play",
    "data-testid": "svp-play",
  });
  const scrub = h("input", {
    type: "range",
    min: 0,
    max: end || 1,
    step: "any",
    value: 0,
    class: "svp-scrub",
    "aria-label": "Time",
    "data-testid": "svp-scrub",
  });
  const where = h("output", { class: "svp-where", "data-testid": "svp-where" });
  const paces = h(
    "select",
    { "aria-label": "Pace", title: "Pace" },
    PACES.map((x) => h("option", { value: x, text: x === 1 ? "real time" : `${x}×` })),
  );
  paces.value = String(pace);
  const link = button("link", "Copy a link to this moment (c)", () => race.link());
  show(link, standalone);
  const group = (...children) => h("div", { class: "svp-group" }, children);
  const el = h("div", { class: "svp-bar", role: "toolbar", "aria-label": "Race" }, [
    group(
      button("|◂", "Restart (Home)", () => race.edge(-1), { "data-testid": "svp-restart" }),
      button("◂", "Back: the last end of a round (left)", () => race.step(-1), {
        "data-testid": "svp-back",
      }),
      play,
      button("▸", "Forward: the next end of a round (right)", () => race.step(1), {
        "data-testid": "svp-next",
      }),
      button("▸|", "End (End)", () => race.edge(1), { "data-testid": "svp-end" }),
    ),
    scrub,
    where,
    group(
      paces,
      link,
      button("full", "Full screen (f)", () => race.full()),
      button("?", "Keys (?)", () => race.help()),
    ),
    note.el,
  ]);
  return { el, play, scrub, where, paces };
}

/**
 * @param {any} el @param {Data[]} runs @param {any} model
 * @returns {() => void}
 */
export function mountRace(el, runs, model) {
  const options = model.get("options") ?? {};
  const lanes = runs.map(lane);
  const end = Math.max(...lanes.map((one) => one.finish));
  let now = 0,
    pace = PACES.includes(options.pace) ? options.pace : end < 3 ? 0.25 : 1;
  const off = new AbortController();
  const title = options.title || `Race of ${runs.length} runs`;
  const root = h("div", {
    class: `svp svp-race svp-${options.theme ?? "auto"}${options.height ? " svp-fixed" : ""}`,
    tabindex: 0,
    role: "group",
    "aria-label": title,
    "data-lm-suppress-shortcuts": "true",
    "data-testid": "specviz-race",
  });
  if (options.height) root.style.height = `${options.height}px`;
  // as many side by side as there is room for, in rows of about the same length
  root.style.setProperty(
    "--svp-columns",
    String(runs.length > 4 ? Math.ceil(runs.length / 2) : runs.length),
  );

  const clock = playback({
    speed: () => 60 * pace, // steps of 1/60 second
    waits: () => false,
    advance(steps) {
      now = Math.min(end, now + steps / 60);
      draw();
      return now < end;
    },
    changed(playing) {
      setText(play, playing ? "❚❚" : "▶");
      for (const name of ["aria-label", "title"])
        setAttr(play, name, playing ? "Pause (space)" : "Play (space)");
      if (!playing) announce();
    },
  });
  const race = {
    /** @param {number} to seconds */
    go(to) {
      clock.stop();
      now = clamp(to, 0, end);
      draw();
      announce();
    },
    step: (way) => race.go(nextEnd(runs, now, way)),
    leap: (way) => race.go(now + (way * end) / 10),
    edge: (way) => race.go(way < 0 ? 0 : end),
    toggle() {
      if (!clock.playing && now >= end) now = 0;
      clock.toggle();
    },
    speed(way) {
      pace = PACES[clamp(PACES.indexOf(pace) + way, 0, PACES.length - 1)];
      paces.value = String(pace);
    },
    full() {
      const done = document.fullscreenElement
        ? document.exitFullscreen()
        : root.requestFullscreen?.();
      done?.catch?.(() => note.say("full screen is not allowed here"));
    },
    help(on) {
      show(list, on ?? list.hidden);
      if (!list.hidden) list.scrollIntoView?.({ block: "nearest" });
    },
    escape() {
      race.help(false);
      note.hush();
    },
    link() {
      if (!options.standalone) return;
      location.hash = hashOf(now);
      note.offer(location);
    },
  };

  const taken = [...new Set(runs.map((run) => run.header.times).filter(Boolean))]
    .map((said) => `, ${said}`)
    .join("");
  const note = notice(() => root.focus({ preventScroll: true }));
  const panel = panelOf(race, note, { end, pace, standalone: Boolean(options.standalone) });
  const { play, scrub, where, paces } = panel;
  const list = helpList(
    RACE_KEYS,
    "Each run has its own lane and its own measured times; a round's tokens appear when the " +
      "round is over.",
  );
  const live = h("div", { class: "svp-live", "aria-live": "polite", "data-testid": "svp-live" });
  const verdict = h("b"),
    why = h("span", { text: options.why ?? "" });
  root.append(
    h("div", { class: "svp-head1" }, [
      h("b", { text: title }),
      h("span", { text: `one clock: each run's own measured times${taken}` }),
    ]),
    h(
      "div",
      { class: "svp-racers", role: "list", "aria-label": "Runs" },
      lanes.map((one) => one.el),
    ),
    h("p", { class: "svp-result" }, [verdict, " ", why]),
    list,
    panel.el,
    live,
  );
  el.append(root);

  const draw = () => keepingFocus(root, update);
  function update() {
    const places = lanes
      .filter((one) => one.finish <= now + 1e-12)
      .sort((a, b) => a.finish - b.finish);
    for (const one of lanes) {
      const tokens = one.update(now),
        place = places.indexOf(one);
      const took = place < 0 ? now : one.finish;
      const rate =
        tokens && took > 0 ? `${Math.round(tokens / took).toLocaleString("en")} tokens/s` : "";
      const running = places.length ? `still running, ${rate}` : rate;
      setText(
        one.flag,
        place < 0 ? running : `${place ? "done" : "first"}: ${duration(took)}, ${rate}`,
      );
      setAttr(one.el, "data-first", place === 0 || null);
      setAttr(one.el, "data-done", place >= 0 || null);
    }
    const over = now >= end - 1e-12;
    setText(verdict, over ? (options.verdict ?? "") : "Every run on its own measured clock.");
    show(why, over);
    scrub.value = String(now);
    scrub.setAttribute("aria-valuetext", `${duration(now)} of ${duration(end)}`);
    setText(where, duration(now));
    setAttr(root, "data-seconds", now);
    if (!clock.playing) note.hush();
  }
  function announce() {
    const told = runs.map((data, i) => {
      const over =
        lanes[i].finish <= now + 1e-12 ? `, done after ${duration(lanes[i].finish)}` : "";
      return `${data.header.label}: ${count(tokensAt(data, now).tokens, "token")}${over}`;
    });
    const result = now >= end - 1e-12 && options.verdict ? ` ${options.verdict}` : "";
    setText(live, `After ${duration(now)}: ${told.join("; ")}.${result}`);
  }
  const listen = (target, event, does) =>
    target.addEventListener(event, does, { signal: off.signal });
  listen(scrub, "input", () => race.go(Number(scrub.value)));
  listen(paces, "change", () => (pace = Number(paces.value)));
  listenToKeys(root, off.signal, raceCommand, (act, ...more) => race[act](...more));
  afterPointer(root, off.signal);
  const watch = new IntersectionObserver((seen) =>
    clock.seen(seen[seen.length - 1].isIntersecting),
  );
  watch.observe(root);
  const fromLink = () => {
    const moment = options.standalone ? timeOf(location.hash, end) : null;
    if (moment !== null && Math.abs(moment - now) > 1e-6) race.go(moment);
  };
  listen(window, "hashchange", fromLink);
  listen(window, "beforeprint", () => race.go(end)); // a race on paper is over
  draw();
  fromLink();
  announce();
  let gone = false;
  return () => {
    if (gone) return;
    gone = true;
    clock.stop();
    off.abort();
    watch.disconnect();
    root.remove();
  };
}

/** Read all of a model's runs and let them race. @param {any} model @param {any} el */
export async function raceOf(model, el) {
  const runs = await Promise.all(
    model.get("data").map(async (packed) => decode(await unzip(packed))),
  );
  return mountRace(el, runs, model);
}
