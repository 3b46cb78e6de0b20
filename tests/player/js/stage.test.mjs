import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { partsAt, stagePanel } from "../../../specviz/player/js/stage_panel.js";
import { phaseView } from "../../../specviz/player/js/view_phase.js";
import { install, ofClass } from "./fakedom.mjs";
import { run, story } from "./handmade.mjs";

before(install);

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-5, `${a} is not ${b}`);

function stage(made) {
  const view = phaseView.mount(made.data, made.time, {});
  return (step, state = {}, concealed = false) => {
    view.update(frameAt(made.data, made.time, step, concealed), state);
    return view.el;
  };
}
const picture = (el) => ofClass(el, "svp-panel")[0].attributes["data-picture"];
const width = (el, name) => ofClass(el, name).map((one) => parseFloat(one.style.width));

test("each step has the one picture that the run names for it", () => {
  const to = stage(story());
  assert.deepEqual(
    [0, 3, 4, 5, 6, 7].map((step) => picture(to(step))),
    ["rows", "passes", "u", "u", "drawn", "caches"],
  );
  assert.equal(ofClass(to(5), "svp-pic").length, 1);
});

test("verify gives all cards their p at once, and one more behind the last", () => {
  const to = stage(story());
  const ps = (step) =>
    ofClass(to(step), "svp-pn")
      .slice(0, 3)
      .map((one) => one.textContent);
  assert.deepEqual(ps(2), ["p ?", "p ?", "p ?"]);
  assert.deepEqual(ps(3), ["p .60", "p .31", "p .40"]);
  assert.equal(ofClass(to(3), "svp-deck")[0].attributes["data-flash"], "");
  assert.equal(ofClass(to(4), "svp-deck")[0].attributes["data-flash"], undefined);
  const closing = ofClass(to(3), "svp-closing")[0];
  assert.equal(closing.attributes["data-status"], "open");
  assert.match(closing.textContent, /one more p/);
});

test("beside the one pass stand as many as it replaces", () => {
  const to = stage(story());
  const kinds = ofClass(to(3), "svp-pblock").map((one) => one.attributes["data-kind"]);
  assert.deepEqual(kinds, ["draft", "once", "each", "each", "each", "each"]);
});

test("the green share of the bar is min(1, p / q), the dot stands at u", () => {
  const to = stage(story());
  const at = (step) => {
    const el = to(step);
    return [ofClass(el, "svp-green")[0].style.height, ofClass(el, "svp-u")[0].style.bottom];
  };
  assert.deepEqual(at(4), ["100.00%", "30.00%"]);
  assert.deepEqual(at(5), ["50.00%", "71.00%"]);
  assert.match(ofClass(to(5), "svp-verd")[0].textContent, /✗ rejected/);
});

test("a question shows neither the share nor the dot, a hint shows the dot", () => {
  const to = stage(story());
  assert.equal(ofClass(to(5, {}, true), "svp-green")[0].style.height, "0");
  assert.equal(ofClass(to(5, {}, true), "svp-u")[0].style.display, "none");
  assert.equal(ofClass(to(5, { hint: true }, true), "svp-u")[0].style.display, "");
  assert.doesNotMatch(ofClass(to(5, {}, true), "svp-panel")[0].textContent, /rejected|\.71|\.50/);
});

test("why it is exact: of every token, green and hatched together are p", () => {
  const made = story(),
    to = stage(made);
  assert.equal(picture(to(5, { why: true })), "why");
  assert.equal(picture(to(1, { why: true })), "rows"); // the target has not looked yet
  const parts = partsAt(made.data, 1, "p");
  for (const one of parts) near(one.over + one.rest, one.p);
  near(
    parts.reduce((sum, one) => sum + one.p, 0),
    1,
  );
  const el = to(5, { why: true }),
    end = width(el, "svp-rover").map((green, i) => green + width(el, "svp-rrest")[i]);
  parts.forEach((one, i) => near(end[i] / 100, Number(one.p.toFixed(4))));
});

test("what is gathered after a rejection is the mass that is missing, then all of the bar", () => {
  const made = story();
  made.data.header.words[4][3] = "residual";
  made.data.header.words[4][4] = ["1", "2", "3"];
  const el = stage(made)(6);
  const [gathered, grown] = ofClass(el, "svp-wbar").map((bar) =>
    ofClass(bar, "svp-piece").reduce((sum, one) => sum + parseFloat(one.style.width), 0),
  );
  near(gathered / grown, 1 - made.data.node.overlap[1]);
});

test("rules without a u ask for the target's own token, which a question hides", () => {
  const made = run(
    [{ nodes: [[" small", 2, 0.36, 0.3, 0.5, -1, " quiet"]], closing: " quiet", kind: 1 }],
    { judged: false, rule: "match" },
  );
  for (const words of made.data.header.words) if (words[3] === "u") words[3] = "token";
  const to = stage(made);
  const chips = (concealed) =>
    ofClass(to(2, {}, concealed), "svp-chip").map((one) => ofClass(one, "svp-word")[0].textContent);
  assert.deepEqual(chips(false), ["small", "quiet"]);
  assert.deepEqual(chips(true), ["small", "?"]);
  assert.equal(picture(to(2, { why: true })), "token"); // nothing to show: no u, no residual
  assert.ok(stagePanel(made.data).el);
});
