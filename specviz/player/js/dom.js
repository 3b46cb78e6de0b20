// Small tools for the page's tree: built once, then written to only where something changed.

/** @typedef {import("./decode.js").Data} Data */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. Text goes in as text, never as markup.
 * @param {string} tag        "svg:rect" makes one of SVG
 * @param {Record<string, any>} [attributes]  `text` is its text; others are set as they are
 * @param {any[]} [children]
 * @returns {any}
 */
export function h(tag, attributes = {}, children = []) {
  const made = tag.startsWith("svg:")
    ? document.createElementNS(SVG, tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (value !== undefined && value !== null && value !== false)
      made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

const TEXT = Symbol("text"),
  LAST = Symbol("last");

/** @param {any} node @param {string} text */
export function setText(node, text) {
  if (node[TEXT] === text) return;
  node[TEXT] = text;
  node.textContent = text;
}

/** Set an attribute where it changed; null removes it. @param {any} node */
export function setAttr(node, name, value) {
  const last = (node[LAST] ??= {});
  if (last[name] === value) return;
  last[name] = value;
  if (value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** Set one property of its style where it changed. @param {any} node */
export function setStyle(node, name, value) {
  const last = (node[LAST] ??= {});
  const key = "style." + name;
  if (last[key] === value) return;
  last[key] = value;
  node.style.setProperty(name, value);
}

/** @param {any} node @param {boolean} shown */
export function show(node, shown) {
  setAttr(node, "hidden", shown ? null : true);
}

/** Move and stretch a bar that fills its track: `from` and `size` are shares of the track. */
export function setBar(node, from, size) {
  setStyle(
    node,
    "transform",
    `translateX(${(100 * from).toFixed(2)}%) scaleX(${Math.max(0, size).toFixed(4)})`,
  );
}

/** Show a part of a bar that fills its track; hatching keeps its shape, unlike under `setBar`. */
export function setClip(node, from, size) {
  const left = 100 * Math.min(1, from),
    right = 100 * Math.max(0, 1 - from - size);
  setStyle(node, "clip-path", `inset(0 ${right.toFixed(2)}% 0 ${left.toFixed(2)}%)`);
}

/**
 * As many elements as are needed, made when they are first needed, hidden when they are not.
 * @param {any} parent @param {() => any} make what has `el` in it
 * @returns {(count: number) => any[]}
 */
export function pool(parent, make) {
  /** @type {any[]} */
  const made = [];
  return (count) => {
    while (made.length < count) {
      const one = make();
      parent.append(one.el);
      made.push(one);
    }
    made.forEach((one, i) => show(one.el, i < count));
    return made;
  };
}

/** A token as written in lists: the blank before a word shown as nothing. @param {string} text */
export function trimmed(text) {
  return text.length > 1 ? text.replace(/^ /, "") : text;
}

/** The axis of a bar that is all of the probability: 0 to 1, whatever the other bars go to. */
export function wholeAxis() {
  const ends = [h("span", { text: "0" }), h("span", { text: "1, all of it" })];
  return h("div", { class: "svp-maxis", "aria-hidden": "true" }, ends);
}
