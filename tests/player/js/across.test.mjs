// A run packed by Python and read here: SPECVIZ_RUN names the bytes, SPECVIZ_TOLD what they say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  decode,
  NONE,
  pieceText,
  rowOf,
  tokenText,
  unzip,
} from "../../../specviz/player/js/decode.js";
import { frameAt } from "../../../specviz/player/js/frame.js";
import { measuresAt } from "../../../specviz/player/js/view_measures.js";
import { timeline } from "../../../specviz/player/js/timeline.js";

const file = process.env.SPECVIZ_RUN;
const near = (a, b, e) => assert.ok(a === b || Math.abs(a - b) <= e, `${a} is not ${b}`);

test("what Python packed is what is read here", { skip: !file && "runs from pytest" }, async () => {
  const told = JSON.parse(readFileSync(process.env.SPECVIZ_TOLD, "utf-8"));
  const packed = gzipSync(readFileSync(file));
  const data = decode(await unzip(packed));
  decode(await unzip(packed.toString("base64")));
  assert.equal(data.rounds, told.rounds.length);
  assert.equal([...data.out].map((_, i) => pieceText(data, i)).join(""), told.text);
  told.nodes.forEach((node, row) => {
    for (const name of ["p", "q", "u", "acceptance", "overlap"])
      near(data.node[name][row], node[name], 1e-6);
    assert.equal(data.node.verdict[row], node.verdict);
    assert.equal(tokenText(data, data.node.token[row]), node.text);
    const ids = rowOf(data, "node", "top", row);
    const p = rowOf(data, "node", "top_p", row),
      q = rowOf(data, "node", "top_q", row);
    assert.equal(tokenText(data, ids[0]), node.text);
    near(p[0], node.p, 2e-5);
    near(q[0], node.q, 2e-5);
    const sum = (distribution, tail) => distribution.reduce((a, b) => a + b, 0) + tail[0] + tail[1];
    near(sum(p, rowOf(data, "node", "tail_p", row)), 1, 1e-3);
    near(sum(q, rowOf(data, "node", "tail_q", row)), 1, 1e-3);
  });
  told.rounds.forEach((round, r) => {
    assert.equal(tokenText(data, data.round.closing[r]), round.closing);
    near(data.round.verify_seconds[r], round.verify_seconds, 1e-8);
    assert.ok(data.round.closing[r] !== NONE);
  });
  const time = timeline(data);
  const end = measuresAt(data, frameAt(data, time, time.length - 1));
  near(end.alpha, told.alpha, 1e-6);
  near(end.perPass, told.tokens_per_pass, 1e-9);
});

test("what is no run is refused", () => {
  assert.throws(() => decode(new Uint8Array(16)), /no run that the player can read/);
  const other = new TextEncoder().encode('SVP1\u0010\0\0\0{"version":1}    ');
  assert.throws(() => decode(other), /written in version 1; the player reads 2/);
});
