// A page has no widget host: this stands in for its model, then mounts what the page holds.

/** @param {Record<string, any>} values */
export function shim(values) {
  /** @type {Map<string, Set<(value: any) => void>>} */
  const heard = new Map();
  return {
    get: (name) => values[name],
    set(name, value) {
      if (values[name] === value) return;
      values[name] = value;
      for (const event of [`change:${name}`, "change"])
        heard.get(event)?.forEach((does) => does(value));
    },
    save_changes() {},
    on(event, does) {
      if (!heard.has(event)) heard.set(event, new Set());
      heard.get(event)?.add(does);
    },
    off(event, does) {
      if (event && does) heard.get(event)?.delete(does);
      else if (event) heard.delete(event);
      else heard.clear();
    },
  };
}

/**
 * Mount everything that the page holds, each beside the script that has its values.
 * @param {(host: any) => any} render the entry's
 */
export function mountEach(render) {
  for (const script of document.querySelectorAll('script[type="application/vnd.specviz+json"]')) {
    const values = JSON.parse(script.textContent ?? "{}");
    values.data = [
      ...(script.parentElement?.querySelectorAll('script[type="application/vnd.specviz.run"]') ??
        []),
    ].map((one) => one.textContent ?? "");
    const el = document.createElement("div");
    script.after(el);
    render({ model: shim(values), el });
  }
}
