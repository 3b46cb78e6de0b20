// How an entry turns a model into what is shown: anywidget and the page both call render().

import { h } from "./dom.js";

/**
 * The theme of a host that has JupyterLab's colours and does not say whether they are dark, such
 * as an exported notebook: "light", "dark", or "" where the host says it or has no colours.
 * @param {any} el
 */
export function themeOfHost(el) {
  const { jpThemeLight, vscodeThemeKind } = document.body?.dataset ?? {};
  if (jpThemeLight !== undefined || vscodeThemeKind !== undefined) return "";
  if (!getComputedStyle(el).getPropertyValue("--jp-layout-color1").trim()) return "";
  const probe = h("i", { style: "color: var(--jp-layout-color1)", hidden: true });
  el.append(probe);
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g) ?? [];
  probe.remove();
  const [red, green, blue] = parts.map(Number);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "dark" : "light";
}

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
      const theme = themeOfHost(el);
      if (theme) el.classList.add(`svp-host-${theme}`);
      clean = await mount(model, el);
    } catch (error) {
      el.append(
        h("p", {
          role: "alert",
          text: `specviz: ${error instanceof Error ? error.message : error}`,
        }),
      );
    }
    if (signal?.aborted) clean();
    signal?.addEventListener("abort", clean);
    return clean;
  };
}
