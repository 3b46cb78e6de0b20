// The entry of what is tried out rather than played: the editor, and samples watched as they come.

import { editorOf } from "./editor.js";
import { renderer } from "./mounting.js";

export const render = renderer({ editor: editorOf });

export default { render };
