// The entry: anywidget and the page both call render({ model, el }).

import { renderer } from "./mounting.js";
import { liveOf } from "./live.js";
import { playerOf } from "./player.js";
import { raceOf } from "./race.js";

/**
 * What a model's `kind` mounts.
 * @type {Record<string, (model: any, el: any) => Promise<() => void>>}
 */
export const MOUNTS = { live: liveOf, player: playerOf, race: raceOf };

export const render = renderer(MOUNTS);

export default { render };
