import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fitting, liveOf, settingsOf, told } from "../../../specviz/player/js/live.js";
import { buildPlayer } from "../../../specviz/player/js/player.js";
import { shim } from "../../../specviz/player/js/shim.js";
import { all, install, ofClass } from "./fakedom.mjs";
import { run } from "./handmade.mjs";

let focused = null;
before(() => {
  install();
  const Node = document.createElement("div").constructor;
  Object.assign(Node.prototype, {
    getRootNode: () => ({ activeElement: focused }),
    contains: () => false,
    focus() {},
    querySelector: () => null,
  });
  globalThis.window = { matchMedia: () => ({ matches: false }), addEventListener() {} };
  globalThis.IntersectionObserver = class {
    observe() {}
    disconnect() {}
  };
  globalThis.requestAnimationFrame = () => 1;
  globalThis.cancelAnimationFrame = () => {};
});

const SETTINGS = {
  prompt: "Once",
  gamma: 4,
  temperature: 0.8,
  drafter: "draft model",
  rule: "rejection",
  seed: 0,
  max_new_tokens: 20,
};
const OPTIONS = {
  theme: "auto",
  guided: false,
  ids: false,
  most_gamma: 12,
  drafters: [
    ["draft model", true],
    ["Medusa", false],
  ],
  rules: [
    ["rejection", true],
    ["typical", false],
  ],
  unfit: [],
};
const round = (word, kind = 2) => ({
  nodes: [
    [word, 1, 0.5, 0.4, 0.2],
    ["y", kind === 2 ? 1 : 2, 0.3, 0.6, 0.9],
  ],
  closing: "z",
  kind,
});
const grown = (rounds) =>
  run(Array.from({ length: rounds }, (_, i) => round(`w${i}`, 1 + (i % 2)))).data;
const shown = (player) =>
  all(ofClass(player.root, "svp-stage")[0], (one) => one.tag === "#text")
    .map((one) => one.data)
    .join("|");
const plainModel = () => shim({ options: { theme: "auto" } });

function live(status, sent = []) {
  const model = shim({ options: OPTIONS, settings: SETTINGS, status, data: [] });
  return Object.assign(model, { sent, send: (message) => sent.push(message) });
}
const STATUS = { run: 1, shown: 0, state: "running", say: "", tokens: 0, passes: 0, lossy: false };

test("what is said of a run", () => {
  assert.equal(told(STATUS, SETTINGS), "starting");
  assert.equal(
    told({ ...STATUS, run: 2, shown: 1, state: "error" }, SETTINGS),
    "not started; below is the run before",
  );
  assert.equal(
    told({ ...STATUS, shown: 1, tokens: 9, passes: 4 }, SETTINGS),
    "running: 9 of 20 tokens in 4 passes, 2.25 per pass",
  );
  assert.match(
    told({ ...STATUS, shown: 1, state: "done", ended: "eos" }, SETTINGS),
    /^done, the text came to its end: 0 of 20/,
  );
  assert.match(
    told({ ...STATUS, shown: 1, state: "done", ended: "length", lossy: true }, SETTINGS),
    /^done: .*; lossy: not the target's distribution$/,
  );
});

test("the fields become settings; an empty number stays one that is refused", () => {
  const fields = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, value]) => [name, { value: String(value) }]),
  );
  assert.deepEqual(settingsOf(fields), SETTINGS);
  fields.seed.value = " ";
  assert.equal(settingsOf(fields).seed, null);
});

test("rules that cannot judge a drafter's proposals are grey, with the reason", () => {
  const options = { unfit: [["prompt lookup", "coupled", "coupled needs the draft model"]] };
  const rules = ["rejection", "greedy", "coupled"].map((value) => ({ value, disabled: false }));
  const fields = {
    drafter: { value: "prompt lookup" },
    temperature: { value: "0.8" },
    rule: {
      options: rules,
      value: "coupled",
      get selectedOptions() {
        return rules.filter((one) => one.value === this.value);
      },
    },
  };
  const grey = () =>
    rules
      .filter((one) => one.disabled)
      .map((one) => one.value)
      .join(" ");
  assert.equal(
    fitting(options, fields),
    "Rules that are grey: greedy needs temperature 0; coupled needs the draft model.",
  );
  assert.deepEqual([grey(), fields.rule.value], ["greedy coupled", "rejection"]);
  fields.temperature.value = "0";
  fitting(options, fields);
  assert.equal(grey(), "coupled");
  fields.drafter.value = "draft model";
  assert.equal(fitting(options, fields), "");
});

test("what a run is called follows what is known of it", () => {
  const data = grown(1),
    more = grown(2);
  ((data.header.label = "EAGLE"), (more.header.label = "EAGLE, rejection"));
  const player = buildPlayer(document.createElement("div"), data, plainModel(), { running: true });
  const name = () => ofClass(player.root, "svp-head1")[0].childNodes[0].textContent;
  assert.equal(name(), "EAGLE");
  player.grow(more);
  assert.equal(name(), "EAGLE, rejection");
});

test("a growing run is followed until the reader steps back, and again from its head", () => {
  const el = document.createElement("div"),
    feed = { running: true };
  const data = grown(2);
  const player = buildPlayer(el, data, plainModel(), feed);
  const at = () => [Number(player.root.dataset.round), player.root.dataset.phase];
  const press = (key) =>
    player.root.listeners.keydown({
      key,
      target: { tagName: "DIV", classList: { contains: () => false } },
      preventDefault() {},
      stopPropagation() {},
    });
  assert.deepEqual(at(), [1, "close"]); // the newest round, decided but not folded away
  player.grow(grown(3));
  assert.deepEqual(at(), [2, "close"]);
  press("ArrowLeft");
  assert.equal(player.state.following, false);
  const place = at();
  player.grow(grown(5));
  assert.deepEqual(at(), place);
  press("n"); // jumps reach what came meanwhile
  press("n");
  assert.deepEqual(at(), [4, "decide"]);
  press("End");
  assert.equal(player.state.following, true);
  player.grow(grown(6));
  assert.deepEqual(at(), [5, "close"]);
  press(" "); // pauses the following
  assert.equal(player.state.following, false);
  press(" ");
  assert.equal(player.state.following, true);
  feed.running = false;
  player.grow(grown(7));
  assert.deepEqual(at(), [6, "rollback"]); // over: all of the text
  player.dispose();
  assert.equal(el.childNodes.length, 0);
});

test("a player of a finished run does not follow, and one that grew is as one that was whole", () => {
  const whole = buildPlayer(document.createElement("div"), grown(6), plainModel());
  const parts = buildPlayer(document.createElement("div"), grown(1), plainModel(), {
    running: true,
  });
  assert.equal(whole.state.following, false);
  assert.equal(whole.root.dataset.step, "0");
  for (const n of [2, 4, 6]) parts.grow(grown(n));
  const press = (one, key) =>
    one.root.listeners.keydown({
      key,
      target: { tagName: "DIV", classList: { contains: () => false } },
      preventDefault() {},
      stopPropagation() {},
    });
  for (const key of ["Home", "ArrowDown", "ArrowDown", "n", "b"]) {
    (press(whole, key), press(parts, key));
    assert.equal(shown(parts), shown(whole), key);
  }
});

test("buttons ask, sliders ask after a moment, what is edited is left alone", async () => {
  const model = live(STATUS),
    el = document.createElement("div");
  const end = await liveOf(model, el);
  const form = ofClass(el, "svp-form")[0];
  const field = (name) => ofClass(form, `svp-f-${name}`)[0].childNodes[1];
  assert.equal(field("prompt").value, "Once");
  form.listeners.submit({ preventDefault() {} });
  assert.deepEqual(model.sent.pop(), { ask: "run", settings: SETTINGS });
  ofClass(form, "svp-auto")[0].childNodes[0].checked = true; // as the attribute makes it in a browser
  field("gamma").value = "6";
  form.listeners.change({ target: field("gamma") });
  form.listeners.change({ target: field("gamma") });
  await new Promise((done) => setTimeout(done, 250));
  assert.deepEqual(model.sent, [{ ask: "run", settings: { ...SETTINGS, gamma: 6 } }]); // once
  focused = field("gamma");
  model.set("settings", { ...SETTINGS, seed: 5 });
  assert.equal(field("seed").value, "5");
  assert.equal(field("gamma").value, "6");
  focused = null;
  field("drafter").value = "Medusa";
  form.listeners.change({ target: field("drafter") });
  assert.equal(field("gamma").disabled, true); // it brings its own
  end();
  assert.equal(el.childNodes.length, 0);
});

test("an error is shown as it is said, and goes with the next run", async () => {
  const model = live(STATUS),
    el = document.createElement("div");
  await liveOf(model, el);
  model.set("status", { ...STATUS, state: "error", say: "gamma must be >= 0, got <b>" });
  assert.equal(ofClass(el, "svp-error")[0].textContent, "gamma must be >= 0, got <b>");
  model.set("status", { ...STATUS, run: 2 });
  assert.equal(ofClass(el, "svp-error").length, 0);
});
