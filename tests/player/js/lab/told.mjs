// What Python says, to compare with: written by test_lab_js.py.

import { readFileSync } from "node:fs";

export const told = JSON.parse(readFileSync(process.env.SPECVIZ_LAB, "utf-8"));

export const close = (a, b, by = 1e-12) =>
  Math.abs(a - b) <= by || (Number.isNaN(a) && Number.isNaN(b));
export const closeAll = (a, b, by) =>
  a.length === b.length && a.every((x, i) => close(x, b[i], by));
/** "13/20" or 0.65 → 0.65. */
export const number = (x) =>
  typeof x === "string" ? Number(x.split("/")[0]) / Number(x.split("/")[1] ?? 1) : x;
