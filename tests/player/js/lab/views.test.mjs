import assert from "node:assert/strict";
import { test } from "node:test";
import { editorCommand, EDITOR_KEYS } from "../../../../specviz/player/js/editor.js";
import { keyMove, mountBars, movedBy, shareAt } from "../../../../specviz/player/js/editor_bars.js";
import { mountDraw, oneDrawAt, piecesOf } from "../../../../specviz/player/js/editor_draw.js";
import { mountMany } from "../../../../specviz/player/js/editor_many.js";
import { ACTS, begin, exactAt, manyAt } from "../../../../specviz/player/js/editor_state.js";
import { endOf, gauge, gaugeAt, observedBars } from "../../../../specviz/player/js/observed.js";
import { evidenceChart } from "../../../../specviz/player/js/watch_chart.js";
import { looksUpTo } from "../../../../specviz/player/js/watch_run.js";
import { aligned, pValue, shown } from "../../../../specviz/player/js/numbers.js";
import { all, install, ofClass } from "../fakedom.mjs";
import { close, closeAll } from "./told.mjs";

install();
const hostile = "<img src=x onerror=alert(1)>";

function editing(how = {}) {
  const editor = {
    state: begin(how),
    settled: [],
    act(name, ...more) {
      editor.state = ACTS[name](editor.state, ...more);
    },
    settle: (name) => editor.settled.push(name),
  };
  return editor;
}
const half = (view, which, i) =>
  all(view.el, (one) => one.attributes["data-which"] === which && one.attributes.role === "slider")[
    i
  ];
const key = (name, more = {}) => ({
  key: name,
  stopped: 0,
  preventDefault() {},
  stopPropagation() {
    this.stopped++;
  },
  ...more,
});

test("a bar is dragged by the pointer: its share of the track, times the scale", () => {
  const editor = editing({ preset: "fox" }),
    view = mountBars(editor);
  view.update(editor.state, exactAt(editor.state));
  const bar = half(view, "p", 2);
  bar.getBoundingClientRect = () => ({ left: 100, width: 200 });
  bar.listeners.pointermove({ clientX: 300 }); // not held: nothing
  assert.equal(editor.state.p[2], 0.3);
  bar.listeners.pointerdown({ button: 0, clientX: 300, pointerId: 1 });
  assert.ok(close(editor.state.p[2], 0.5)); // the scale ends at .5 and is held while dragging
  view.update(editor.state, exactAt(editor.state));
  bar.listeners.pointermove({ clientX: 200, pointerId: 1 });
  assert.ok(close(editor.state.p[2], 0.25));
  bar.listeners.pointerup({});
  assert.deepEqual(editor.settled, ["move"]);
  bar.listeners.pointermove({ clientX: 300 });
  assert.ok(close(editor.state.p[2], 0.25));
  assert.deepEqual(
    [shareAt(50, { left: 100, width: 200 }), shareAt(999, { left: 100, width: 200 })],
    [0, 1],
  );
});

test("a bar is moved and locked by keys, which the notebook does not see", () => {
  const editor = editing({ preset: "fox" }),
    view = mountBars(editor);
  view.update(editor.state, exactAt(editor.state));
  const bar = half(view, "q", 1),
    pressed = key("ArrowRight", { shiftKey: true });
  bar.listeners.keydown(pressed);
  assert.ok(close(editor.state.q[1], 0.25) && pressed.stopped === 1);
  bar.listeners.keydown(key("l"));
  bar.listeners.keydown(key("End"));
  assert.ok(close(editor.state.q[1], 0.25) && editor.state.locked.q[1]);
  const other = key("x");
  bar.listeners.keydown(other);
  assert.equal(other.stopped, 0);
  assert.deepEqual(
    [keyMove({ key: "ArrowLeft" }), keyMove({ key: "PageUp" }), keyMove({ key: "a" })],
    [-0.01, 0.1, null],
  );
  assert.deepEqual(
    [movedBy("low", 0.5, 0.8), movedBy("high", 0.5, 0.8), movedBy(0.05, 0.123, 1)],
    [0, 0.8, 0.173],
  );
});

test("bars tell a screen reader what they are", () => {
  const editor = editing({ preset: "fox" }),
    view = mountBars(editor);
  editor.act("lock", "p", 0);
  view.update(editor.state, exactAt(editor.state));
  const { attributes } = half(view, "p", 0);
  assert.deepEqual(
    [
      attributes["aria-label"],
      attributes["aria-valuenow"],
      attributes["aria-valuetext"],
      attributes["aria-valuemax"],
      attributes["aria-disabled"],
    ],
    ["target p of “the”", "0.400", ".40, locked", "1.000", "true"],
  );
  assert.equal(all(view.el, (one) => one.attributes.role === "slider").length, 10);
  assert.equal(half(view, "q", 4).attributes.tabindex, "0");
});

test("token text is text", () => {
  const editor = editing({ words: [hostile, "b"], p: [0.5, 0.5], q: [0.9, 0.1] });
  const views = [mountBars(editor), mountDraw(), mountMany()];
  for (let i = 0; i < 4; i++) editor.act("step");
  const exact = exactAt(editor.state);
  for (const view of views) view.update(editor.state, exact, null);
  for (const view of views) assert.equal(all(view.el, (one) => one.tag === "img").length, 0);
  assert.ok(ofClass(views[0].el, "svp-lab")[0].textContent.includes("<img"));
});

test("the same state writes nothing twice", () => {
  const editor = editing(),
    views = [mountBars(editor), mountDraw(), mountMany()],
    exact = exactAt(editor.state);
  for (const view of views) view.update(editor.state, exact, null);
  const written = () =>
    views.reduce(
      (total, view) => total + all(view.el).reduce((sum, one) => sum + one.writes, 0),
      0,
    );
  const before = written();
  for (const view of views) view.update(editor.state, exact, null);
  assert.equal(written(), before);
});

test("a draw shows each part when its turn comes", () => {
  let state = begin({ preset: "worked", seed: 4 });
  for (let i = 0; i < 80; i++) {
    state = ACTS.step(state);
    const seen = oneDrawAt(state),
      { kind } = state.one.steps[state.one.step],
      { happened } = state.one;
    assert.ok(seen.proposal);
    assert.equal(Boolean(seen.test), kind !== "propose");
    assert.equal(Number.isFinite(seen.test?.u), kind === "judge" || kind === "close");
    assert.equal(Boolean(seen.closing), kind === "close");
    const last = state.one.step === state.one.steps.length - 1;
    assert.equal(seen.token, last ? happened.token : -1);
    if (last) assert.equal(seen.how, happened.kept ? "accepted" : "correction");
  }
  const laid = piecesOf([0.5, 0.25, 0.25], ["a", "b", "c"], 2);
  assert.deepEqual(
    laid.map((one) => [one.lo, one.size, one.on]),
    [
      [0, 0.5, false],
      [0.5, 0.25, false],
      [0.75, 0.25, true],
    ],
  );
});

test("observed against expected: misses have another shape, the fault's distribution its own mark", () => {
  let state = ACTS.many(begin({ preset: "worked", fault: "always_accept" }));
  state = ACTS.more(state, 10_000);
  const exact = exactAt(state),
    many = manyAt(state, exact),
    bars = observedBars();
  bars.update(many.rows, many.n, true);
  const rows = ofClass(bars.el, "svp-orow").filter((one) => one.attributes.role === "listitem");
  assert.equal(rows.length, 4);
  assert.ok(rows.every((row) => row.attributes["data-outside"] === ""));
  assert.match(
    rows[0].attributes["aria-label"],
    /^a: seen .* expected \.50, with the fault \.10, the interval misses p$/,
  );
  assert.equal(ofClass(bars.el, "svp-wrongly").length, 4);
  bars.update(
    many.rows.map((row) => ({ ...row, outside: false })),
    many.n,
    false,
  );
  assert.equal(ofClass(bars.el, "svp-wrongly").length, 0);
  assert.equal(endOf([{ expected: 0.3, distribution: 0.45, seen: 0.31, high: 0.33 }]), 0.5);
  assert.ok(
    closeAll(
      Object.values(gaugeAt({ tv: 0.1, floor: 0.02, bound: 0.04 })).slice(0, 3),
      [0.16, 0.32, 0.8],
    ),
  );
  const strip = gauge();
  strip.update({ tv: 0.1, floor: 0.02, bound: 0.04 }, "words");
  assert.equal(strip.el.attributes["data-outside"], "");
});

test("the chart draws both lines and marks what crossed", () => {
  const options = { alpha: 0.01, looks: looksUpTo(200), limit: 200 },
    chart = evidenceChart(options);
  chart.update({ e: [0, 50, 300], p: [null, 10, 20], e_alarm: 22, p_alarm: null });
  const path = (name) => all(chart.el, (one) => one.attributes.class === name)[0].attributes.d;
  assert.match(path("svp-eline"), /^M.*L.*L/);
  assert.match(path("svp-pline"), /^M[^M]*$/);
  assert.equal(ofClass(chart.el, "svp-emark").length, 1);
  assert.equal(ofClass(chart.el, "svp-pmark").length, 0);
});

test("keys and numbers", () => {
  assert.deepEqual(editorCommand({ key: " " }), ["play"]);
  assert.equal(editorCommand({ key: "b" }), null);
  assert.ok(EDITOR_KEYS.some(([one]) => one === "?"));
  assert.deepEqual(
    [shown(0.5), shown(0), shown(1), shown(0.0301), shown(0.9999), shown(3e-5), shown(NaN)],
    [".50", "0", "1", ".030", ".9999", "3.0e−5", "–"],
  );
  assert.deepEqual(
    [aligned(0.25), aligned(1), aligned(0), aligned(1e-5)],
    [".250", "1", ".000", "<.001"],
  );
  assert.deepEqual(
    [pValue(NaN), pValue(0.5), pValue(1e-9), pValue(0)],
    ["–", ".500", "1.0e−9", "below 1e−300"],
  );
});
