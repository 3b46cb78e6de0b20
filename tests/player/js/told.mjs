// Every frame of a packed run as JSON, a line each: what tests/player/test_frames.py compares.

import { readFileSync } from "node:fs";
import { decode, tokenText } from "../../../specviz/player/js/decode.js";
import { cacheAt, frameAt, secondsAt } from "../../../specviz/player/js/frame.js";
import { timeline } from "../../../specviz/player/js/timeline.js";
import { placesIn, windowAt } from "../../../specviz/player/js/tree_window.js";
import { barsAt } from "../../../specviz/player/js/view_bars.js";
import { slotsAt } from "../../../specviz/player/js/view_caches.js";
import { drawAt } from "../../../specviz/player/js/view_draw.js";
import { measuresAt } from "../../../specviz/player/js/view_measures.js";
import { pending } from "../../../specviz/player/js/view_text.js";
import { caption } from "../../../specviz/player/js/words.js";

const data = decode(readFileSync(process.argv[2]));
const time = timeline(data);
const lines = [];
for (let step = 0; step < time.length; step++) {
  const frame = frameAt(data, time, step);
  const bars = barsAt(data, frame),
    draw = drawAt(data, frame);
  const { nodes, x, y, folds, fold, leaves, levels } = placesIn(windowAt(data, frame));
  lines.push(
    JSON.stringify({
      step: time.step(frame),
      round: frame.round,
      phase: frame.phase,
      node: frame.node,
      status: frame.status,
      closing: frame.closing,
      seen_p: frame.seenP,
      settled: frame.settled,
      emitted: frame.emitted,
      pending: pending(data, frame),
      caption: caption(data, frame),
      seconds: secondsAt(data, frame),
      caches: ["target", "draft"].map((which) => {
        const { before, now, peak, after } = cacheAt(data, frame, which);
        return { before, now, peak, after };
      }),
      slots: ["target", "draft"].map((which) =>
        slotsAt(data, frame, which).slots.map(({ at, state, text }) => [at, state, text]),
      ),
      bars: [bars.mode, bars.title, bars.rows.map((one) => [one.text, one.p, one.q, one.x])],
      overlap: bars.overlap,
      tail: [bars.tail.p, bars.tail.q, bars.tail.over],
      draw: {
        says: draw.says,
        test: draw.test ? [draw.test.a, draw.test.u, draw.test.kept] : null,
        pieces: (draw.distribution?.rows ?? []).map((one) => [
          tokenText(data, one.token),
          one.p,
          one.lo,
        ]),
        title: draw.distribution?.title ?? "",
        v: draw.distribution?.v ?? NaN,
        contests: (draw.contests ?? [])
          .filter(Boolean)
          .map(({ title, lanes }) => [
            title,
            lanes.map((one) => [
              one.text,
              one.role,
              one.mark,
              one.look,
              one.from,
              one.to,
              one.value,
            ]),
          ]),
      },
      measures: measuresAt(data, frame),
      tree: {
        leaves,
        levels,
        nodes: nodes.map((i) => [i, x.get(i), y.get(i)]),
        folds: folds.map(({ parent, more }) => [parent, more, fold.get(parent)]),
      },
    }),
  );
}
process.stdout.write(lines.join("\n"));
