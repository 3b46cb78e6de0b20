import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { barsAt, scaleOf } from "../../../specviz/player/js/view_bars.js";
import { drawAt } from "../../../specviz/player/js/view_draw.js";
import { slotsAt } from "../../../specviz/player/js/view_caches.js";
import { blocksIn } from "../../../specviz/player/js/view_lanes.js";
import { measuresAt } from "../../../specviz/player/js/view_measures.js";
import { pending } from "../../../specviz/player/js/view_text.js";
import { tokensAt } from "../../../specviz/player/js/race_time.js";
import { maskPath, treeView } from "../../../specviz/player/js/view_tree.js";
import { phaseView } from "../../../specviz/player/js/view_phase.js";
import { number } from "../../../specviz/player/js/numbers.js";
import { all, install } from "./fakedom.mjs";
import { run, story, tree } from "./handmade.mjs";

before(install);

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`);
const seen = (made, s, whatIf, hint, concealed = false) =>
  drawAt(made.data, frameAt(made.data, made.time, s, concealed), whatIf, hint);

test("the draw that happened", () => {
  const { test: it, distribution, says } = seen(story(), 5);
  near(it.a, 0.5);
  near(it.u, 0.71);
  assert.equal(it.kept, false);
  assert.equal(it.changed, false);
  assert.equal(distribution.rows.at(-1).lo, distribution.chosen.lo); // what was drawn is there, although not among the likeliest
  assert.equal(says, "u = .71: rejected. “cat” is next.");
});

test("what if u had been lower: kept, and the round would go on", () => {
  const { test: it, distribution, says } = seen(story(), 5, { u: 0.49 });
  assert.equal(it.kept, true);
  assert.equal(distribution, undefined);
  assert.match(says, /^What if u were \.49\? “fox” would be accepted, and the round would go on/);
});

test("what if an accepted one had been rejected: the residual's draw says what comes instead", () => {
  const made = run([{ nodes: [[" a", 1, 0.3, 0.6, 0.1]], closing: " b", kind: 2 }]);
  const { test: it, distribution, says } = seen(made, 2, { u: 0.6, v: 0.1 });
  assert.equal(it.kept, false);
  near(it.real, 0.1);
  assert.match(says, /“a” would be rejected, and “else” would come instead/);
  assert.equal(seen(made, 2, { u: 0.6, v: 0.5 }).distribution.chosen.lo, distribution.rows[0].lo);
  assert.match(seen(made, 2, { u: 0.6, v: 0.99 }).says, /a token that is not listed/);
});

test("the boundary: u equal to the acceptance is rejected", () => {
  assert.equal(seen(story(), 5, { u: 0.5 }).test.kept, false);
  assert.equal(seen(story(), 5, { u: 0.4999 }).test.kept, true);
});

test("a concealed draw shows neither u nor the acceptance", () => {
  const hidden = seen(story(), 5, null, false, true);
  assert.ok(
    Number.isNaN(hidden.test.u) && Number.isNaN(hidden.test.a) && Number.isNaN(hidden.test.real),
  );
  assert.doesNotMatch(hidden.says, /71/);
  assert.match(seen(story(), 5, null, true, true).says, /u = \.71/);
});

test("the closing draw, as it was and as it might have been", () => {
  near(seen(story(), 6).distribution.v, 0.5);
  assert.match(seen(story(), 6).says, /falls on “cat”/);
  assert.match(
    seen(story(), 6, { v: 0.7 }).says,
    /What if the draw were \.70\? Then “other” would be emitted/,
  );
});

test("bars: q alone while drafting, then both with their overlap and tails", () => {
  const made = story();
  const at = (s) => barsAt(made.data, frameAt(made.data, made.time, s));
  assert.equal(at(1).mode, "q");
  const both = at(5);
  assert.equal(both.mode, "both");
  near(both.overlap, 0.69);
  assert.deepEqual(
    both.rows.map((r) => [r.text, r.x]),
    [
      ["other", false],
      ["fox", true],
    ],
  );
  near(both.tail.p, 0.069);
  assert.equal(at(6).mode, "distribution");
  assert.equal(at(6).residual, true);
  assert.equal(at(15).residual, false);
  assert.deepEqual([0.04, 0.1, 0.3, 0.9].map(scaleOf), [0.1, 0.1, 0.5, 1]);
});

test("cache slots: kept, new, gone", () => {
  const { data, time } = story();
  const states = (s, which) =>
    slotsAt(data, frameAt(data, time, s), which)
      .slots.map((one) => one.state)
      .join(" ");
  assert.equal(states(3, "target"), "kept new new new new");
  assert.equal(states(7, "target"), "kept new new gone gone");
  assert.equal(states(0, "draft"), "kept new empty empty empty");
});

test("lanes: blocks in a window, and none outside", () => {
  const { data } = story();
  const blocks = blocksIn(data, 0, data.sums.seconds[3]);
  assert.deepEqual(blocks.map((b) => b.kind).join(" "), "draft verify verify draft verify");
  near(blocks[1].at * data.sums.seconds[3], 0.003);
  assert.equal(blocksIn(data, 0.014, 0.002).length, 1 + 0);
});

test("running measures count what is over", () => {
  const { data, time } = story();
  const at = (s) => measuresAt(data, frameAt(data, time, s));
  assert.ok(Number.isNaN(at(0).perPass));
  assert.equal(at(7).perPass, 2);
  assert.equal(at(16).tokens, 6);
  assert.equal(at(16).perPass, 2);
  near(at(7).alpha, (0.9 + 0.69) / 2);
  near(at(16).speedup, (6 * 0.01) / 0.035);
});

test("a tree: its mask", () => {
  const { data, time } = tree(),
    frame = frameAt(data, time, 0);
  const cells = [...maskPath(data, frame).matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)/g)].map((one) =>
    one.slice(1).map(Math.floor).join(),
  );
  assert.deepEqual(cells, ["0,0,0", "1,1,0", "0,2,0", "2,2,0", "1,3,0", "3,3,0", "1,4,0", "4,4,0"]);
});

/** A tree of so many proposals for each place. */
function wide(widths) {
  const nodes = [];
  let level = [-1];
  for (const width of widths) {
    const next = [];
    for (const parent of level)
      for (let k = 0; k < width; k++)
        next.push(nodes.push([` w${k}`, 0, 0.1, 0.1, 0.5, parent]) - 1);
    level = next;
  }
  return run([{ nodes, closing: " d", kind: 1 }]);
}

test("the tree of a round is made once, and a step changes little of it", () => {
  const { data, time } = wide([4, 4]);
  const view = treeView.mount(data, time, {});
  const count = (node) => 1 + node.childNodes.reduce((sum, one) => sum + count(one), 0);
  const writes = (node) => node.writes + node.childNodes.reduce((sum, one) => sum + writes(one), 0);
  for (let step = 0; step < time.length; step++) view.update(frameAt(data, time, step), {});
  assert.ok(count(view.el) < 400, `${count(view.el)} elements`);
  const before = writes(view.el);
  for (let step = 0; step < time.length; step++) view.update(frameAt(data, time, step), {});
  assert.ok(
    (writes(view.el) - before) / time.length < 60,
    `${(writes(view.el) - before) / time.length} changes a step`,
  );
});

test("what stands behind the text: proposals of a chain, the branch of a tree, nothing when it is over", () => {
  const chain = story(),
    branching = tree();
  assert.deepEqual(pending(chain.data, frameAt(chain.data, chain.time, 1)), [0, 1]);
  assert.deepEqual(pending(chain.data, frameAt(chain.data, chain.time, 7)), []);
  assert.deepEqual(pending(branching.data, frameAt(branching.data, branching.time, 3)), [1, 3]);
  assert.deepEqual(
    pending(branching.data, frameAt(branching.data, branching.time, branching.time.length - 2)),
    [0, 1, 3, 4],
  );
});

test("a race counts the rounds that were over", () => {
  const { data } = story();
  assert.deepEqual(
    [0, 0.0129, 0.0131, 0.024, 9].map((s) => tokensAt(data, s).tokens),
    [0, 0, 2, 3, 6],
  );
});

test("before the target has looked nothing is in the order of its p", () => {
  const made = run([{ nodes: [[" a", 1, 0.1, 0.3, 0.1]], closing: " d", kind: 2 }]);
  made.data.node.top_p.set([0.1, 0.85, 0]);
  made.data.node.top_q.set([0.3, 0.2, 0]);
  const order = (step) =>
    barsAt(made.data, frameAt(made.data, made.time, step))
      .rows.map((one) => one.q.toFixed(1))
      .join(" ");
  assert.equal(order(0), "0.3 0.2");
  assert.equal(order(1), "0.2 0.3");
});
