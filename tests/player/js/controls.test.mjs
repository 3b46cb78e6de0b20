import assert from "node:assert/strict";
import { test } from "node:test";
import { command, KEYS } from "../../../specviz/player/js/controls.js";
import { playback } from "../../../specviz/player/js/playback.js";
import { shim } from "../../../specviz/player/js/shim.js";

test("keys", () => {
  assert.deepEqual(command({ key: "ArrowRight" }), ["jump", "token", 1]);
  assert.deepEqual(command({ key: "ArrowLeft", shiftKey: true }), ["jump", "phase", -1]);
  assert.deepEqual(command({ key: "n" }), ["jump", "rejection", 1]);
  assert.equal(command({ key: "d" }), null); // JupyterLab's own keys stay its own
  assert.ok(KEYS.some(([key]) => key === "?"));
});

function clocked(options = {}) {
  let next = null,
    at = 0;
  globalThis.requestAnimationFrame = (does) => ((next = does), 1);
  globalThis.cancelAnimationFrame = () => (next = null);
  const now = performance.now;
  performance.now = () => at;
  const moved = [],
    changes = [];
  const clock = playback({
    speed: () => 10,
    waits: () => false,
    changed: (on) => changes.push(on),
    advance: (steps) => (moved.push(steps), true),
    ...options,
  });
  const pass = (ms) => {
    at += ms;
    const does = next;
    next = null;
    does?.(at);
  };
  return {
    clock,
    pass,
    moved,
    changes,
    asleep: () => next === null,
    done: () => (performance.now = now),
  };
}

test("the clock moves by time, not by frames, and does not make up for long pauses", () => {
  const { clock, pass, moved, done } = clocked();
  clock.start();
  for (let i = 0; i < 60; i++) pass(1000 / 60);
  assert.equal(
    moved.reduce((a, b) => a + b, 0),
    10,
  );
  moved.length = 0;
  pass(60_000);
  assert.ok(moved.reduce((a, b) => a + b, 0) <= 3);
  done();
});

test("it sleeps off-screen and wakes, stops at the end, and waits for an answer", () => {
  const one = clocked();
  one.clock.start();
  one.clock.seen(false);
  one.pass(100);
  assert.ok(one.asleep() && one.clock.playing);
  one.clock.seen(true);
  assert.ok(!one.asleep());
  one.done();
  const ended = clocked({ advance: () => false });
  ended.clock.start();
  ended.pass(200);
  assert.deepEqual(ended.changes, [true, false]);
  ended.done();
  const held = clocked({ waits: () => true });
  held.clock.start();
  for (let i = 0; i < 50; i++) held.pass(100);
  assert.deepEqual(held.moved, []);
  held.done();
});

test("the page's stand-in for a widget's model", () => {
  const model = shim({ step: 1 }),
    heard = [];
  const does = (value) => heard.push(value);
  model.on("change:step", does);
  model.set("step", 2);
  model.set("step", 2);
  model.off("change:step", does);
  model.set("step", 3);
  assert.deepEqual(heard, [2]);
  assert.equal(model.get("step"), 3);
});
