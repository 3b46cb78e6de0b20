import assert from "node:assert/strict";
import { test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { apart, duration, inStep, number, quoted } from "../../../specviz/player/js/numbers.js";
import { caption, fill, spoken } from "../../../specviz/player/js/words.js";
import { run, story } from "./handmade.mjs";

const said = ({ data, time }, s, concealed) => caption(data, frameAt(data, time, s, concealed));

test("numbers as they are read", () => {
  assert.deepEqual(
    [0, 1, 0.5, 0.0123, 0.00004, 0.998, 0.99971, 0.999999, 2.5, NaN].map((x) => number(x)),
    ["0", "1", ".50", ".012", "4.0e-5", ".998", ".9997", ">.9999", "2.50", "–"],
  );
  assert.deepEqual([0.0123, 0.1, 2.5, 12].map(duration), ["12.3 ms", "100 ms", "2.50 s", "12.0 s"]);
});

test("the digits are enough for p / q to be what is shown, and for u and a to differ", () => {
  assert.equal(inStep(0.00104, 0.00472, 0.00104 / 0.00472), 3); // two digits of each give .21
  assert.equal(inStep(0.31, 0.62, 0.5), 2);
  assert.deepEqual(
    [apart(0.498, 0.501), apart(0.1, 0.9), apart(NaN, 0.5), apart(0.5, 0.5)],
    [3, 2, 2, 2],
  );
  const close = run([{ nodes: [[" a", 2, 0.00104, 0.00472, 0.2205]], closing: " b", kind: 1 }]);
  assert.match(said(close, 2), /q = \.00472 p = \.00104 a = \.220, u = \.221: rejected/);
});

test("a step's blanks are filled with its own numbers, once: a brace in a token is text", () => {
  assert.equal(said(story(), 5), "“fox” q = .62 p = .31 a = .50, u = .71: rejected.");
  assert.equal(said(story(), 5, true), "“fox” q = .62 p = .31. Accepted or rejected?");
  const { data, time } = story();
  const frame = frameAt(data, time, 5);
  const filled = (text) => fill(data, frame, text);
  assert.equal(filled("{x0}{x2} {own} {mass} {u2}"), "“a”“who” another one .31 .71");
  data.header.strings[data.node.token[1]] = " {u}";
  assert.equal(filled("{x}"), "“{u}”");
  assert.match(spoken(data, frameAt(data, time, 0)), /^Round 0\. “a” drafted/);
});

test("long and blank tokens in a sentence", () => {
  assert.equal(quoted(" "), "“ ”");
  assert.equal(quoted("x".repeat(50)).length, 34);
});
