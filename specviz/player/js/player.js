// The player: one trace, one position, the views that draw it.

import { decode, unzip } from "./decode.js";
import { controls, command } from "./controls.js";
import { h, setAttr, setText, show } from "./dom.js";
import { afterPointer, keepingFocus, listenToKeys } from "./focus.js";
import { frameAt } from "./frame.js";
import { playback, SPEEDS } from "./playback.js";
import { predictPanel, scorebook } from "./predict.js";
import { clamp, fromHash, jump, search, timeline, toHash } from "./timeline.js";
import { barsView } from "./view_bars.js";
import { cachesView } from "./view_caches.js";
import { drawView } from "./view_draw.js";
import { lanesView } from "./view_lanes.js";
import { measuresView } from "./view_measures.js";
import { phaseView } from "./view_phase.js";
import { textView } from "./view_text.js";
import { treeView } from "./view_tree.js";
import { caption, spoken } from "./words.js";

export const VIEWS = [
  textView,
  phaseView,
  barsView,
  drawView,
  cachesView,
  lanesView,
  measuresView,
  treeView,
];

const SIDE = ["caches", "lanes", "measures"];

/** What a first visitor sees; everything else waits behind "Details". */
const FIRST = ["text", "phase", "tree"];

/**
 * Build a player inside an element.
 * @param {any} el
 * @param {import("./decode.js").Data} data
 * @param {any} model  get, set, on, off, save_changes: anywidget's, or the page's shim
 * @returns {() => void} takes everything down again
 */
export function mountPlayer(el, data, model) {
  return buildPlayer(el, data, model).dispose;
}

/** The player's outermost element. @param {any} options @param {string} label */
function rootOf(options, label) {
  const root = h("div", {
    class: `svp svp-player svp-${options.theme ?? "auto"}${options.height ? " svp-fixed" : ""}`,
    tabindex: 0,
    role: "group",
    "aria-label": `Player: ${label}`,
    "data-lm-suppress-shortcuts": "true",
    "data-testid": "specviz-player",
  });
  if (options.height) root.style.height = `${options.height}px`;
  return root;
}

/**
 * What a reader can do: keys, buttons and views ask for these by name.
 * @param {any} it  the player's parts (data, time, state, feed, options, book, newest) and, by the
 *   time that a reader acts, root, bar, live, clock and the functions that draw and move
 */
function actsOf(it) {
  const { data, time, state, feed, options, book, newest } = it;
  const player = {
    /** @type {import("./frame.js").Frame} */
    frame: frameAt(data, time, 0),
    /** @param {number} step */
    go(step) {
      it.clock.stop();
      state.following = Boolean(feed) && step >= newest();
      it.move(step);
      it.settle();
    },
    jump: (unit, way) => player.go(jump(data, time, state.step, unit, way)),
    edge: (way) => player.go(way < 0 ? 0 : time.length - 1),
    toggle() {
      if (player.frame.concealed) return player.guess(null);
      if (feed?.running && !state.playing && (state.following || state.step >= newest()))
        return it.follow(!state.following);
      state.following = false;
      if (!state.playing && state.step >= time.length - 1) it.move(0);
      it.clock.toggle();
    },
    whatIf(change) {
      it.clock.stop();
      const back = !change && state.whatIf;
      state.whatIf = change && { ...state.whatIf, ...change };
      it.draw();
      if (back) it.announce();
    },
    /** Say a thing that is not what happened, once it is settled. @param {string} words */
    tell: (words) => setText(it.live, words),
    guess(kept) {
      if (!player.frame.concealed) return;
      book.answer(player.frame, kept);
      it.clock.hold(1.5);
      it.draw();
      it.announce();
    },
    showHint() {
      if (player.frame.concealed) state.hint = true;
      it.draw();
    },
    hint: () => player.showHint(),
    predict() {
      state.predict = !state.predict;
      if (state.predict) book.clear();
      it.draw();
      it.announce();
    },
    details() {
      state.details = !state.details;
      it.draw();
      it.relink();
    },
    why() {
      state.why = !state.why;
      it.draw();
    },
    guided() {
      state.guided = !state.guided;
      it.draw();
    },
    speed: (way) =>
      player.setSpeed(SPEEDS[clamp(SPEEDS.indexOf(state.speed) + way, 0, SPEEDS.length - 1)]),
    setSpeed(speed) {
      state.speed = speed;
      it.draw();
    },
    find(words) {
      const step = search(data, time, words, state.step);
      if (step >= 0) player.go(step);
      return step >= 0;
    },
    focus: () => it.root.focus({ preventScroll: true }),
    full() {
      const whole = feed?.full ?? it.root;
      const done = document.fullscreenElement
        ? document.exitFullscreen()
        : whole.requestFullscreen?.();
      done?.catch?.(() => it.bar.say("full screen is not allowed here"));
    },
    help: (on) => it.bar.showHelp(on),
    escape() {
      it.bar.showHelp(false);
      it.bar.hush();
      player.whatIf(null);
    },
    link() {
      if (!options.standalone) return;
      location.hash = toHash(time.at(state.step), state.details);
      it.bar.offer(location);
    },
  };
  return player;
}

/**
 * The views that are shown, in their columns.
 * @param {any} it the player's parts @param {any} player @param {any[]} boxes above the columns
 */
function stageOf({ data, time, options }, player, boxes) {
  const wanted = VIEWS.filter((view) =>
    options.views ? options.views.includes(view.name) : view.name !== "tree" || data.isTree,
  );
  const views = wanted.map((view) => view.mount(data, time, player));
  const section = (/** @type {number} */ i) =>
    h("section", { class: `svp-view svp-v-${wanted[i].name}`, "aria-label": wanted[i].title }, [
      h("h3", { class: "svp-h", text: wanted[i].title }),
      views[i].el,
    ]);
  const stage = h("div", { class: "svp-stage" });
  // on a wide screen: what decides on the left, what comes of it beside it
  const main = h("div", { class: "svp-main" }),
    side = h("div", { class: "svp-side" }),
    details = h("div", { class: "svp-details" }, [main, side]);
  const phase = views[wanted.findIndex((view) => view.name === "phase")],
    middle = phase?.middle;
  wanted.forEach((view, i) => {
    const first = FIRST.includes(view.name);
    if (view.name === "text" && middle) middle.prepend(section(i));
    else if (view.name === "tree" && phase) phase.under.append(section(i));
    else (first ? stage : SIDE.includes(view.name) ? side : main).append(section(i));
  });
  if (phase) phase.under.append(...boxes);
  else stage.append(...boxes);
  if (main.firstChild || side.firstChild) stage.append(details);
  for (const one of [main, side]) show(one, Boolean(one.firstChild));
  // views behind "Details" are not drawn while they cannot be seen
  const hides = options.views ? [] : wanted.map((view) => !FIRST.includes(view.name));
  return {
    stage,
    views,
    update(/** @type {any} */ frame, /** @type {any} */ state) {
      show(details, Boolean(options.views) || state.details);
      views.forEach((view, i) => {
        if (!hides[i] || state.details) view.update(frame, state);
      });
    },
  };
}

/**
 * Above the stage: what will happen, in a sentence; with the details also what the run is.
 * @param {import("./decode.js").Data} data @param {any} options
 * @param {boolean} live whether the run is in progress: then more is known with every round
 */
function headOf(data, options, live) {
  const supposing = h("b", {
    class: "svp-badge svp-supposing",
    text: "what if: text, cards and caption still show what happened",
  });
  const [name, rule, about] = [h("b"), h("span"), h("span")];
  const opening = h("p", { class: "svp-opening" });
  const el = h("div", { class: "svp-head1" }, [name, rule, about, supposing]);
  return {
    el,
    opening,
    say() {
      setText(name, options.title || data.header.label);
      setText(rule, data.header.rule_label);
      setText(about, data.header.about ?? "");
      setText(opening, data.header.hints.opening);
      show(opening, !options.views);
    },
    /** @param {any} state */
    update(state) {
      const all = Boolean(options.views) || state.details,
        what = Boolean(state.whatIf);
      for (const one of [rule, about]) show(one, all);
      show(name, all || live || Boolean(options.title));
      show(supposing, what);
      show(el, all || what || !name.hidden);
    },
  };
}

/**
 * As mountPlayer, for a run that may still grow.
 * @param {any} el @param {import("./decode.js").Data} data @param {any} model
 * @param {{ running: boolean, full?: any, prefers?: any, changed?: () => void } | null} [feed] of a
 *   growing run: whether it still runs, what to show full screen, a state to start with, whom to
 *   tell
 */
export function buildPlayer(el, data, model, feed = null) {
  const options = model.get("options") ?? {};
  const time = timeline(data);
  const off = new AbortController();
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const book = scorebook(data);
  const state = {
    step: 0,
    playing: false,
    speed: 2,
    guided: options.guided !== false,
    predict: false,
    details: false,
    why: false,
    hint: false,
    book,
    whatIf: /** @type {any} */ (null),
    following: Boolean(feed),
    ...feed?.prefers,
  };
  /** Where a growing run is followed: its newest round decided, and in the end all of it. */
  const newest = () => time.length - (feed?.running && data.round.nodes[data.rounds - 1] ? 2 : 1);
  const heading = () => state.following && Boolean(feed?.running);
  const root = rootOf(options, data.header.label);
  if (!time.length) {
    root.append(
      h("p", { class: "svp-none", text: "This run has no rounds: there is nothing to play." }),
    );
    el.append(root);
    return { root, state, grow() {}, follow() {}, dispose: () => root.remove() };
  }

  const clock = playback({
    speed: () => state.speed,
    waits: () => player.frame.concealed,
    advance(steps) {
      const last = time.length - 1;
      let to = Math.min(state.step + steps, last);
      if (reduced.matches) to = time.start[time.at(to).round + 1] - 1; // completed states only
      if (state.predict)
        for (let s = state.step + 1; s < to; s++) if (time.at(s).phase === "decide") to = s;
      if (to === last && feed?.running) state.following = true; // caught up
      move(to);
      return to < last;
    },
    changed(playing) {
      state.playing = playing;
      draw();
      if (!playing) settle();
    },
  });

  const it = { data, time, state, feed, options, book, newest, root, clock };
  const player = actsOf(it);
  const bar = controls(player, {
    standalone: Boolean(options.standalone),
    length: time.length,
    details: !options.views,
    why: data.header.hints.decides === "u",
  });
  const captionBox = h("div", { class: "svp-caption" });
  const live = h("div", { class: "svp-live", "aria-live": "polite", "data-testid": "svp-live" });
  const predicting = predictPanel(data, player);
  const { stage, views, update: drawViews } = stageOf(it, player, [captionBox, predicting.el]);
  const head = headOf(data, options, Boolean(feed));
  const headed = () => {
    head.say();
    setAttr(root, "aria-label", `Player: ${data.header.label}`);
  };
  headed();
  root.append(head.el, head.opening, stage, bar.list, bar.el, live);
  el.append(root);

  const draw = () => keepingFocus(root, update);
  Object.assign(it, { bar, live, draw, move, follow, settle, announce, relink });
  /** What the live region told: the step, and whether as a question. */
  let told = { step: -1, asked: false };

  function update() {
    const asks = state.predict && book.asks(frameAt(data, time, state.step));
    const frame = frameAt(data, time, state.step, asks);
    player.frame = frame;
    drawViews(frame, state);
    head.update(state);
    bar.update(frame, heading() ? { ...state, playing: true } : state);
    feed?.changed?.();
    predicting.update(frame, state);
    show(captionBox, state.guided);
    if (state.guided) setText(captionBox, caption(data, frame));
    setAttr(root, "data-round", frame.round);
    setAttr(root, "data-phase", frame.phase);
    setAttr(root, "data-step", frame.step);
    setAttr(root, "data-details", Boolean(options.views) || state.details || null);
    setAttr(root, "data-whatif", Boolean(state.whatIf) || null);
    // a question is said as soon as it stands; what was said of another step does not stay
    if (frame.concealed && !(told.asked && told.step === frame.step)) announce();
    else if (told.step !== frame.step || (told.asked && !frame.concealed)) setText(live, "");
    // at this pace hardly anybody sees a transition, and each costs a layer of its own
    setAttr(root, "data-fast", (state.playing && state.speed >= 4) || null);
  }

  /** Whether the details are open stays in the page's address, and leaves no step behind. */
  function relink() {
    if (options.standalone)
      history.replaceState(null, "", toHash(time.at(state.step), state.details));
  }

  /** @param {number} step */
  function move(step) {
    state.step = clamp(Math.trunc(step) || 0, 0, time.length - 1);
    state.whatIf = null;
    state.hint = false;
    draw();
  }

  /** @param {boolean} on */
  function follow(on) {
    clock.stop();
    state.following = on;
    if (on) move(newest());
    else draw();
    settle();
  }

  /** More rounds of the same run, or its end. @param {import("./decode.js").Data} more */
  function grow(more) {
    Object.assign(data, more);
    Object.assign(time, timeline(data));
    headed();
    for (const view of views) view.grown?.();
    bar.grown(time.length);
    if (state.following) move(newest());
    else draw();
  }

  function announce() {
    setText(live, spoken(data, player.frame));
    told = { step: state.step, asked: player.frame.concealed };
  }

  /** @type {any} */
  let later = 0;
  /** After an act of the reader: say where one is, and tell the kernel, once. */
  function settle() {
    announce();
    clearTimeout(later);
    later = setTimeout(() => {
      if (model.get("step") === state.step) return;
      model.set("step", state.step);
      model.set("round", player.frame.round);
      model.save_changes();
    }, 120);
  }

  const listen = (target, event, does, more = {}) =>
    target.addEventListener(event, does, { ...more, signal: off.signal });
  const act = (asked, ...more) => {
    if (asked !== "find") return player[asked](...more);
    if (!state.details) player.details();
    bar.find.focus();
  };
  listenToKeys(
    root,
    off.signal,
    command,
    act,
    ({ target, key }) =>
      target.type === "search" ||
      target.type === "text" ||
      (target.type === "range" &&
        !target.classList.contains("svp-scrub") &&
        /^(Arrow|Home|End|Page)/.test(key)),
  );
  afterPointer(root, off.signal);
  const fromKernel = () => {
    const step = model.get("step");
    if (Number.isInteger(step) && step !== state.step) player.go(step);
  };
  const roundFromKernel = () => {
    const round = model.get("round");
    if (Number.isInteger(round) && round !== player.frame.round && model.get("step") === state.step)
      player.go(time.start[clamp(round, 0, data.rounds - 1)]);
  };
  model.on("change:step", fromKernel);
  model.on("change:round", roundFromKernel);
  const watch = new IntersectionObserver((seen) =>
    clock.seen(seen[seen.length - 1].isIntersecting),
  );
  watch.observe(root);
  const fromLink = () => {
    if (!options.standalone) return;
    state.details = /(^#|&)details\b/.test(location.hash);
    const position = fromHash(location.hash);
    if (position) player.go(time.step(position));
    else draw();
  };
  listen(window, "hashchange", fromLink);

  const opens = time.start[data.header.opening];
  move(feed ? newest() : (model.get("step") ?? -1) < 0 ? opens : model.get("step"));
  fromLink();
  announce();
  let gone = false;
  const dispose = () => {
    if (gone) return;
    gone = true;
    clock.stop();
    clearTimeout(later);
    off.abort();
    watch.disconnect();
    model.off("change:step", fromKernel);
    model.off("change:round", roundFromKernel);
    root.remove();
  };
  return { root, state, grow, follow, dispose };
}

/** Read the first of a model's runs and build its player. @param {any} model @param {any} el */
export async function playerOf(model, el) {
  const data = decode(await unzip(model.get("data")[0]));
  return mountPlayer(el, data, model);
}
