// The clock: it counts steps while it runs, stops off-screen, and never talks to a kernel.

export const SPEEDS = [0.5, 1, 2, 4, 8, 16, 30];

/**
 * @param {object} player
 * @param {() => number} player.speed       steps a second
 * @param {(steps: number) => boolean} player.advance  go on; false when there is nothing more
 * @param {() => boolean} player.waits      whether to hold, as for an answer
 * @param {(playing: boolean) => void} player.changed
 */
export function playback({ speed, advance, waits, changed }) {
  let playing = false,
    visible = true,
    frame = 0,
    last = 0,
    due = 0;

  const tick = (/** @type {number} */ now) => {
    frame = 0;
    if (!playing || !visible) return;
    // a long pause of the browser is not made up for
    due += (Math.min(now - last, 250) / 1000) * speed();
    last = now;
    if (waits()) due = 0;
    const steps = Math.floor(due);
    if (steps > 0) {
      due -= steps;
      if (!advance(steps)) return stop();
    }
    frame = requestAnimationFrame(tick);
  };
  const wake = () => {
    if (frame || !playing || !visible) return;
    last = performance.now();
    frame = requestAnimationFrame(tick);
  };
  const start = () => {
    if (playing) return;
    playing = true;
    due = 0.5; // the first step comes soon
    changed(true);
    wake();
  };
  const stop = () => {
    if (frame) cancelAnimationFrame(frame);
    frame = 0;
    if (!playing) return;
    playing = false;
    changed(false);
  };
  return {
    start,
    stop,
    toggle: () => (playing ? stop() : start()),
    /** @param {boolean} on */
    seen(on) {
      visible = on;
      wake();
    },
    /** Wait for a moment before the next step. @param {number} seconds */
    hold(seconds) {
      due = -seconds * speed();
    },
    get playing() {
      return playing;
    },
  };
}
