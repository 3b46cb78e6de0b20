import assert from "node:assert/strict";
import { test } from "node:test";
import { frameAt, secondsAt } from "../../../specviz/player/js/frame.js";
import { cacheAt } from "../../../specviz/player/js/view_caches.js";
import { story, tree } from "./handmade.mjs";

const statuses = ({ data, time }, steps) =>
  steps.map((s) => frameAt(data, time, s).status.join(" "));

test("proposals are hidden, wait, are judged one by one; after a rejection nothing is examined", () => {
  assert.deepEqual(statuses(story(), [0, 1, 3, 4, 5, 7]), [
    "ghost hidden hidden",
    "ghost ghost hidden",
    "ghost ghost ghost",
    "accepted ghost ghost",
    "accepted rejected never",
    "accepted rejected never",
  ]);
});

test("the text grows by what is decided, and by nothing else", () => {
  const { data, time } = story();
  const grown = Array.from({ length: time.length }, (_, s) => frameAt(data, time, s).emitted);
  assert.deepEqual(grown, [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5, 6, 6]);
});

test("a concealed verdict is told by nothing in the frame", () => {
  const { data, time } = story();
  const frame = frameAt(data, time, 5, true);
  assert.equal(frame.status.join(" "), "accepted asked ghost");
  assert.equal(frame.emitted, 1);
  assert.equal(frameAt(data, time, 4, true).emitted, 0);
  assert.equal(frameAt(data, time, 6, true).status.join(" "), "accepted rejected never");
});

test("in a tree a rejected sibling leaves the others waiting", () => {
  const { data, time } = tree();
  const at = time.step({ round: 0, phase: "decide", node: 0 });
  assert.equal(frameAt(data, time, at).status.join(" "), "rejected ghost ghost ghost ghost");
  assert.equal(
    frameAt(data, time, time.length - 1).status.join(" "),
    "rejected accepted never rejected accepted",
  );
});

test("caches fill while drafting and verifying, and are rolled back", () => {
  const { data, time } = story();
  const now = (s, which) => cacheAt(data, frameAt(data, time, s), which).now;
  assert.deepEqual(
    [0, 1, 2, 3, 7].map((s) => now(s, "draft")),
    [2, 3, 4, 4, 3],
  );
  assert.deepEqual(
    [0, 2, 3, 6, 7].map((s) => now(s, "target")),
    [1, 1, 5, 5, 3],
  );
  assert.deepEqual(
    [8, 9].map((s) => now(s, "target")),
    [4, 4],
  );
});

test("the clock runs with the measured times", () => {
  const { data, time } = story();
  const at = (s) => Number(secondsAt(data, frameAt(data, time, s)).toFixed(4));
  assert.deepEqual([0, 2, 3, 7, 9, 16].map(at), [0.001, 0.003, 0.013, 0.013, 0.023, 0.035]);
});
