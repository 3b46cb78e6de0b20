// What a widget is made of in the notebook: unpack the player once per page, then hand over.
//
// The script lies in one model for all widgets of a kernel; `script` names it. Where models cannot
// be looked up, or that one is gone, the kernel is asked to send it.

const unpacked = (globalThis.__specviz_code ??= new Map());
const PATIENCE = 10_000;

async function lookedUp(model) {
  const id = String(model.get("script") ?? "").replace(/^IPY_MODEL_/, "");
  const found = model.widget_manager?.get_model?.(id);
  const held = await Promise.race([found, new Promise((done) => setTimeout(done, PATIENCE))]);
  return held?.get("digest") === model.get("digest") ? held.get("code") : null;
}

function asked(model) {
  return new Promise((resolve, reject) => {
    const end = (does, value) => {
      clearTimeout(late);
      model.off("msg:custom", hear);
      does(value);
    };
    const hear = (content, buffers) => {
      if (content?.script === model.get("digest") && buffers?.length) end(resolve, buffers[0]);
    };
    const late = setTimeout(
      () => end(reject, new Error("the player's script did not come: run the cell again")),
      PATIENCE,
    );
    model.on("msg:custom", hear);
    model.send({ ask: "script" });
  });
}

async function imported(model) {
  const view = (await lookedUp(model).catch(() => null)) ?? (await asked(model));
  const bytes = new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const source = await new Response(stream).text();
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}

/** Tell the page beside this widget, if there is one (saved_loader.js), that it is not needed. */
function announce(name) {
  if (!name) return;
  (globalThis.__specviz_living ??= new Set()).add(name);
  dispatchEvent(new Event("specviz-living"));
}

async function render(host) {
  const digest = host.model.get("digest");
  if (!unpacked.has(digest)) unpacked.set(digest, imported(host.model));
  try {
    const { default: player } = await unpacked.get(digest);
    const clean = await player.render(host);
    announce(host.model.get("name"));
    return clean;
  } catch (error) {
    unpacked.delete(digest);
    const said = document.createElement("p");
    said.setAttribute("role", "alert");
    said.textContent = `specviz: ${error instanceof Error ? error.message : error}`;
    host.el.append(said);
  }
}

export default { render };
