// The page's entry for the editor and for samples watched as they come.

import { keysToTheOnly } from "./focus.js";
import { render } from "./lab.js";
import { mountEach } from "./shim.js";

export function mountAll() {
  mountEach(render);
  keysToTheOnly(document);
}
