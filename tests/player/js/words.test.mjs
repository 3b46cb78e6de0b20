import assert from "node:assert/strict";
import { test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { apart, duration, inStep, number, quoted } from "../../../specviz/player/js/numbers.js";
import { caption, spoken } from "../../../specviz/player/js/words.js";
import { run, story, tree } from "./handmade.mjs";

const said = ({ data, time }, s, concealed) => caption(data, frameAt(data, time, s, concealed));

test("numbers as they are read", () => {
  assert.deepEqual(
    [0, 1, 0.5, 0.0123, 0.00004, 0.998, 0.99971, 0.999999, 2.5, NaN].map((x) => number(x)),
    ["0", "1", ".50", ".012", "4.0e-5", ".998", ".9997", ">.9999", "2.50", "–"],
  );
  assert.deepEqual([0.0123, 0.1, 2.5, 12].map(duration), ["12.3 ms", "100 ms", "2.50 s", "12.0 s"]);
});

test("p, q and what follows from them agree as they are shown", () => {
  assert.equal(inStep(0.00104, 0.00472, 0.00104 / 0.00472), 3); // two digits of each give .21
  assert.equal(inStep(0.31, 0.62, 0.5), 2);
  assert.deepEqual(
    [apart(0.498, 0.501), apart(0.1, 0.9), apart(NaN, 0.5), apart(0.5, 0.5)],
    [3, 2, 2, 2],
  );
  const close = run([{ nodes: [[" a", 2, 0.00104, 0.00472, 0.2205]], closing: " b", kind: 1 }]);
  assert.match(
    said(close, 2),
    /q = \.00472, the target p = \.00104, .*p \/ q = \.220\. The draw was u = \.221: rejected/,
  );
});

test("the caption of a rejection has this token's numbers", () => {
  assert.equal(
    said(story(), 5),
    "The draft gave “fox” q = .62, the target p = .31, so it is accepted with probability p / q = .50. The draw was u = .71: rejected. Everything after it is discarded.",
  );
});

test("an accepted one, a draft, a pass, a correction, a bonus, a plain token, a rollback", () => {
  assert.equal(
    said(story(), 4),
    "The draft gave “a” q = .50, the target p = .60, so it is always accepted. The draw was u = .30: accepted.",
  );
  assert.match(said(story(), 1), /samples “fox” from its own distribution, q = \.62 \(2 of 3\)/);
  assert.match(
    said(story(), 3),
    /all 3 proposals at once and gives 4 distributions p.*10 ms; drafting took 3 ms/,
  );
  assert.match(
    said(story(), 6),
    /residual max\(0, p − q\), divided by \.31 so that it sums to 1: “cat”/,
  );
  assert.match(
    said(story(), 15),
    /All 2 were accepted, so the same pass gives one more token, the bonus: “Then”/,
  );
  assert.match(said(story(), 9), /The target samples “sat” itself/);
  assert.match(
    said(story(), 7),
    /gave 2 tokens\. 2 proposals were thrown away\. The target's cache is cut back from 5 to 3/,
  );
});

test("a concealed verdict is not in the caption", () => {
  const words = said(story(), 5, true);
  assert.match(words, /Accepted or rejected\?$/);
  assert.doesNotMatch(words, /rejected\.|\.71|\.50/);
});

test("rules that compare tokens speak of the target's own token", () => {
  const made = run(
    [{ nodes: [[" small", 2, 0.36, 0.3, 0.5, -1, " quiet"]], closing: " quiet", kind: 1 }],
    { judged: false },
  );
  assert.equal(
    said(made, 2),
    "The draft proposed “small”; the target's own token here is “quiet”: rejected.",
  );
});

test("a block: each position's own test, and the last that passes decides", () => {
  const block = (u) =>
    run(
      [
        {
          nodes: [
            [" a", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[0]],
            [" b", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[1]],
            [" c", u[2] < 0.5 ? 1 : 2, 0.2, 0.4, u[2]],
          ],
          closing: ".",
          kind: u[2] < 0.5 ? 2 : 1,
        },
      ],
      { rule: "block" },
    );
  const made = block([0.9, 0.8, 0.1]);
  assert.match(
    said(made, 4),
    /Test 1 of 3: u = \.90 does not fall below h = \.50, it does not pass\. That does not settle it: the last position that passes decides\.$/,
  );
  assert.match(
    said(made, 6),
    /Test 3 of 3: u = \.10 falls below h = \.50, it passes\. It is the last one, so the whole block is accepted\.$/,
  );
  assert.match(
    said(block([0.9, 0.8, 0.7]), 6),
    /No position passes: the whole block is rejected\.$/,
  );
  const some = run(
    [
      {
        nodes: [
          [" a", 1, 0.2, 0.4, 0.9],
          [" b", 1, 0.2, 0.4, 0.1],
          [" c", 2, 0.2, 0.4, 0.8],
        ],
        closing: ".",
        kind: 1,
      },
    ],
    { rule: "block" },
  );
  assert.match(
    said(some, 5),
    /Everything up to it is accepted; a later one that passes keeps more\.$/,
  );
  assert.match(
    said(some, 6),
    /The last that passes is position 2 \(“b”\): everything up to it is accepted, the rest is rejected\.$/,
  );
  const status = (s, hide) => frameAt(some.data, some.time, s, hide).status.join(" ");
  assert.deepEqual(
    [4, 5, 6].map((s) => status(s)),
    ["ghost ghost ghost", "accepted accepted ghost", "accepted accepted rejected"],
  );
  // what is not told yet is not given away by what stands before it
  assert.deepEqual(
    [4, 5, 6].map((s) => status(s, true)),
    ["asked ghost ghost", "ghost asked ghost", "accepted accepted asked"],
  );
});

test("a later sibling in a tree faces what is left of p, and the first does not", () => {
  assert.match(
    said(tree(), 7),
    /“the” q = \.40, what its rejected siblings leave of the target p = \.60/,
  );
  assert.match(said(tree(), 6), /“a” q = \.50, the target p = \.20/);
});

test("a screen reader hears where one is", () => {
  const { data, time } = story();
  assert.match(spoken(data, frameAt(data, time, 0)), /^Round 0\. The draft samples “a”/);
});

test("long and blank tokens in a sentence", () => {
  assert.equal(quoted(" "), "“ ”");
  assert.equal(quoted("x".repeat(50)).length, 34);
});
