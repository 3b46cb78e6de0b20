// What a widget is made of in the notebook: unpack the player once per page, then hand over.

const unpacked = (globalThis.__specviz_code ??= new Map());

async function unpack(model) {
  const digest = model.get("digest");
  if (!unpacked.has(digest)) {
    const view = model.get("code");
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const source = await new Response(stream).text();
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    unpacked.set(digest, import(url).finally(() => URL.revokeObjectURL(url)));
  }
  return (await unpacked.get(digest)).default;
}

async function render(host) {
  const { render } = await unpack(host.model);
  return render(host);
}

export default { render };
