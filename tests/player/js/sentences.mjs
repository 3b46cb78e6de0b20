// What is said of every judged proposal, as JSON, a line each: for tests/player/test_sentences.py.

import { readFileSync } from "node:fs";
import { decode } from "../../../specviz/player/js/decode.js";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { timeline } from "../../../specviz/player/js/timeline.js";
import { drawAt } from "../../../specviz/player/js/view_draw.js";
import { testSaid } from "../../../specviz/player/js/view_phase.js";
import { caption } from "../../../specviz/player/js/words.js";

const data = decode(readFileSync(process.argv[2]));
const time = timeline(data),
  lines = [];
for (let step = 0; step < time.length; step++) {
  const frame = frameAt(data, time, step);
  if (frame.phase !== "decide") continue;
  const row = frame.first + frame.node,
    u = data.node.u[row];
  const hidden = frameAt(data, time, step, true);
  const what = (x) => drawAt(data, frame, { u: x });
  const same = what(u);
  lines.push(
    JSON.stringify({
      step,
      round: frame.round,
      node: frame.node,
      status: frame.status,
      caption: caption(data, frame),
      says: drawAt(data, frame).says,
      asked: [caption(data, hidden), drawAt(data, hidden).says, ...hidden.status],
      card: testSaid(data, frame, frame.node),
      hiddenCard: testSaid(data, hidden, frame.node),
      same: same.says,
      walk: same.walk?.told.map((one) => [one.node, one.kept]) ?? null,
      low: what(0).says,
      high: what(0.9999).says,
    }),
  );
}
process.stdout.write(lines.join("\n"));
