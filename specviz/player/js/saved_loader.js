// Beside a widget, in its output: the player as a page of its own, for a notebook that is opened
// without a kernel. The widget, where it lives, puts its name among the living ones.

const WAIT = 1_500; // milliseconds in which a widget appears
const mine = document.getElementById("specviz-NAME");
const living = (globalThis.__specviz_living ??= new Set());

function look() {
  if (!mine) return;
  const alive = living.has("NAME");
  mine.hidden = alive;
  if (alive) return;
  for (const one of mine.querySelectorAll("img")) one.hidden = true;
  for (const one of mine.querySelectorAll("iframe")) one.hidden = false;
}

if (living.has("NAME")) look();
else setTimeout(look, WAIT);
addEventListener("specviz-living", look);
