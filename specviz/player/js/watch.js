// Samples watched as they come: observed against expected, total variation, and the evidence.

import { chanceBound, noiseFloor, shareInterval } from "./chance_numbers.js";
import { h, setAttr, setText, show } from "./dom.js";
import { afterPointer, keepingFocus, listenToKeys } from "./focus.js";
import { shown, thousands } from "./numbers.js";
import { gauge, observedBars } from "./observed.js";
import { totalVariation } from "./one_position.js";
import { evidenceChart } from "./watch_chart.js";
import { fromHere, fromModel, samplersHere } from "./watch_source.js";
import { evidenceSaid, peekingSaid, samplerSaid, spokenWatch, tallySaid } from "./watch_words.js";

export const WATCH_KEYS = [
  ["Space", "start, pause"],
  ["r", "a new run: other samples, counts from nothing"],
  ["[ ]", "previous, next sampler"],
  ["0", "the right decoder"],
  ["+ −", "faster, slower"],
  ["f", "full screen"],
  ["?", "this list"],
];

/** What a key asks for; null if it is not ours. @param {{ key: string }} event */
export function watchCommand({ key }) {
  switch (key) {
    case " ":
      return ["toggle"];
    case "r":
      return ["anew"];
    case "[":
      return ["turn", -1];
    case "]":
      return ["turn", 1];
    case "0":
      return ["turn", 0];
    case "+":
    case "=":
      return ["faster", 1];
    case "-":
    case "−":
      return ["faster", -1];
    case "f":
      return ["full"];
    case "?":
      return ["help"];
    case "Escape":
      return ["help", false];
    default:
      return null;
  }
}

/** The rows of a state: what was seen of each cell beside what was expected. */
export function watchRowsAt(options, state) {
  const it = options.samplers.find((one) => one.name === state.sampler),
    n = state.n;
  return options.cells.map((word, i) => {
    const count = state.counts[i] ?? 0,
      [low, high] = n ? shareInterval(count, n, 0.01 / options.distribution.length) : [0, 1];
    const expected = options.distribution[i];
    return {
      word,
      count,
      seen: n ? count / n : 0,
      low,
      high,
      expected,
      distribution: it?.distribution?.[i] ?? expected,
      outside: n > 0 && (expected < low || expected > high),
    };
  });
}

/** The total variation that was seen, and what chance shows; null before the first sample. */
export function distanceAt(options, state) {
  if (!state.n) return null;
  const tv = totalVariation(
    options.distribution,
    state.counts.map((k) => k / state.n),
  );
  return {
    tv,
    floor: noiseFloor(options.distribution, state.n),
    bound: chanceBound(options.distribution, state.n, 0.01),
  };
}

/** Build a watch inside an element. @param {any} el @param {any} model @returns {() => void} */
export function mountWatch(el, model) {
  const given = model.get("options"),
    options = given.here ? { ...given, samplers: samplersHere(given) } : given;
  const off = new AbortController();
  let said = "";
  const source = options.here ? fromHere(options, () => draw()) : fromModel(model, () => draw());

  const acts = {
    toggle: () => source.ask(source.state.running ? "pause" : "start"),
    anew: () => source.ask("reset"),
    turn(by) {
      const names = options.samplers.map((one) => one.name),
        n = names.length;
      source.ask(
        "sampler",
        by ? names[(names.indexOf(source.state.sampler) + by + n) % n] : names[0],
      );
    },
    faster(by) {
      const at = options.rates.indexOf(source.state.rate) + by;
      if (options.rates[at]) source.ask("rate", options.rates[at]);
    },
    full() {
      const done = document.fullscreenElement
        ? document.exitFullscreen()
        : root.requestFullscreen?.();
      done?.catch?.(() => setText(live, "full screen is not allowed here"));
    },
    help(on) {
      show(help, on ?? help.hidden);
      if (!help.hidden) help.scrollIntoView?.({ block: "nearest" });
    },
  };

  const root = h("div", {
    class: `svp svp-watch svp-${options.theme ?? "auto"}`,
    tabindex: 0,
    role: "group",
    "aria-label": "Losslessness watched while samples arrive",
    "data-lm-suppress-shortcuts": "true",
    "data-testid": "specviz-watch",
  });
  if (options.height) root.style.height = `${options.height}px`;
  const button = (text, label, does, more = {}) => {
    const made = h("button", { type: "button", text, title: label, "aria-label": label, ...more });
    made.addEventListener("click", does);
    return made;
  };
  const pick = (label, choices, chosen, name) => {
    const select = h(
      "select",
      { "data-testid": name },
      choices.map(([value, text]) => h("option", { value, text })),
    );
    select.addEventListener("change", () => chosen(select.value));
    return { select, el: h("label", { class: "svp-ask" }, [h("span", { text: label }), select]) };
  };
  const sampler = pick(
    "what draws",
    options.samplers.map((one) => [one.name, one.label]),
    (name) => source.ask("sampler", name),
    "svp-sampler",
  );
  const rate = pick(
    "samples a second",
    options.rates.map((x) => [String(x), `${thousands(x)} / s`]),
    (x) => source.ask("rate", Number(x)),
    "svp-rate",
  );
  const what = h("p", { class: "svp-faultsaid", "data-testid": "svp-fault" });
  const bars = observedBars(),
    distance = gauge(),
    chart = evidenceChart(options);
  const verdict = h("p", { class: "svp-verdict", "data-testid": "svp-verdict" });
  const peeking = h("p", { class: "svp-peeking", "data-testid": "svp-peeking" }),
    tally = h("p", { class: "svp-tally", "data-testid": "svp-tally" });
  const section = (name, title, ...children) =>
    h("section", { class: `svp-view svp-v-${name}`, "aria-label": title }, [
      h("h3", { class: "svp-h", text: title }),
      ...children,
    ]);
  const stage = h("div", { class: "svp-stage svp-wstage" }, [
    section("wbars", "observed against expected", bars.el, distance.el, verdict),
    section("evidence", "evidence while samples arrive", chart.el, peeking, tally),
  ]);
  const play = button("", "", acts.toggle, { class: "svp-play", "data-testid": "svp-play" });
  const count = h("output", { class: "svp-found", "data-testid": "svp-count" });
  const group = (...children) => h("div", { class: "svp-group" }, children);
  const bar = h("div", { class: "svp-bar", role: "toolbar", "aria-label": "Watch" }, [
    group(play, button("new run", "A new run (r)", acts.anew, { "data-testid": "svp-anew" })),
    group(rate.el),
    count,
    group(
      button("full", "Full screen (f)", acts.full),
      button("?", "Keys (?)", () => acts.help()),
    ),
  ]);
  const help = h("div", { class: "svp-help", hidden: true, role: "dialog", "aria-label": "Keys" }, [
    h("b", { text: "Keys" }),
    h(
      "dl",
      {},
      WATCH_KEYS.flatMap(([key, does]) => [h("dt", { text: key }), h("dd", { text: does })]),
    ),
    h("p", {
      text:
        "The verdict is the e-process's: under the target's distribution it ever reaches " +
        "1/α with probability α at most, however often one looks (Ville 1939; Lindon & Malek " +
        "2022). A p-value holds for one look.",
    }),
  ]);
  const live = h("div", { class: "svp-live", "aria-live": "polite", "data-testid": "svp-live" });
  root.append(
    h("div", { class: "svp-head1" }, [
      h("b", { text: options.title || "Is it lossless? Watch the samples" }),
      h("span", { text: options.from }),
    ]),
    h("div", { class: "svp-setup" }, [sampler.el, what]),
    stage,
    help,
    bar,
    live,
  );
  el.append(root);

  function draw() {
    keepingFocus(root, redraw);
  }

  function redraw() {
    const { state } = source,
      it = options.samplers.find((one) => one.name === state.sampler);
    const seen = distanceAt(options, state);
    bars.update(
      watchRowsAt(options, state),
      state.n,
      Boolean(it?.distribution && !it.right && it.tv > 1e-9),
    );
    distance.update(
      seen,
      seen
        ? `TV seen ${shown(seen.tv)}, ${seen.tv > seen.bound ? "above" : "no more than"} ` +
            `chance: ${shown(seen.floor)} on average, up to ${shown(seen.bound)}`
        : "TV from the target: nothing drawn yet",
    );
    chart.update(state);
    setText(what, samplerSaid(options, state));
    setAttr(what, "data-on", !it?.right || null);
    const verdictNow = evidenceSaid(options, state);
    setText(verdict, verdictNow.text);
    setAttr(verdict, "data-mark", verdictNow.mark);
    setText(peeking, peekingSaid(options, state));
    setAttr(peeking, "data-alarm", state.p_alarm !== null || null);
    setText(tally, tallySaid(options, state));
    setText(
      play,
      state.running ? "❚❚ pause" : !state.n ? "▶ start" : state.ended ? "▶ again" : "▶ resume",
    );
    setAttr(play, "aria-label", `${state.running ? "Pause" : "Start"} (space)`);
    if (sampler.select.value !== state.sampler) sampler.select.value = state.sampler;
    if (rate.select.value !== String(state.rate)) rate.select.value = String(state.rate);
    setText(count, `run ${state.run}: ${thousands(state.n)} of ${thousands(options.limit)}`);
    setAttr(root, "data-n", state.n);
    setAttr(root, "data-running", state.running || null);
    const event =
      `${state.run} ${state.sampler} ${state.running} ${state.e_alarm} ` +
      `${state.p_alarm} ${state.error}`;
    if (event !== said && state.n) setText(live, spokenWatch(options, state));
    said = event;
  }

  listenToKeys(root, off.signal, watchCommand, (act, ...more) => acts[act](...more));
  afterPointer(root, off.signal);

  draw();
  return () => {
    off.abort();
    source.stop();
    root.remove();
  };
}

/** @param {any} model @param {any} el */
export const watchOf = async (model, el) => mountWatch(el, model);
