// The entry: anywidget and the page both call render({ model, el }).

import { h } from "./dom.js";
import { playerOf } from "./player.js";
import { raceOf } from "./race.js";

/** What a model's `kind` mounts. @type {Record<string, (model: any, el: any) => Promise<() => void>>} */
export const MOUNTS = { player: playerOf, race: raceOf };

/* global SVP_STYLE: the style sheet, put in front by assets.py */

/** @param {{ model: any, el: any, signal?: AbortSignal }} host */
export async function render({ model, el, signal }) {
  let clean = () => {};
  // beside the player, not in the head: some hosts keep their widgets in a shadow tree
  if (typeof SVP_STYLE === "string") el.append(h("style", { text: SVP_STYLE }));
  try {
    const mount = MOUNTS[model.get("kind")];
    if (!mount) throw new Error(`there is no ${model.get("kind")} to show`);
    clean = await mount(model, el);
  } catch (error) {
    el.append(h("p", { role: "alert", text: `specviz: ${error instanceof Error ? error.message : error}` }));
  }
  if (signal?.aborted) clean();
  signal?.addEventListener("abort", clean);
  return clean;
}

export default { render };
