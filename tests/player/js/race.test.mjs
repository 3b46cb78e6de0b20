import assert from "node:assert/strict";
import { test } from "node:test";
import {
  hashOf,
  nextEnd,
  RACE_KEYS,
  raceCommand,
  timeOf,
  tokensAt,
} from "../../../specviz/player/js/race_time.js";

/** As much of a run as its times: ends of rounds, and the tokens by then. */
const run = (seconds, outStart) => ({ rounds: seconds.length - 1, sums: { seconds }, outStart });
const quick = run([0, 0.01, 0.03], [0, 3, 5]),
  slow = run([0, 0.02, 0.03, 0.05], [0, 1, 2, 3]);

test("forward and back go to the next end of a round of any run", () => {
  const both = [quick, slow];
  const there = [];
  for (let at = 0; there.length < 5;) there.push((at = nextEnd(both, at, 1)));
  assert.deepEqual(there, [0.01, 0.02, 0.03, 0.05, 0.05]);
  const back = [];
  for (let at = 0.05; back.length < 5;) back.push((at = nextEnd(both, at, -1)));
  assert.deepEqual(back, [0.03, 0.02, 0.01, 0, 0]);
  assert.equal(nextEnd(both, 0.025, 1), 0.03);
  assert.equal(nextEnd(both, 0.025, -1), 0.02);
  assert.deepEqual(
    there.slice(0, 4).map((at) => both.map((one) => tokensAt(one, at).tokens)),
    [
      [3, 0],
      [3, 1],
      [5, 2],
      [5, 3],
    ],
  );
});

test("a moment in the address and back; what is no moment is none", () => {
  for (const t of [0, 0.0312345, 0.05]) assert.ok(Math.abs(timeOf(hashOf(t), 1) - t) < 1e-6);
  assert.equal(timeOf("#t=99", 0.05), 0.05);
  for (const bad of ["", "#round=3", "#t=", "#t=-1", "#t=<img>", "#t=NaN", "#t=Infinity", "#t=0x3"])
    assert.equal(timeOf(bad, 1), null, bad);
});

test("keys of a race", () => {
  assert.deepEqual(raceCommand({ key: "ArrowRight" }), ["step", 1]);
  assert.deepEqual(raceCommand({ key: "ArrowLeft", shiftKey: true }), ["leap", -1]);
  assert.deepEqual(raceCommand({ key: "Home" }), ["edge", -1]);
  assert.deepEqual(raceCommand({ key: "+" }), ["speed", 1]);
  for (const key of ["d", "p", "k", "n", "Tab", "Enter"]) assert.equal(raceCommand({ key }), null);
  assert.ok(RACE_KEYS.some(([key]) => key === "?"));
});
