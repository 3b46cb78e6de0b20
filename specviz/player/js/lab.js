// The entry of what is tried out rather than played: the editor, and samples watched as they come.

import { editorOf } from "./editor.js";
import { renderer } from "./mounting.js";
import { watchOf } from "./watch.js";

export const render = renderer({ editor: editorOf, watch: watchOf });

export default { render };
