import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fromHash,
  jump,
  search,
  stepOfToken,
  toHash,
} from "../../../specviz/player/js/timeline.js";
import { run, story, tree } from "./handmade.mjs";

const places = ({ time }) =>
  Array.from({ length: time.length }, (_, s) => {
    const { round, phase, node } = time.at(s);
    return `${round} ${phase}${node < 0 ? "" : " " + node}`;
  });

test("a round is drafted, verified, judged, closed and rolled back, step by step", () => {
  assert.deepEqual(places(story()), [
    "0 draft 0",
    "0 draft 1",
    "0 draft 2",
    "0 verify",
    "0 decide 0",
    "0 decide 1",
    "0 close",
    "0 rollback",
    "1 verify",
    "1 close",
    "2 draft 0",
    "2 draft 1",
    "2 verify",
    "2 decide 0",
    "2 decide 1",
    "2 close",
    "2 rollback",
  ]);
});

test("a tree is judged level by level, siblings in the order drawn", () => {
  assert.deepEqual(
    places(tree()).filter((p) => p.includes("decide")),
    ["0 decide 0", "0 decide 1", "0 decide 3", "0 decide 4"],
  );
});

test("step numbers and positions are the same thing", () => {
  for (const { time } of [story(), tree()])
    for (let s = 0; s < time.length; s++) assert.equal(time.step(time.at(s)), s);
});

test("a position that is not there leads to the nearest that is", () => {
  const { time } = story();
  assert.deepEqual(time.at(time.step({ round: 99, phase: "rollback", node: -1 })), {
    round: 2,
    phase: "rollback",
    node: -1,
  });
  assert.equal(time.at(time.step({ round: 0, phase: "decide", node: 2 })).phase, "verify");
  assert.equal(time.step({ round: NaN, phase: "draft", node: 0 }), 0);
});

test("jumps by token, phase, round, rejection and bonus, both ways", () => {
  const { data, time } = story();
  const go = (from, unit, way) => places({ time })[jump(data, time, from, unit, way)];
  assert.equal(go(0, "token", 1), "0 draft 1");
  assert.equal(go(0, "token", -1), "0 draft 0");
  assert.equal(go(0, "phase", 1), "0 verify");
  assert.equal(go(5, "phase", -1), "0 verify");
  assert.equal(go(3, "phase", -1), "0 draft 0");
  assert.equal(go(0, "round", 1), "1 verify");
  assert.equal(go(6, "round", -1), "0 draft 0");
  assert.equal(go(0, "rejection", 1), "0 decide 1");
  assert.equal(go(10, "rejection", -1), "0 decide 1");
  assert.equal(go(10, "rejection", 1), "2 draft 0");
  assert.equal(go(0, "bonus", 1), "2 close");
  assert.equal(go(16, "round", 1), "2 rollback");
});

test("search goes round, and finds proposals that were never kept", () => {
  const { data, time } = story();
  const at = (words, from) =>
    search(data, time, words, from) < 0 ? null : places({ time })[search(data, time, words, from)];
  assert.equal(at("fox", 0), "0 decide 1");
  assert.equal(at("FOX ", 9), "0 decide 1");
  assert.equal(at("who", 0), "0 draft 2");
  assert.equal(at("cat", 0), "0 close");
  assert.equal(at("zebra", 0), null);
  assert.equal(at("   ", 0), null);
});

test("a token of the text leads to where it was decided", () => {
  const { data, time } = story();
  const found = [...data.out].map((_, i) => places({ time })[stepOfToken(data, time, i)]);
  assert.deepEqual(found, [
    "0 decide 0",
    "0 close",
    "1 close",
    "2 decide 0",
    "2 decide 1",
    "2 close",
  ]);
});

test("links", () => {
  assert.equal(toHash({ round: 3, phase: "decide", node: 1 }), "#round=3&phase=decide&node=1");
  assert.deepEqual(fromHash("#round=3&phase=decide&node=1"), {
    round: 3,
    phase: "decide",
    node: 1,
  });
  assert.deepEqual(fromHash("#round=3&node=1"), { round: 3, phase: "decide", node: 1 });
  assert.deepEqual(fromHash("#round=3"), { round: 3, phase: "draft", node: -1 });
  for (const bad of ["", "#top", "#round=x", "#round=-1", "#round=1&phase=alert(1)"])
    assert.equal(fromHash(bad), null);
});

test("an empty run has no steps", () => {
  const { data, time } = run([]);
  assert.equal(time.length, 0);
  assert.equal(jump(data, time, 0, "token", 1), 0);
  assert.equal(search(data, time, "a", 0), -1);
});
