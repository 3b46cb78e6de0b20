import assert from "node:assert/strict";
import { before, test } from "node:test";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { predictPanel, scorebook } from "../../../specviz/player/js/predict.js";
import { barsView } from "../../../specviz/player/js/view_bars.js";
import { cachesView } from "../../../specviz/player/js/view_caches.js";
import { drawView } from "../../../specviz/player/js/view_draw.js";
import { lanesView } from "../../../specviz/player/js/view_lanes.js";
import { measuresView } from "../../../specviz/player/js/view_measures.js";
import { phaseView } from "../../../specviz/player/js/view_phase.js";
import { textView } from "../../../specviz/player/js/view_text.js";
import { treeView } from "../../../specviz/player/js/view_tree.js";
import { all, install, ofClass } from "./fakedom.mjs";
import { run, story, tree } from "./handmade.mjs";

before(install);
const VIEWS = [
  textView,
  phaseView,
  barsView,
  drawView,
  cachesView,
  lanesView,
  measuresView,
  treeView,
];
const STATE = { whatIf: null, hint: false };

function mounted(view, made, asked = []) {
  const player = { frame: null, go: (s) => asked.push(s), whatIf: (change) => asked.push(change) };
  const one = view.mount(made.data, made.time, player);
  const to = (s, state = STATE, concealed = false) => {
    player.frame = frameAt(made.data, made.time, s, concealed);
    one.update(player.frame, state);
    return one.el;
  };
  return { el: one.el, to };
}

const snapshot = (el) =>
  JSON.stringify(
    all(el).map((n) => [n.tag, n.attributes, n.style, n.tag === "#text" ? n.data : ""]),
  );

for (const view of VIEWS)
  test(`${view.name} depends on the position only, not on how one came there`, () => {
    for (const made of [story(), tree()]) {
      const straight = mounted(view, made),
        wild = mounted(view, made);
      for (let s = made.time.length - 1; s >= 0; s -= 3) wild.to(s);
      for (let s = 0; s < made.time.length; s++) {
        wild.to((s * 7) % made.time.length);
        assert.equal(texts(wild.to(s)), texts(straight.to(s)), `step ${s}`);
      }
    }
  });

const texts = (el) =>
  JSON.stringify(
    all(el, (n) => n.childNodes.some((c) => c.tag === "#text")).map((n) => [
      n.textContent,
      n.attributes["data-mark"] ?? n.attributes["data-status"] ?? "",
    ]),
  );

for (const view of VIEWS)
  test(`${view.name} writes nothing when nothing changed`, () => {
    const made = story();
    const one = mounted(view, made);
    one.to(5);
    const written = () => all(one.el).reduce((sum, n) => sum + n.writes, 0);
    const before_ = written(),
      picture = snapshot(one.el);
    one.to(5);
    assert.equal(written(), before_);
    assert.equal(snapshot(one.el), picture);
  });

test("the text shows each token with its mark", () => {
  const one = mounted(textView, story());
  const marks = () =>
    ofClass(one.el, "svp-w")
      .map((n) => `${n.textContent}:${n.attributes["data-mark"]}`)
      .join(" ");
  one.to(1);
  assert.equal(marks(), "a:ghost fox:ghost");
  one.to(6);
  assert.equal(marks(), "a:accepted fox:rejected who:never cat:correction");
  one.to(16);
  assert.equal(marks(), "a:accepted cat:correction sat:plain down:accepted .:accepted Then:bonus");
});

test("a click on a token asks for the step at which it was decided", () => {
  const asked = [],
    made = story();
  const one = mounted(textView, made, asked);
  one.to(16);
  const hit = all(one.el, (n) => n.dataset.i === 1)[0];
  one.el.listeners.click({ target: { closest: () => hit } });
  assert.deepEqual(asked, [6]);
});

test("hostile tokens are text", () => {
  const evil = "</script><img src=x onerror=alert(1)>";
  const made = run([
    {
      nodes: [
        [evil, 1, 0.5, 0.5, 0.1],
        ["<!--", 2, 0.1, 0.5, 0.9],
      ],
      closing: evil,
      kind: 1,
    },
  ]);
  for (const view of VIEWS) {
    const one = mounted(view, made);
    for (let s = 0; s < made.time.length; s++) one.to(s);
    assert.equal(all(one.el, (n) => n.tag === "img" || n.tag === "script").length, 0);
  }
  const text = mounted(textView, made);
  assert.ok(text.to(made.time.length - 1).textContent.includes(evil));
});

test("cards: what is proposed, its verdict, the closing token", () => {
  const one = mounted(phaseView, story());
  const cards = () =>
    ofClass(one.el, "svp-card")
      .map((n) => n.attributes["data-status"])
      .join(" ");
  one.to(0);
  assert.equal(cards(), "ghost hidden hidden hidden");
  one.to(6);
  assert.equal(cards(), "accepted rejected never correction");
  assert.match(one.el.textContent, /Resample/);
  one.to(15);
  assert.match(one.el.textContent, /Bonus/);
  assert.equal(
    ofClass(one.el, "svp-step").filter((n) => n.attributes["aria-current"] === "step").length,
    1,
  );
});

test("what if is marked as not what happened", () => {
  const one = mounted(drawView, story());
  const badge = () => (ofClass(one.el, "svp-badge").length ? "visible" : "hidden");
  one.to(5);
  assert.equal(badge(), "hidden");
  one.to(5, { whatIf: { u: 0.2 }, hint: false });
  assert.equal(badge(), "visible");
  assert.equal(one.el.attributes["data-whatif"], "");
});

test("predict: score, and what the likelier verdict would get", () => {
  const made = story(),
    book = scorebook(made.data);
  const at = (s) => frameAt(made.data, made.time, s, true);
  assert.ok(book.asks(at(4)) && book.asks(at(5)) && !book.asks(at(3)));
  book.answer(at(4), true);
  book.answer(at(4), false); // the first answer counts
  book.answer(at(5), true);
  assert.deepEqual(book.score(), { right: 1, asked: 2, best: 1.5 });
  assert.ok(!book.asks(at(4)));
  book.answer(at(13), null); // revealed for an audience: not a guess
  assert.equal(book.score().asked, 2);
  const panel = predictPanel(made.data, {});
  panel.update(frameAt(made.data, made.time, 5), { predict: true, book, hint: false });
  assert.match(panel.el.textContent, /Not this time: rejected.*1 of 2 guesses right/);
});

test("bars of rounds say how many tokens each gave", () => {
  const { to } = mounted(measuresView, story());
  const [chart] = ofClass(to(7), "svp-chart");
  assert.equal(chart.childNodes[0].attributes.title, "round 0: 2 tokens");
});
