import assert from "node:assert/strict";
import { test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { caption, duration, number, quoted, spoken } from "../../../specviz/player/js/words.js";
import { run, story, tree } from "./handmade.mjs";

const said = ({ data, time }, s, concealed) => caption(data, frameAt(data, time, s, concealed));

test("numbers as they are read", () => {
  assert.deepEqual([0, 1, 0.5, 0.0123, 0.00004, 0.998, 0.99971, 0.999999, 2.5, NaN].map(number),
    ["0", "1", ".50", ".012", "4e-5", ".998", ".9997", ">.9999", "2.50", "–"]);
  assert.deepEqual([0.0123, 0.1, 2.5, 12].map(duration), ["12.3 ms", "100 ms", "2.50 s", "12.0 s"]);
});

test("the caption of a rejection has this token's numbers", () => {
  assert.equal(said(story(), 5),
    "The draft gave “fox” .62, the target .31, so it is kept with probability .50. The draw was u = .71: rejected. Everything after it is discarded.");
});

test("an accepted one, a draft, a pass, a correction, a bonus, a plain token, a rollback", () => {
  assert.equal(said(story(), 4), "The draft gave “a” .50, the target .60, so it is always kept. The draw was u = .30: kept.");
  assert.match(said(story(), 1), /draws “fox” from its own distribution q, where it has probability \.62 \(2 of 3\)/);
  assert.match(said(story(), 3), /all 3 proposals at once and gives 4 distributions p.*10 ms; drafting took 3 ms/);
  assert.match(said(story(), 6), /residual max\(0, p − q\), scaled up by 1 \/ \.31: “cat”/);
  assert.match(said(story(), 15), /All 2 were kept.*“Then”/);
  assert.match(said(story(), 9), /The target draws “sat” itself/);
  assert.match(said(story(), 7), /gave 2 tokens\. 2 proposals were wasted\. The target's cache rolls back from 5 to 3/);
});

test("a concealed verdict is not in the caption", () => {
  const words = said(story(), 5, true);
  assert.match(words, /Kept or rejected\?$/);
  assert.doesNotMatch(words, /rejected\.|\.71|\.50/);
});

test("rules that compare tokens speak of the target's own token", () => {
  const made = run([{ nodes: [[" small", 2, 0.36, 0.3, 0.5, -1, " quiet"]], closing: " quiet", kind: 1 }], { judged: false });
  assert.equal(said(made, 2), "The draft proposed “small”; the target's own token here is “quiet”: rejected.");
});

test("a block: each position's own test, and the last that passes decides", () => {
  const block = (u) => run([{ nodes: [[" a", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[0]], [" b", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[1]], [" c", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[2]]], closing: ".", kind: u[2] < 0.5 ? 2 : 1 }], { rule: "block" });
  const made = block([0.9, 0.8, 0.1]);
  assert.match(said(made, 4), /Test 1 of 3: u = \.90 does not fall below h = \.50, it does not pass\. That does not settle it: the last position that passes decides\.$/);
  assert.match(said(made, 6), /Test 3 of 3: u = \.10 falls below h = \.50, it passes\. It is the last one, so the whole block is kept\.$/);
  assert.match(said(block([0.9, 0.8, 0.7]), 6), /No position passes: the whole block is rejected\.$/);
  const some = run([{ nodes: [[" a", 1, 0.2, 0.4, 0.9], [" b", 1, 0.2, 0.4, 0.1], [" c", 2, 0.2, 0.4, 0.8]], closing: ".", kind: 1 }], { rule: "block" });
  assert.match(said(some, 5), /Everything up to it is kept; a later one that passes keeps more\.$/);
  assert.match(said(some, 6), /The last that passes is position 2 \(“b”\): everything up to it is kept, the rest is rejected\.$/);
  const status = (s, hide) => frameAt(some.data, some.time, s, hide).status.join(" ");
  assert.deepEqual([4, 5, 6].map((s) => status(s)), ["ghost ghost ghost", "accepted accepted ghost", "accepted accepted rejected"]);
  // what is not told yet is not given away by what stands before it
  assert.deepEqual([4, 5, 6].map((s) => status(s, true)), ["asked ghost ghost", "ghost asked ghost", "accepted accepted asked"]);
});

test("a later sibling in a tree faces what is left of p, and the first does not", () => {
  assert.match(said(tree(), 7), /“the” \.40, what is left of the target's distribution after its siblings \.60/);
  assert.match(said(tree(), 6), /“a” \.50, the target \.20/);
});

test("a screen reader hears where one is", () => {
  const { data, time } = story();
  assert.match(spoken(data, frameAt(data, time, 0)), /^Round 0\. The draft draws “a”/);
});

test("long and blank tokens in a sentence", () => {
  assert.equal(quoted(" "), "“ ”");
  assert.equal(quoted("x".repeat(50)).length, 34);
});
