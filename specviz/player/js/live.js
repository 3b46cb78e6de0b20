// Live: the player under the controls of the run that feeds it.

import { decode, unzip } from "./decode.js";
import { h, setAttr, setText, show } from "./dom.js";
import { buildPlayer } from "./player.js";

/** How long a kernel may take to answer a button, in milliseconds. */
const PATIENCE = 5_000;

/** Why a text ended before its length; what is said of it. */
const ENDED = {
  eos: ", the text came to its end",
  stop: ", at a stop string",
  context: ", the context is full",
};

/**
 * What a run's state is called.
 * @param {any} status  of the model
 * @param {any} settings
 */
export function told(status, settings) {
  if (status.shown !== status.run) {
    const words = {
      running: "starting",
      cancelled: "cancelled before its first round",
      error: "not started",
    };
    return words[status.state] + (status.shown ? "; below is the run before" : "");
  }
  const rate = status.passes ? (status.tokens / status.passes).toFixed(2) : "–";
  const so =
    `${status.tokens} of ${settings.max_new_tokens} tokens in ${status.passes} ` +
    `passes, ${rate} per pass`;
  const lossy = status.lossy ? "; lossy: not the target's distribution" : "";
  const state = { running: "running", cancelled: "cancelled", error: "stopped", done: "done" }[
    status.state
  ];
  const early = status.state === "done" ? (ENDED[status.ended] ?? "") : "";
  return `${state}${early}: ${so}${lossy}`;
}

/**
 * What the fields hold, as the kernel takes it; an empty number is null, and refused there.
 * @param {Record<string, any>} fields  name → element
 */
export function settingsOf(fields) {
  const number = (/** @type {any} */ one) => (one.value.trim() === "" ? null : Number(one.value));
  return {
    prompt: fields.prompt.value,
    drafter: fields.drafter.value,
    rule: fields.rule.value,
    gamma: number(fields.gamma),
    temperature: number(fields.temperature),
    seed: number(fields.seed),
    max_new_tokens: number(fields.max_new_tokens),
  };
}

/**
 * Let only rules be chosen that can judge what the drafter proposes, and say why the others are
 * grey. A rule that cannot be gives way to the first that can.
 * @param {any} options  of the model; `unfit` holds [drafter, rule, why]
 * @param {Record<string, any>} fields  name → element
 * @returns {string} why
 */
export function fitting(options, fields) {
  const whys = [];
  for (const option of fields.rule.options) {
    const unfit = options.unfit.find(
      ([drafter, rule]) => drafter === fields.drafter.value && rule === option.value,
    );
    const why =
      option.value === "greedy" && Number(fields.temperature.value) > 0
        ? "greedy needs temperature 0"
        : unfit?.[2];
    option.disabled = Boolean(why);
    if (why) whys.push(why);
  }
  if (fields.rule.selectedOptions[0]?.disabled)
    fields.rule.value = [...fields.rule.options].find((one) => !one.disabled).value;
  return whys.length ? `Rules that are grey: ${whys.join("; ")}.` : "";
}

/** The controls. @param {any} model @param {(what: "run" | "cancel") => void} ask */
function form(model, ask) {
  const options = model.get("options");
  const field = (name, text, input, more = []) => {
    input.setAttribute("data-field", name);
    return h("label", { class: `svp-field svp-f-${name}` }, [h("span", { text }), input, ...more]);
  };
  const number = (min, max) =>
    h("input", { type: "number", min, max, step: 1, inputmode: "numeric" });
  const slide = (max, step) => h("input", { type: "range", min: 0, max, step });
  const choose = (names) =>
    h(
      "select",
      {},
      names.map(([value, text]) => h("option", { value, text: text ?? value })),
    );
  const says = { gamma: h("output"), temperature: h("output") };
  const fields = {
    prompt: h("textarea", { rows: 2, spellcheck: "false" }),
    drafter: choose(options.drafters.map(([name]) => [name])),
    gamma: slide(options.most_gamma, 1),
    temperature: slide(2, 0.05),
    rule: choose(
      options.rules.map(([name, lossless]) => [name, lossless ? name : `${name} (lossy)`]),
    ),
    seed: number(0, 2 ** 32 - 1),
    max_new_tokens: number(1, 100_000),
  };
  const run = h("button", {
    type: "submit",
    class: "svp-run",
    text: "Run",
    title: "Run (Ctrl+Enter)",
    "data-testid": "svp-run",
  });
  const cancel = h("button", { type: "button", text: "Cancel", "data-testid": "svp-cancel" });
  const auto = h("input", { type: "checkbox", checked: true });
  const grey = h("p", { class: "svp-grey", "data-testid": "svp-grey" });
  const el = h("form", { class: "svp-form", "aria-label": "Settings of the run" }, [
    field("prompt", options.ids ? "Prompt, as token ids" : "Prompt", fields.prompt),
    field("drafter", "Drafter", fields.drafter),
    field("gamma", "gamma", fields.gamma, [says.gamma]),
    field("temperature", "Temperature", fields.temperature, [says.temperature]),
    field("rule", "Rule", fields.rule),
    field("seed", "Seed", fields.seed),
    field("max_new_tokens", "Tokens at most", fields.max_new_tokens),
    h("div", { class: "svp-group svp-runs" }, [
      run,
      cancel,
      h("label", { class: "svp-auto" }, [auto, h("span", { text: "run at each change" })]),
    ]),
    grey,
  ]);
  const label = () => {
    setText(grey, fitting(options, fields));
    show(grey, grey.textContent !== "");
    const takes = options.drafters.find(([name]) => name === fields.drafter.value)?.[1] ?? true;
    fields.gamma.disabled = !takes;
    setText(says.gamma, takes ? fields.gamma.value : "–");
    setText(says.temperature, Number(fields.temperature.value).toFixed(2));
  };
  /** @type {any} */
  let later = 0;
  el.addEventListener("input", label);
  el.addEventListener("change", (/** @type {any} */ event) => {
    label();
    if (event.target === auto || event.target === fields.prompt || !auto.checked) return;
    clearTimeout(later);
    later = setTimeout(() => ask("run"), 150); // keys move a slider step by step
  });
  el.addEventListener("submit", (/** @type {any} */ event) => {
    event.preventDefault();
    ask("run");
  });
  el.addEventListener("keydown", (/** @type {any} */ event) => {
    event.stopPropagation();
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    ask("run");
  });
  cancel.addEventListener("click", () => ask("cancel"));
  return {
    el,
    fields,
    cancel,
    stop: () => clearTimeout(later),
    /** Show the kernel's settings, but for what is being edited. @param {any} settings */
    fill(settings) {
      const busy = el.getRootNode().activeElement;
      for (const [name, one] of Object.entries(fields)) {
        if (settings[name] === undefined || one === busy) continue;
        if (one.value !== String(settings[name])) one.value = String(settings[name]);
      }
      label();
    },
  };
}

/** @param {any} model @param {any} el */
export async function liveOf(model, el) {
  const options = model.get("options");
  const controls = form(model, ask);
  const meter = h("progress", { max: 1, value: 0, "aria-label": "Tokens emitted" });
  const state = h("span", { class: "svp-state", "data-testid": "svp-state" });
  const follow = h("button", {
    type: "button",
    class: "svp-follow",
    text: "follow",
    title: "Go to the newest round and stay there",
  });
  const alert = h("p", { class: "svp-error", role: "alert", "data-testid": "svp-error" });
  const spoken = h("div", { class: "svp-live", role: "status" });
  const stage = h("div", { class: "svp-below" }, [
    h("p", { class: "svp-none", text: "The first round is on its way." }),
  ]);
  const root = h(
    "div",
    {
      class: `svp svp-lv svp-${options.theme ?? "auto"}`,
      role: "group",
      "aria-label": "Live run",
      "data-lm-suppress-shortcuts": "true",
      "data-testid": "specviz-live",
    },
    [
      h("div", { class: "svp-head1" }, [
        h("b", { text: options.title || "Live" }),
        h("span", { text: "the model runs while you watch" }),
      ]),
      controls.el,
      h("div", { class: "svp-progressline" }, [meter, state, follow]),
      alert,
      spoken,
      stage,
    ],
  );
  el.append(root);
  /** @type {ReturnType<typeof buildPlayer> | null} */
  let player = null;
  const feed = {
    running: false,
    full: root,
    prefers: /** @type {any} */ ({}),
    changed: () => showFollow(),
  };
  let shown = 0,
    latest = 0,
    gone = false;
  // its place is the reader's own, not the kernel's
  const own = {
    get: (name) =>
      name === "options" ? { ...options, title: null, theme: options.theme } : undefined,
    set() {},
    on() {},
    off() {},
    save_changes() {},
  };

  /** @type {any} */
  let unanswered = 0;
  /** @param {"run" | "cancel"} what */
  function ask(what) {
    const lost = () => {
      setText(
        alert,
        "The kernel has not answered: it is busy, or it was started anew and the cell must be " +
          "run again.",
      );
      show(alert, true);
    };
    clearTimeout(unanswered);
    unanswered = setTimeout(lost, PATIENCE);
    try {
      model.send(
        what === "run" ? { ask: what, settings: settingsOf(controls.fields) } : { ask: what },
      );
    } catch {
      lost(); // the kernel that it belonged to is gone
    }
  }

  function showFollow() {
    setAttr(follow, "aria-pressed", String(Boolean(player?.state.following)));
    show(follow, feed.running && Boolean(player));
  }

  /** @param {import("./decode.js").Data} data @param {number} run */
  function present(data, run) {
    if (player && run === shown && data.isTree === player.isTree) return player.grow(data);
    const old = player,
      focused = old?.root.contains(old.root.getRootNode().activeElement);
    if (old) feed.prefers = { speed: old.state.speed, guided: old.state.guided };
    // a run begins at its head, whatever became of the last one
    const built = buildPlayer(stage, data, own, feed);
    player = { ...built, isTree: data.isTree };
    shown = run;
    stage.querySelector(".svp-none")?.remove();
    if (old) old.dispose();
    if (focused) player.root.focus({ preventScroll: true });
    showFollow();
  }

  async function read() {
    const status = model.get("status"),
      packed = model.get("data")[0];
    const mine = ++latest;
    feed.running = status.state === "running" && status.shown === status.run;
    if (packed) {
      const data = decode(await unzip(packed));
      if (gone || mine !== latest) return; // something newer is on its way
      present(data, status.shown);
    }
    write();
  }

  let said = "";
  function write() {
    const status = model.get("status"),
      settings = model.get("settings");
    const words = told(status, settings);
    setText(state, words);
    meter.value =
      status.shown === status.run ? Math.min(1, status.tokens / settings.max_new_tokens) : 0;
    setText(alert, status.state === "error" ? status.say : "");
    show(alert, status.state === "error");
    controls.cancel.disabled = status.state !== "running";
    setAttr(root, "data-state", status.state);
    setAttr(root, "data-run", status.run);
    setAttr(root, "data-stale", status.shown !== status.run || null);
    if (said !== status.state + status.run) setText(spoken, status.state === "error" ? "" : words);
    said = status.state + status.run; // what is read out: beginnings and ends, not every round
  }

  const settled = () => controls.fill(model.get("settings"));
  follow.addEventListener("click", () => player?.follow(!player.state.following));
  const heard = [
    ["change:data", read],
    ["change:status", changed],
    ["change:settings", settled],
  ];
  /** A status without new data: the beginning or the end of a run. */
  function changed() {
    clearTimeout(unanswered);
    const status = model.get("status");
    const ended = feed.running && status.state !== "running";
    write();
    if (ended) read();
  }
  for (const [event, does] of heard) model.on(event, does);
  settled();
  write();
  await read();
  return () => {
    if (gone) return;
    gone = true;
    for (const [event, does] of heard) model.off(event, does);
    controls.stop();
    clearTimeout(unanswered);
    player?.dispose();
    root.remove();
  };
}
