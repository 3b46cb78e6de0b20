import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { drawAt } from "../../../specviz/player/js/view_draw.js";
import { treeView } from "../../../specviz/player/js/view_tree.js";
import { blockAt } from "../../../specviz/player/js/block.js";
import { walkAt } from "../../../specviz/player/js/walk.js";
import { all, install } from "./fakedom.mjs";
import { run, story, tree } from "./handmade.mjs";

before(install);
const frame = (made, node, round = 0) =>
  frameAt(made.data, made.time, made.time.step({ round, phase: "decide", node }));
const says = (made, node, whatIf) => drawAt(made.data, frame(made, node), whatIf).says;
const told = (walk) => walk.told.map((one) => `${one.node}${one.kept ? "✓" : "✗"}`).join(" ");

test("with the u that was drawn the walk is the one that happened", () => {
  const made = tree();
  const real = walkAt(made.data, frame(made, 0), made.data.node.u[0]);
  assert.equal(told(real), "0✗ 1✓ 3✗ 4✓");
  assert.ok(real.same && real.placed && real.distribution === "p");
});

test("a first sibling that were accepted: the walk descends to its child instead", () => {
  const made = tree(),
    walk = walkAt(made.data, frame(made, 0), 0.1);
  assert.equal(told(walk), "0✓ 2✓");
  assert.equal(walk.same, false);
  assert.match(
    says(made, 0, { u: 0.1 }),
    /^What if u were \.10\? “a” would be accepted.*The walk descends to “cat”: u = \.50 < 1, accepted\. The closing token would come from p after “cat”, which is not on record\.$/,
  );
});

test("a kept one that were rejected: its next sibling, else the residual", () => {
  const made = tree();
  assert.match(says(made, 4, { u: 0.99 }), /still be accepted/); // always accepted: p > q
  made.data.node.acceptance[4] = 0.5;
  const draw = drawAt(made.data, frame(made, 4), { u: 0.6 });
  assert.equal(draw.walk.distribution, "residual");
  assert.match(
    draw.says,
    /“fox” would be rejected\. A token drawn from the residual after “fox” would come instead; .*not on record/,
  );
  assert.ok(Number.isNaN(draw.distribution.v) && draw.distribution.chosen === null);
  made.data.node.acceptance[3] = 0.9; // its sibling before it would be accepted then
  assert.match(
    says(made, 3, { u: 0.2 }),
    /“dog” would be accepted.*p after “dog”, which is not on record/,
  );
  made.data.node.acceptance[1] = 0.5;
  assert.match(says(made, 1, { u: 0.7 }), /“the” would be rejected.*residual after “the”/);
});

test("an unknown acceptance is said to be unknown", () => {
  const made = tree();
  made.data.node.acceptance[2] = NaN;
  assert.match(says(made, 0, { u: 0.1 }), /Whether “cat” would be accepted is not on record\./);
});

test("a chain goes on with the draws on record", () => {
  assert.match(
    says(story(), 1, { u: 0.4 }),
    /round would go on\. Next “who”: u = \.10 < \.80, accepted\./,
  );
});

test("a block is accepted up to the last that passes", () => {
  const made = run(
    [
      {
        nodes: [
          [" a", 1, 0.2, 0.4, 0.3],
          [" b", 1, 0.2, 0.4, 0.7],
          [" c", 1, 0.2, 0.4, 0.1],
        ],
        closing: " d",
        kind: 2,
      },
    ],
    { rule: "block" },
  );
  assert.equal(blockAt(made.data, frame(made, 0), 0.9), 3);
  assert.equal(blockAt(made.data, frame(made, 2), 0.9), 1);
  assert.equal(
    says(made, 2, { u: 0.9 }),
    "What if u were .90? Test 3 would not pass. The last that passes would be position 1 (“a”): everything up to it would be accepted. The closing token would come from what that leaves of p, less q: which one is not on record.",
  );
  assert.equal(
    says(made, 1, { u: 0.2 }),
    "What if u were .20? Test 2 would pass. The last that passes would still be position 3 (“c”): nothing else would change.",
  );
  assert.match(
    says(made, 1, { u: 0.6 }),
    /Test 2 would still not pass\. .*nothing else would change\.$/,
  );
});

test("the tree marks the walk that did not happen", () => {
  const made = tree(),
    at = frame(made, 0);
  const view = treeView.mount(made.data, made.time, { frame: at });
  const would = () =>
    all(view.el, (n) => n.attributes?.["data-would"] === "").map((n) =>
      Number(n.attributes["data-n"]),
    );
  view.update(at, { whatIf: null });
  assert.deepEqual(would(), []);
  view.update(at, { whatIf: { u: 0.1 } });
  assert.deepEqual(would(), [0, 2]);
  assert.equal(view.el.attributes["data-whatif"], "");
  view.update(at, { whatIf: null });
  assert.deepEqual(would(), []);
});
