// The page's entry for the editor and for samples watched as they come.

import { render } from "./lab.js";
import { mountEach } from "./shim.js";

export const mountAll = () => mountEach(render);
