// How an entry turns a model into what is shown: anywidget and the page both call render().

import { h } from "./dom.js";

/* global SVP_STYLE: the style sheet, put in front by assets.py */

/**
 * The render function of an entry.
 * @param {Record<string, (model: any, el: any) => Promise<() => void>>} mounts by a model's `kind`
 */
export function renderer(mounts) {
  /** @param {{ model: any, el: any, signal?: AbortSignal }} host */
  return async function render({ model, el, signal }) {
    let clean = () => {};
    // beside the player, not in the head: some hosts keep their widgets in a shadow tree
    if (typeof SVP_STYLE === "string") el.append(h("style", { text: SVP_STYLE }));
    try {
      const mount = mounts[model.get("kind")];
      if (!mount) throw new Error(`there is no ${model.get("kind")} to show`);
      clean = await mount(model, el);
    } catch (error) {
      el.append(h("p", { role: "alert", text: `specviz: ${error instanceof Error ? error.message : error}` }));
    }
    if (signal?.aborted) clean();
    signal?.addEventListener("abort", clean);
    return clean;
  };
}
