import assert from "node:assert/strict";
import { before, test } from "node:test";
import { buildPlayer } from "../../../specviz/player/js/player.js";
import { shim } from "../../../specviz/player/js/shim.js";
import { search } from "../../../specviz/player/js/timeline.js";
import { all, install, ofClass } from "./fakedom.mjs";
import { run, story } from "./handmade.mjs";

let tick = null,
  now = 0;
before(() => {
  install();
  const Node = document.createElement("div").constructor;
  Object.assign(Node.prototype, {
    getRootNode: () => ({ activeElement: null }),
    contains: () => false,
    focus() {},
    querySelector: () => null,
  });
  globalThis.window = { matchMedia: () => ({ matches: false }), addEventListener() {} };
  globalThis.IntersectionObserver = class {
    observe() {}
    disconnect() {}
  };
  globalThis.requestAnimationFrame = (does) => ((tick = does), 1);
  globalThis.cancelAnimationFrame = () => (tick = null);
  performance.now = () => now;
});

const pass = (ms) => {
  now += ms;
  const does = tick;
  tick = null;
  does?.(now);
};
const words = (node) =>
  all(node, (one) => one.tag === "#text")
    .map((one) => one.data)
    .join("");

function opened(made) {
  const player = buildPlayer(
    document.createElement("div"),
    made.data,
    shim({ options: { theme: "auto" } }),
  );
  const press = (key) =>
    player.root.listeners.keydown({
      key,
      target: { tagName: "DIV", classList: { contains: () => false } },
      preventDefault() {},
      stopPropagation() {},
    });
  return { ...player, press, live: () => words(ofClass(player.root, "svp-live")[0]) };
}

test("in predict mode a verdict step is asked, not told, as soon as p is pressed", () => {
  const made = story(),
    { press, live, root } = opened(made);
  for (let i = 0; i < 4; i++) press("ArrowRight");
  assert.equal(root.dataset.phase, "decide");
  assert.match(live(), /u = .*accepted\.$/);
  press("p");
  assert.match(live(), /Accepted or rejected\?$/);
  assert.doesNotMatch(live(), /u = /);
  press("k");
  assert.match(live(), /u = .*accepted\.$/);
  press("ArrowRight");
  assert.match(live(), /Accepted or rejected\?$/);
});

test("while it plays the question is said when it stands, and nothing older before", () => {
  const made = story(),
    { press, live, root } = opened(made);
  press("p");
  const before = live();
  assert.match(before, /^Round 0\./);
  press(" ");
  for (let i = 0; i < 12 && root.dataset.phase !== "verify"; i++) pass(300);
  assert.equal(live(), "");
  for (let i = 0; i < 12; i++) pass(300);
  assert.equal(root.dataset.phase, "decide");
  assert.match(live(), /Accepted or rejected\?$/);
});

test("another u is heard: its verdict at the slider, what follows when it is let go, the way back", () => {
  const made = story(),
    { press, live, root } = opened(made);
  press("e"); // the draws are among the details
  for (let i = 0; i < 5; i++) press("ArrowRight");
  const was = live(),
    drag = ofClass(root, "svp-drag")[0],
    marked = () => ofClass(root, "svp-supposing").length;
  assert.equal(drag.attributes["aria-valuetext"], "u = .71: rejected");
  assert.equal(marked(), 0);
  drag.value = "0.4";
  drag.listeners.input();
  assert.equal(drag.attributes["aria-valuetext"], "u = .40: would be accepted");
  assert.equal(marked(), 1);
  assert.equal(live(), was);
  drag.listeners.change();
  assert.match(live(), /^What if u were \.40\?/);
  press("Escape");
  assert.equal(live(), was);
  assert.equal(marked(), 0);
});

test("a block's question is whether a test passes, and what is heard of it says no more", () => {
  const nodes = [
    [" a", 1, 0.2, 0.4, 0.9],
    [" b", 1, 0.2, 0.4, 0.1],
  ];
  const { press, live, root, state } = opened(
    run([{ nodes, closing: ".", kind: 2 }], { rule: "block" }),
  );
  for (let i = 0; i < 3; i++) press("ArrowRight");
  press("p");
  press("x"); // it does not, although it is accepted in the end
  assert.match(words(ofClass(root, "svp-q1")[0]), /^Right: it does not pass\.$/);
  assert.deepEqual(state.book.score(), { right: 1, asked: 1, best: 0.5 });
});

test("a token that is the text is found before those that have it in them", () => {
  const made = run([
    { nodes: [[" them", 1, 0.5, 0.4, 0.2]], closing: " other", kind: 2 },
    { nodes: [[" The", 1, 0.5, 0.4, 0.2]], closing: ".", kind: 2 },
  ]);
  const at = (words_, step) => made.time.at(search(made.data, made.time, words_, step));
  assert.equal(at("the", 0).round, 1);
  assert.equal(at("the", made.time.length - 1).round, 1);
  assert.equal(at("hem", 0).round, 0);
});
