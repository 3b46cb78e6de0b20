import assert from "node:assert/strict";
import { test } from "node:test";
import { closingRace, draftRace, targetRace, topTwo } from "../../../specviz/player/js/contests.js";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { drawAt } from "../../../specviz/player/js/view_draw.js";
import { run } from "./handmade.mjs";

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`);
const seen = (made, s, concealed = false) =>
  drawAt(made.data, frameAt(made.data, made.time, s, concealed));
const raced = (rule, own, more = {}) =>
  run(
    [
      {
        nodes: [[" a", own === " a" ? 1 : 2, 0.2, 0.4, NaN, undefined, own, ...(more.at ?? [0.1])]],
        closing: own,
        kind: own === " a" ? 2 : 1,
        how: 2,
      },
    ],
    { rule, judged: false, draw: more.draw ?? 1 },
  );

test("the proposal is the token that won the target's race", () => {
  const { lanes } = targetRace(raced("match", " a").data, 0);
  assert.deepEqual(
    lanes.map((one) => [one.text, one.role, one.mark]),
    [
      ["a", "first: the proposal", "✓"],
      ["", "second", ""],
    ],
  );
  near(lanes[0].to, 1 / 3);
});

test("another token won: of an ordinary draft's proposal only that it came later is on record", () => {
  const made = raced("match", " b"),
    { lanes } = targetRace(made.data, 0);
  assert.deepEqual(
    lanes.map((one) => [one.text, one.mark, one.look]),
    [
      ["b", "", "first"],
      ["", "", "second"],
      ["a", "✗", "open"],
    ],
  );
  assert.equal(lanes[2].value, "later");
  near(lanes[2].from, lanes[1].to);
  assert.ok(lanes[2].from < 1);
  const draw = seen(made, 2);
  assert.equal(draw.distribution.colour, "q"); // how the proposal came stays in sight
  assert.equal(draftRace(made.data, 0), null);
});

test("a coupled draft's proposal has an arrival: its own race's, at the target's speed", () => {
  const made = raced("coupled", " b", { draw: 2, at: [0.1, 0.25] });
  const { contests, distribution } = seen(made, 2);
  assert.deepEqual(
    contests[0].lanes.map((one) => one.value),
    [".10", ".30", ".50"],
  );
  assert.equal(contests[1].lanes[0].text, "a");
  assert.equal(distribution, undefined);
});

test("a proposal that is the runner-up is said to be so", () => {
  const made = raced("coupled", " b", { draw: 2, at: [0.1, 0.15] });
  assert.deepEqual(
    targetRace(made.data, 0).lanes.map((one) => [one.text, one.role, one.mark]),
    [
      ["b", "first", ""],
      ["a", "second: the proposal", "✗"],
    ],
  );
});

test("a concealed race says neither who won nor when", () => {
  const { says, contests } = seen(raced("match", " b"), 2, true);
  assert.doesNotMatch(says, /“b”|\.10/);
  assert.deepEqual(contests, [null]);
});

test("the closing token's race", () => {
  const { data } = raced("match", " b");
  assert.deepEqual(
    closingRace(data, 0).lanes.map((one) => [one.text, one.value]),
    [
      ["b", ".10"],
      ["", ".20"],
    ],
  );
});

test("at temperature 0: the target's likeliest token against the proposal, and the gap", () => {
  const made = run([{ nodes: [[" a", 2, 0, 1, NaN]], closing: " b", kind: 1, how: 0 }], {
    rule: "greedy",
    judged: false,
    draw: 0,
  });
  made.data.node.top_p.set([0, 1, 0]);
  const { lanes } = topTwo(made.data, "node", 0);
  assert.deepEqual(
    lanes.map((one) => [one.text, one.role, one.mark, one.value]),
    [
      ["other", "most likely", "", "1"],
      ["a", "the proposal", "✗", "0"],
    ],
  );
});
