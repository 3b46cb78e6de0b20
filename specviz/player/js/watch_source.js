// Where the samples come from: Python through the widget's model, or the browser's own draws.

import { FAULTS_AT_ONE, settingOf } from "./faults_at_one.js";
import { drawOne, enumeratePosition } from "./one_position.js";
import { watchedRun } from "./watch_run.js";

/** @typedef {{ state: any, ask: (what: string, value?: any) => void, stop: () => void }} Source */

/** Samples that Python draws. @param {any} model @param {() => void} changed @returns {Source} */
export function fromModel(model, changed) {
  model.on("change:state", changed);
  return {
    get state() {
      return model.get("state");
    },
    ask: (what, value = null) => model.send({ do: what, value }),
    stop: () => model.off("change:state", changed),
  };
}

const TICK = 100,
  LATEST = 0.25; // milliseconds; a longer pause of the browser is not made up for
const KEPT = 200; // finished runs that are remembered

/**
 * Samples of one position drawn here.
 * @param {any} options
 * @param {() => void} changed
 * @returns {Source}
 */
export function fromHere(options, changed) {
  /** @type {any} */
  let timer = 0,
    run = watchedRun(options),
    last = 0,
    due = 0;
  const state = {
    run: 0,
    sampler: options.sampler,
    rate: options.rate,
    running: false,
    ended: false,
    error: "",
    tally: /** @type {any[]} */ ([]),
    ...seen(run),
  };

  function tick() {
    const now = performance.now();
    due += Math.min((now - last) / 1000, LATEST) * state.rate;
    last = now;
    draw(Math.floor(due));
    due -= Math.floor(due);
  }
  /** Draw some and look. @param {number} n */
  function draw(n) {
    const setting = settingOf("one", state.sampler),
      take = Math.min(n, options.limit - run.n);
    for (let i = 0; i < take; i++)
      run.take(
        drawOne(options.p, options.q, setting, options.seed, state.run * options.limit + run.n)
          .token,
      );
    Object.assign(state, seen(run), { ended: run.n >= options.limit });
    if (state.ended) halt();
    changed();
  }
  function halt() {
    clearInterval(timer);
    timer = 0;
    state.running = false;
  }
  const acts = {
    start() {
      if (state.ended) acts.reset();
      if (timer) return;
      state.running = true;
      ((last = performance.now()), (due = 0));
      timer = setInterval(tick, TICK);
    },
    pause: halt,
    reset() {
      const drawn = state.n > 0;
      if (drawn)
        state.tally = [
          ...state.tally,
          [state.sampler, state.n, state.p_alarm, state.e_alarm],
        ].slice(-KEPT);
      run = watchedRun(options);
      Object.assign(state, seen(run), { run: state.run + Number(drawn), ended: false });
    },
    sampler(name) {
      acts.reset();
      state.sampler = name;
    },
    rate: (rate) => (state.rate = Number(rate)),
    draw,
  };
  return {
    get state() {
      return state;
    },
    ask(what, value) {
      acts[what](value);
      changed();
    },
    stop: halt,
  };
}

/** What can draw here: the right decoder, and every fault that shows with these distributions. */
export function samplersHere({ p, q, sampler }) {
  const right = {
    name: "",
    label: "the right decoder",
    wrong: "",
    distribution: p,
    tv: 0,
    right: true,
  };
  const faults = FAULTS_AT_ONE.map(({ name, wrong }) => {
    const { distribution, tv } = enumeratePosition(p, q, settingOf("one", name));
    return {
      name,
      label: `fault: ${name.replaceAll("_", " ")}`,
      wrong,
      distribution,
      tv,
      right: false,
    };
  });
  return [right, ...faults.filter((one) => one.tv > 1e-9 || one.name === sampler)];
}

/** What a run tells of itself. */
function seen({ n, counts, e, p, p_now, p_alarm, e_alarm, log_e }) {
  return { n, counts: [...counts], e, p, p_now, p_alarm, e_alarm, log_e };
}
