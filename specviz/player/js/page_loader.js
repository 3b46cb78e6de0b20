// Unpack the page's script and run it as what it is: an inline module, known to the policy.

const holder = document.querySelector('script[type="application/vnd.specviz.code"]');
const packed = holder?.textContent ?? "";
const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(stream).text().then((source) => {
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = source;
  document.head.append(script);
});
