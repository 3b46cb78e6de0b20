// Where the keyboard goes: what has focus may hide, and a page may have only one player to mean.

/** What has focus inside an element, or null. @param {any} root */
export function focused(root) {
  const active = root.getRootNode().activeElement;
  return active && root.contains(active) ? active : null;
}

/** Whether an element can no longer have focus. @param {any} one */
export function lost(one) {
  return !one.isConnected || Boolean(one.disabled) || one.checkVisibility?.() === false;
}

/**
 * Do something that may hide or disable what has focus: then the root has it, and its keys go on.
 * @param {any} root @param {() => void} does
 */
export function keepingFocus(root, does) {
  const held = focused(root);
  does();
  if (held && held !== root && lost(held)) root.focus({ preventScroll: true });
}

/**
 * After a mouse or a finger moved a slider or chose from a list, the keys are the root's again;
 * who moved it with keys stays on it.
 * @param {any} root @param {AbortSignal} signal
 */
export function afterPointer(root, signal) {
  let one = /** @type {any} */ (null),
    pressed = false;
  const back = () => root.focus({ preventScroll: true });
  root.addEventListener(
    "pointerdown",
    (event) => {
      pressed = true;
      one = event.target.type === "range" ? event.target : null;
    },
    { signal },
  );
  window.addEventListener("keydown", () => (pressed = false), { signal, capture: true });
  root.addEventListener(
    "change",
    (event) => {
      if (pressed && event.target.tagName === "SELECT") back();
    },
    { signal },
  );
  for (const ends of ["pointerup", "pointercancel"])
    window.addEventListener(
      ends,
      () => {
        if (one) setTimeout(back); // after what the slider itself does at the end
        one = null;
      },
      { signal, capture: true },
    );
}

/**
 * Let keys pressed inside an element act, and nothing else hear of those. Buttons and lists keep
 * the keys they need themselves; `keeps` says which others do.
 * @param {any} root
 * @param {AbortSignal} signal
 * @param {(event: any) => any[] | null} command  what a key asks for: an act and what it takes
 * @param {(act: string, ...more: any[]) => void} act
 * @param {(event: any) => boolean} [keeps]
 */
export function listenToKeys(root, signal, command, act, keeps = () => false) {
  root.addEventListener(
    "keydown",
    (/** @type {any} */ event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const tag = event.target.tagName;
      const pressed = tag === "BUTTON" && (event.key === " " || event.key === "Enter");
      if (tag === "SELECT" || pressed || keeps(event)) return event.stopPropagation();
      const asked = command(event);
      if (!asked) return;
      event.preventDefault();
      event.stopPropagation();
      act(asked[0], ...asked.slice(1));
    },
    { signal },
  );
}

/**
 * On a page of one player, keys pressed where nothing has focus are meant for it. The page is
 * otherwise as ever: what the player has no use for goes on to the page.
 * @param {Document} page
 */
export function keysToTheOnly(page) {
  page.addEventListener("keydown", (event) => {
    if (event.target !== page.body && event.target !== page.documentElement) return;
    /** @type {NodeListOf<HTMLElement>} */
    const roots = page.querySelectorAll(".svp-player, .svp-race, .svp-editor, .svp-watch");
    if (roots.length !== 1 || event.defaultPrevented) return;
    const { key, code, shiftKey, ctrlKey, metaKey, altKey, repeat } = event;
    const same = {
      key,
      code,
      shiftKey,
      ctrlKey,
      metaKey,
      altKey,
      repeat,
      bubbles: true,
      cancelable: true,
    };
    if (roots[0].dispatchEvent(new KeyboardEvent("keydown", same))) return; // of no use to it
    event.preventDefault();
    if (!focused(roots[0])) roots[0].focus({ preventScroll: true });
  });
}
