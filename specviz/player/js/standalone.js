// The page's entry for players: mount what it holds.

import { keysToTheOnly } from "./focus.js";
import { render } from "./main.js";
import { mountEach } from "./shim.js";

export function mountAll() {
  mountEach(render);
  keysToTheOnly(document);
}
