// The page's entry for players: mount what it holds.

import { render } from "./main.js";
import { mountEach } from "./shim.js";

export const mountAll = () => mountEach(render);
