// The editor of one position: bars, one draw, many draws, and a switch for planted faults.

import { h, setAttr, setText, show } from "./dom.js";
import { FEWEST, MOST, PRESETS } from "./editing.js";
import { mountBars } from "./editor_bars.js";
import { mountDraw } from "./editor_draw.js";
import { mountMany } from "./editor_many.js";
import { ACTS, begin, exactAt, manyAt, SIZES } from "./editor_state.js";
import { exactSaid, spokenOf } from "./editor_words.js";
import { FAULTS_AT_ONE } from "./faults_at_one.js";
import { afterPointer, keepingFocus, listenToKeys } from "./focus.js";
import { thousands } from "./numbers.js";
import { WAYS } from "./one_position.js";

/** Key → what it does; the help lists these. */
export const EDITOR_KEYS = [
  ["Tab", "go from bar to bar, and on"],
  ["← → Shift", "on a bar: change it by .01, by .05"],
  ["Home End", "on a bar: nothing, all there is"],
  ["l", "on a bar: lock or unlock it"],
  ["Space", "one draw, phase by phase"],
  ["→", "the next phase of a draw"],
  ["d", "draw a sample"],
  ["[ ]", "previous, next planted fault"],
  ["0", "no fault"],
  ["r", "back to the preset"],
  ["f", "full screen"],
  ["?", "this list"],
];

/** What a key asks for; null if it is not ours. @param {{ key: string }} event */
export function editorCommand({ key }) {
  switch (key) {
    case " ":
      return ["play"];
    case "ArrowRight":
      return ["step"];
    case "d":
      return ["sample"];
    case "[":
      return ["turn", -1];
    case "]":
      return ["turn", 1];
    case "0":
      return ["turn", 0];
    case "r":
      return ["reset"];
    case "f":
      return ["full"];
    case "?":
      return ["help"];
    case "Escape":
      return ["escape"];
    default:
      return null;
  }
}

const PACE = 1100; // milliseconds a phase is shown
const FRAMES = 45; // so many pictures of a sample that arrives

/** A labelled list to choose from. */
function choice(label, options, chosen, groups = false) {
  const option = ({ name, label: text }) => h("option", { value: name, text });
  const children = !groups
    ? options.map(option)
    : [...new Set(options.map((one) => one.group))].flatMap((group) => {
        const inside = options.filter((one) => one.group === group).map(option);
        return group ? [h("optgroup", { label: group }, inside)] : inside;
      });
  const select = h("select", { "data-testid": `svp-${label.replace(/\W+/g, "-")}` }, children);
  select.addEventListener("change", () => chosen(select.value));
  return { select, el: h("label", { class: "svp-ask" }, [h("span", { text: label }), select]) };
}

/** What an editor is set up and driven with: lists, seed, buttons, help. @param {any} editor */
function panelOf(editor) {
  const preset = choice(
    "begin with",
    [{ name: "", label: "your own bars" }, ...PRESETS],
    (name) => name && editor.did("preset", name),
  );
  const way = choice("judged as", WAYS, (name) => editor.did("way", name));
  const fault = choice(
    "planted fault",
    [
      { name: "", label: "none: the right decoder", group: "" },
      ...FAULTS_AT_ONE.map(({ name, group, wrong }) => ({
        name,
        group,
        label: `${name.replaceAll("_", " ")}: ${wrong}`,
      })),
    ],
    (name) => editor.did("fault", name),
    true,
  );
  const seed = h("input", {
    type: "number",
    min: 0,
    max: 4294967295,
    step: 1,
    class: "svp-seed",
    "data-testid": "svp-seed",
  });
  seed.addEventListener("change", () => editor.did("seed", seed.value));
  const button = (text, label, does, more = {}) => {
    const made = h("button", { type: "button", text, title: label, "aria-label": label, ...more });
    made.addEventListener("click", does);
    return made;
  };
  const fewer = button("−", "One token fewer", () =>
    editor.did("resize", editor.state.words.length - 1),
  );
  const more = button("+", "One token more", () =>
    editor.did("resize", editor.state.words.length + 1),
  );
  const tokens = h("output", { class: "svp-tokens" });
  const setup = h("div", { class: "svp-setup" }, [
    preset.el,
    h("div", { class: "svp-ask" }, [
      h("span", { text: "tokens" }),
      h("div", { class: "svp-group" }, [fewer, tokens, more]),
    ]),
    way.el,
    fault.el,
    h("label", { class: "svp-ask" }, [h("span", { text: "seed" }), seed]),
  ]);

  const play = button("▶ one draw", "One draw, phase by phase (space)", () => editor.play(), {
    class: "svp-play",
    "data-testid": "svp-play",
  });
  const size = choice(
    "how many",
    SIZES.map((n) => ({ name: String(n), label: thousands(n) })),
    (n) => editor.did("size", Number(n)),
  );
  const sample = button("", "Draw a sample (d)", () => editor.sample(), {
    "data-testid": "svp-sample",
  });
  const which = h("output", { class: "svp-found", "data-testid": "svp-numbers" });
  const group = (...children) => h("div", { class: "svp-group" }, children);
  const bar = h("div", { class: "svp-bar", role: "toolbar", "aria-label": "Editor" }, [
    group(
      play,
      button("phase ▸", "The next phase (right)", () => editor.step(), {
        "data-testid": "svp-next",
      }),
    ),
    group(sample, size.el),
    which,
    group(
      button("reset", "Back to the preset (r)", () => editor.reset()),
      button("full", "Full screen (f)", () => editor.full()),
      button("?", "Keys (?)", () => editor.help()),
    ),
  ]);
  const help = h("div", { class: "svp-help", hidden: true, role: "dialog", "aria-label": "Keys" }, [
    h("b", { text: "Keys" }),
    h(
      "dl",
      {},
      EDITOR_KEYS.flatMap(([key, does]) => [h("dt", { text: key }), h("dd", { text: does })]),
    ),
    h("p", {
      text:
        "Every number comes from the seed: the same seed gives the same draws, here and in " +
        "Python (specviz.core.philox).",
    }),
  ]);
  return {
    setup,
    bar,
    help,
    /** @param {any} state @param {boolean} playing */
    update(state, playing) {
      setText(tokens, String(state.words.length));
      setAttr(fewer, "disabled", state.words.length <= FEWEST || null);
      setAttr(more, "disabled", state.words.length >= MOST || null);
      for (const [select, value] of [
        [preset.select, state.preset],
        [way.select, state.way],
        [fault.select, state.fault],
        [size.select, String(state.size)],
      ])
        if (select.value !== value) select.value = value;
      if (Number(seed.value) !== state.seed || seed.value === "") seed.value = String(state.seed);
      setText(play, playing ? "❚❚ pause" : "▶ one draw");
      setText(sample, `draw ${thousands(state.size)}`);
      setText(
        which,
        state.many
          ? `seed ${state.seed}, draws ${thousands(state.many.first)} – ` +
              `${thousands(state.many.first + state.many.wanted - 1)}`
          : state.one
            ? `seed ${state.seed}, draw ${thousands(state.one.number)}`
            : `seed ${state.seed}`,
      );
    },
  };
}

const SYNCED = ["words", "p", "q", "way", "fault", "seed"];
const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Keep an editor and its model in step.
 * @param {any} model @param {any} editor
 * @param {{ halt: () => void, changed: () => void }} does
 */
function inStepWith(model, editor, { halt, changed }) {
  const told = (name) => model.get(name);
  /** Tell the kernel, once an act is done. */
  function tell() {
    const news = SYNCED.filter((name) => !equal(model.get(name), editor.state[name]));
    if (!news.length) return;
    for (const name of news) model.set(name, editor.state[name]);
    model.save_changes();
  }
  /** Take in what the kernel, or another view, set; several at once are one change. */
  let follows = false;
  const follow = () => {
    if (follows) return;
    follows = true;
    queueMicrotask(() => {
      follows = false;
      const { state } = editor,
        other = (name) => !equal(told(name), state[name]);
      if (!SYNCED.some(other)) return;
      if (other("words")) {
        halt();
        editor.state = begin({
          words: told("words"),
          p: told("p"),
          q: told("q"),
          way: told("way"),
          fault: told("fault"),
          seed: told("seed"),
        });
      }
      if (other("p")) editor.act("distribution", "p", told("p"));
      if (other("q")) editor.act("distribution", "q", told("q"));
      for (const name of ["way", "fault", "seed"])
        if (told(name) !== editor.state[name]) editor.act(name, told(name));
      changed();
    });
  };
  for (const name of SYNCED) model.on(`change:${name}`, follow);
  return {
    tell,
    end() {
      for (const name of SYNCED) model.off(`change:${name}`, follow);
    },
  };
}

/** Build an editor inside an element. @param {any} el @param {any} model @returns {() => void} */
export function mountEditor(el, model) {
  const options = model.get("options") ?? {};
  const first = begin({
    preset: options.preset,
    words: model.get("words"),
    p: model.get("p"),
    q: model.get("q"),
    way: model.get("way"),
    fault: model.get("fault"),
    seed: model.get("seed") ?? 0,
  });
  const off = new AbortController(),
    reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {any} */
  let timer = 0,
    frame = 0,
    later = 0,
    exact = exactAt(first);

  const editor = {
    state: first,
    /** An act of the reader. */
    act(name, ...how) {
      const before = editor.state;
      if (name !== "step" && name !== "finish") halt();
      editor.state = ACTS[name](before, ...how);
      if (!editor.state.many) cancelAnimationFrame(frame); // what it was drawn from is no more
      const same = ["p", "q", "way", "fault"].every((part) => before[part] === editor.state[part]);
      if (!same) exact = exactAt(editor.state);
      const { many } = editor.state;
      if (name === "more" && reduced.matches && many.n < many.wanted) return; // whole states only
      draw();
    },
    settle(act) {
      setText(live, spokenOf(editor.state, exact, manyAt(editor.state, exact), act));
      clearTimeout(later);
      later = setTimeout(tell, 120);
    },
    did(name, ...how) {
      editor.act(name, ...how);
      editor.settle(name);
    },
    step: () => (halt(), editor.did("step")),
    play() {
      if (timer) return halt();
      editor.act("step");
      while (editor.state.one.step > 0) editor.act("step"); // half told: the next one
      if (reduced.matches) editor.act("finish");
      editor.settle("step");
      if (!reduced.matches) timer = setInterval(onward, PACE);
      draw();
    },
    sample() {
      cancelAnimationFrame(frame);
      editor.act("many");
      const part = Math.ceil(editor.state.many.wanted / FRAMES);
      const arrive = () => {
        editor.act("more", part);
        if (editor.state.many.n < editor.state.many.wanted) frame = requestAnimationFrame(arrive);
        else editor.settle("more");
      };
      arrive();
    },
    turn(by) {
      const names = ["", ...FAULTS_AT_ONE.map((fault) => fault.name)],
        n = names.length;
      editor.did("fault", by ? names[(names.indexOf(editor.state.fault) + by + n) % n] : "");
    },
    reset() {
      editor.act("preset", editor.state.preset || first.preset || PRESETS[0].name);
      if (!first.preset)
        editor.state = {
          ...begin({ words: first.words, p: first.p, q: first.q, seed: first.seed }),
          fault: editor.state.fault,
          way: editor.state.way,
        };
      exact = exactAt(editor.state);
      draw();
      editor.settle("reset");
    },
    full() {
      const done = document.fullscreenElement
        ? document.exitFullscreen()
        : root.requestFullscreen?.();
      done?.catch?.(() => setText(live, "full screen is not allowed here"));
    },
    help(on) {
      show(panel.help, on ?? panel.help.hidden);
      if (!panel.help.hidden) panel.help.scrollIntoView?.({ block: "nearest" });
    },
    escape: () => (editor.help(false), halt()),
  };

  function onward() {
    const one = editor.state.one;
    if (!one || one.step >= one.steps.length - 1) return halt();
    editor.act("step");
    editor.settle("step");
  }
  function halt() {
    if (!timer) return;
    clearInterval(timer);
    timer = 0;
    draw();
  }

  const root = h("div", {
    class: `svp svp-editor svp-${options.theme ?? "auto"}`,
    tabindex: 0,
    role: "group",
    "aria-label": "Editor of one position: target p and draft q",
    "data-lm-suppress-shortcuts": "true",
    "data-testid": "specviz-editor",
  });
  if (options.height) root.style.height = `${options.height}px`;
  const views = [
    { name: "ebars", title: "target p and draft q", made: mountBars(editor) },
    { name: "edraw", title: "one draw", made: mountDraw() },
    { name: "many", title: "many draws against p", made: mountMany() },
  ];
  const stage = h(
    "div",
    { class: "svp-stage svp-estage" },
    views.map(({ name, title, made }) =>
      h("section", { class: `svp-view svp-v-${name}`, "aria-label": title }, [
        h("h3", { class: "svp-h", text: title }),
        made.el,
      ]),
    ),
  );
  const alpha = h("p", { class: "svp-alpha", "data-testid": "svp-alpha" });
  const live = h("div", { class: "svp-live", "aria-live": "polite", "data-testid": "svp-live" });
  const head = h("div", { class: "svp-head1" }, [
    h("b", { text: options.title || "Speculative decoding at one position" }),
    h("span", { text: "change p and q, break the algorithm, see whether the sample tells" }),
  ]);
  const panel = panelOf(editor);
  root.append(head, panel.setup, alpha, stage, panel.help, panel.bar, live);
  el.append(root);

  function draw() {
    keepingFocus(root, redraw);
  }
  function changed() {
    exact = exactAt(editor.state);
    draw();
  }

  function redraw() {
    const { state } = editor,
      many = manyAt(state, exact);
    for (const { made } of views) made.update(state, exact, many);
    setText(alpha, exactSaid(state, exact));
    panel.update(state, Boolean(timer));
    setAttr(root, "data-fault", state.fault || null);
    setAttr(root, "data-drawn", state.many ? state.many.n : null);
  }

  const { tell, end } = inStepWith(model, editor, { halt, changed });

  listenToKeys(
    root,
    off.signal,
    editorCommand,
    (act, ...how) => editor[act](...how),
    ({ target }) => target.tagName === "INPUT",
  );
  afterPointer(root, off.signal);

  draw();
  return () => {
    off.abort();
    clearInterval(timer);
    clearTimeout(later);
    cancelAnimationFrame(frame);
    end();
    root.remove();
  };
}

/** @param {any} model @param {any} el */
export const editorOf = async (model, el) => mountEditor(el, model);
