// As much of a document as the views use, so that drawing is tested without a browser.

class Style {
  setProperty(name, value) {
    this[name] = value;
  }
}

class Node {
  constructor(tag, text = "") {
    ((this.tag = tag), (this.childNodes = []), (this.attributes = {}), (this.style = new Style()));
    ((this.listeners = {}),
      (this.dataset = {}),
      (this.parentNode = null),
      (this.data = text),
      (this.writes = 0));
    this.classList = {
      add: (name) => (this.attributes.class = `${this.attributes.class ?? ""} ${name}`.trim()),
      contains: (name) => (this.attributes.class ?? "").split(" ").includes(name),
    };
  }
  set innerHTML(_) {
    throw new Error("no markup from text");
  }
  setAttribute(name, value) {
    this.writes++;
    this.attributes[name] = value;
    if (name.startsWith("data-")) this.dataset[name.slice(5)] = value;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  get hidden() {
    return "hidden" in this.attributes;
  }
  append(...children) {
    for (const child of children) {
      const node = typeof child === "string" ? new Node("#text", child) : child;
      node.remove();
      node.parentNode = this;
      this.childNodes.push(node);
    }
  }
  prepend(...children) {
    this.append(...children);
  }
  replaceChildren(...children) {
    this.childNodes = [];
    this.append(...children);
  }
  remove() {
    if (this.parentNode)
      this.parentNode.childNodes = this.parentNode.childNodes.filter((one) => one !== this);
    this.parentNode = null;
  }
  get options() {
    return this.childNodes;
  }
  get selectedOptions() {
    return this.childNodes.filter((one) => one.value === this.value);
  }
  get firstChild() {
    return this.childNodes[0];
  }
  get lastChild() {
    return this.childNodes[this.childNodes.length - 1];
  }
  set textContent(text) {
    this.writes++;
    this.childNodes = text === "" ? [] : [new Node("#text", text)];
  }
  get textContent() {
    return this.tag === "#text"
      ? this.data
      : this.childNodes.map((one) => one.textContent).join("");
  }
  addEventListener(name, does) {
    this.listeners[name] = does;
  }
}

/** Put a document in place. */
export function install() {
  globalThis.document = {
    createElement: (tag) => new Node(tag),
    createElementNS: (_, tag) => new Node(tag),
    createTextNode: (text) => new Node("#text", text),
  };
}

/** Every element below one, itself first, that is shown and passes a test. */
export function all(node, passes = () => true) {
  if (node.hidden || node.style.visibility === "hidden") return [];
  return [...(passes(node) ? [node] : []), ...node.childNodes.flatMap((one) => all(one, passes))];
}

/** All elements of a class that are shown. */
export const ofClass = (node, name) => all(node, (one) => one.classList.contains(name));
