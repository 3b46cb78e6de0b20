"""Whether speculative decoding pays here: every way to decode with a pair, timed side by side.

    specviz bench --target org/target --draft org/draft --gamma 4

All ways decode the same prompts in turn, A B C A B C …, in one process, after a warm-up of each; a
gain is the median over turns of target-only time ÷ this way's time, per emitted token of the same
turn. On a CPU the time is this process's processor time, which other programs disturb least;
elsewhere it is the clock's. What the gain should be is computed from three measured numbers: c (a
draft pass ÷ a target pass), v(k) (a pass that verifies k tokens ÷ a pass of one) and alpha.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from specviz.api.generate import generate, stream
from specviz.core import checks
from specviz.core.atomic_writing import checked_target, write_whole
from specviz.core.contract import Draft, Drafter, Sampling
from specviz.decoding.hf.target import HFTarget, open_session
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.eagle import Eagle
from specviz.drafters.early_exit import EarlyExit
from specviz.drafters.medusa import Medusa
from specviz.drafters.parallel import Parallel
from specviz.drafters.prompt_lookup import PromptLookup
from specviz.drafters.target_only import TargetOnly
from specviz.drafters.tree import Tree
from specviz.models.quiet import quiet
from specviz.theory import best_gamma, break_even_alpha, speedup

PLAIN = "target only"
SPECULATIVE = "draft model"
UNTRACED = "draft model, not recorded"
THEIRS, ASSISTED = "transformers generate", "transformers assisted generation"
NOT_SPECULATIVE = (PLAIN, "target-only", THEIRS)
PROMPTS = ("Once upon a time", "Emma could not but")
PASSES = 15
"""How often each kind of pass is timed."""


@dataclass(frozen=True)
class Way:
    """One way to decode.

    Parameters
    ----------
    name : str
        What it is called.
    gain, low, high : float
        Target-only time ÷ this way's time: the median over turns, and the quartiles.
    wall_gain : float
        The same by the clock.
    milliseconds : float
        Per emitted token, the median.
    tokens_per_pass, alpha : float or None
        Of our own ways; alpha None where nothing was proposed.
    """

    name: str
    gain: float
    low: float
    high: float
    wall_gain: float
    milliseconds: float
    tokens_per_pass: float | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class Bench:
    """What :func:`measure` found; print it, :meth:`save` it or :meth:`plot` it.

    Parameters
    ----------
    settings, machine : dict
        What was measured, and what else the machine was doing.
    ways : list of Way
        Target-only decoding first.
    c : float or None
        Time of a draft pass of one token ÷ a target pass of one; None without a draft model.
    v : dict
        Number of tokens → time of a target pass over them ÷ a pass of one.
    alpha : float or None
        Chance that a proposal of the draft model is kept.
    predicted : dict
        gamma → gain computed from c, v and alpha.
    left_out : dict
        Way → why it was not measured.
    """

    settings: dict[str, Any]
    machine: dict[str, Any]
    ways: list[Way]
    c: float | None
    v: dict[int, float]
    alpha: float | None
    predicted: dict[int, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Way:
        """Return a way by its name."""
        return next(way for way in self.ways if way.name == name)

    @property
    def sentence(self) -> str:
        """Whether it pays here, and why."""
        gamma = self.settings["gamma"]
        if self.c is None or self.alpha is None:
            others = [way for way in self.ways if way.name not in NOT_SPECULATIVE]
            best = max(others, key=lambda way: way.gain, default=None)
            if best is None:
                return "There is nothing to compare with target-only decoding."
            word = "pays" if best.gain > 1 else "does not pay"
            return f"Speculative decoding {word} here: {best.name} gains {best.gain:.2f}×."
        measured, verify = self[SPECULATIVE].gain, self.v[gamma + 1]
        word = "pays" if measured > 1 else "does not pay"
        least = break_even_alpha(gamma, self.c, verify)
        even = (
            "no alpha would break even" if np.isnan(least) else f"break-even alpha is {least:.2f}"
        )
        return (
            f"Speculative decoding {word} here, {measured:.2f}× (predicted "
            f"{self.predicted[gamma]:.2f}×), because c = {self.c:.2f}, v({gamma + 1}) = "
            f"{verify:.2f}, alpha = {self.alpha:.2f}; {even}."
        )

    @property
    def best_gamma(self) -> int | None:
        """The gamma with the largest predicted gain; 0 if none gains."""
        if not self.predicted:
            return None
        best = max(self.predicted, key=lambda gamma: self.predicted[gamma])
        return best if self.predicted[best] > 1 else 0

    def __str__(self) -> str:
        lines = [f"{'':34} {'gain':>7} {'quartiles':>13} {'clock':>7} {'ms/token':>9} {'/pass':>6}"]
        for way in self.ways:
            passes = "" if way.tokens_per_pass is None else f"{way.tokens_per_pass:6.2f}"
            lines.append(
                f"{way.name:34} {way.gain:6.2f}× {way.low:5.2f} … {way.high:5.2f} "
                f"{way.wall_gain:6.2f}× {way.milliseconds:9.2f} {passes:>6}"
            )
        lines += [f"{name}: not measured, {why}" for name, why in self.left_out.items()]
        if self.predicted:
            gains = ", ".join(f"{gamma}: {gain:.2f}×" for gamma, gain in self.predicted.items())
            lines.append(f"predicted gain by gamma: {gains}; best gamma: {self.best_gamma}")
        lines += [_busy(self.machine), self.sentence]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "best_gamma": self.best_gamma, "sentence": self.sentence}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all."""
        write_whole(checked_target(path), json.dumps(self.to_dict(), indent=1) + "\n")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the gains as bars with their quartiles; the file's ending says in which format."""
        from matplotlib import pyplot

        from specviz.figures import methods, save

        checked_target(path, (".svg", ".png", ".pdf"))
        with pyplot.ioff():
            drawn = methods(self)
        save(drawn, path)
        pyplot.close(drawn)


def measure(
    pair: Any,
    *,
    gamma: int = 4,
    drafters: Mapping[str, Drafter] | None = None,
    prompts: Sequence[Any] | None = None,
    tokens: int = 120,
    turns: int = 3,
    temperature: float = 1.0,
    seed: int = 0,
    progress: bool = True,
) -> Bench:
    """Time every way to decode with a pair, and say whether speculation pays.

    Parameters
    ----------
    pair : Pair
        Any target, with or without a draft.
    gamma : int
        Proposals a round, the same for our loop and for transformers' assisted generation.
    drafters : mapping, optional
        Name → drafter, measured beside the draft model; by default every kind that the pair can do.
    prompts : sequence, optional
        Each is decoded by every way in every turn; by default a story and a line of prose (token
        ids where there is no tokenizer).
    tokens, temperature, seed
        As in :func:`specviz.generate` (``max_new_tokens``).
    turns : int
        How often each way decodes all prompts.
    progress : bool
        Show a bar.

    Returns
    -------
    Bench

    Raises
    ------
    ValueError
        If a setting is out of range, or there is nothing to measure.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> target = TabularModel.random(6, 1, seed=0)
    >>> found = measure(TabularPair(target, target), turns=1, tokens=30, progress=False)
    >>> found[SPECULATIVE].tokens_per_pass
    5.0
    """
    for name, value in (("gamma", gamma), ("tokens", tokens), ("turns", turns)):
        checks.whole(name, value, 1)
    if prompts is None:
        prompts = PROMPTS if getattr(pair, "tokenizer", None) is not None else ([0],)
    if not prompts:
        raise ValueError("prompts must hold at least one prompt, got none")
    Sampling(temperature)  # refuses what no way could decode with
    checks.seed(seed)
    settings: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_new_tokens": tokens}
    left_out: dict[str, str] = {}
    ours = _our_ways(pair, gamma, drafters, prompts[0], settings, left_out)
    theirs = _their_ways(pair, gamma, settings, left_out)
    runs: dict[str, Callable[[Any], tuple[int, Any]]] = {PLAIN: ours.pop(PLAIN), **theirs, **ours}
    busy_before, started, started_cpu = _load(), perf_counter(), process_time()
    c, v = pass_costs(pair, pair.encode(prompts[0]), gamma)
    wall: dict[str, list[float]] = {name: [] for name in runs}
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    traces: dict[str, list[Any]] = {name: [] for name in runs}
    for run in runs.values():
        run(prompts[0])
    for _ in tqdm(range(turns), desc="turns", leave=False, disable=not progress):
        for name, run in runs.items():
            begun, begun_cpu, emitted = perf_counter(), process_time(), 0
            for prompt in prompts:
                count, trace = run(prompt)
                emitted += count
                if trace is not None:
                    traces[name].append(trace)
            wall[name].append((perf_counter() - begun) / emitted)
            cpu[name].append((process_time() - begun_cpu) / emitted)
    by_processor = str(getattr(pair.target, "device", "cpu")) == "cpu"
    times = cpu if by_processor else wall
    ways = [_way(name, times, wall, traces[name]) for name in runs]
    alpha = next((way.alpha for way in ways if way.name == SPECULATIVE), None)
    predicted = {} if c is None or alpha is None else {
        g: float(speedup(alpha, g, c, _between(v, g + 1))) for g in range(1, max(v))
    }  # fmt: skip
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load_before": busy_before,
        "load_after": _load(),
        "share_of_a_core": (process_time() - started_cpu) / (perf_counter() - started),
        "clock": "processor time" if by_processor else "wall clock",
        "torch": torch.__version__,
    }
    said = {
        "gamma": gamma, "turns": turns, "prompts": len(prompts), **settings,
        "target": str(pair.target), "draft": None if pair.draft is None else str(pair.draft),
    }  # fmt: skip
    return Bench(said, machine, ways, c, v, alpha, predicted, left_out)


def pass_costs(
    pair: Any, prompt: Any, gamma: int, passes: int = PASSES
) -> tuple[float | None, dict[int, float]]:
    """Return c and v(k): passes of draft and target, timed in turn after the same text.

    ``c`` is None without a draft model. ``v`` holds 1 and some numbers of tokens up to twice
    ``gamma``, always ``gamma + 1``.
    """
    clock = process_time if str(getattr(pair.target, "device", "cpu")) == "cpu" else perf_counter
    text = np.asarray(prompt, dtype=np.int64)
    target = open_session(pair.target, pair.vocab_size)
    draft = None if pair.draft is None else open_session(pair.draft, pair.vocab_size)
    sessions = [target] if draft is None else [target, draft]
    limit = min(session.context_length or 2**31 for session in sessions) - len(text)
    sizes = [k for k in sorted({1, 2, 3, 5, gamma + 1, 2 * gamma + 1}) if k <= limit]
    none = Draft.empty(pair.vocab_size)
    for session in sessions:
        session.begin()
        session.verify(text, none)
    seconds: dict[int, list[float]] = {0: [], **{k: [] for k in sizes}}  # 0: a draft pass
    for _ in range(passes):
        for k in sizes:
            proposals = Draft.chain([int(text[-1])] * (k - 1), None, pair.vocab_size)
            begun = clock()
            target.verify(text[-1:], proposals)
            seconds[k].append(clock() - begun)
            target.crop(len(text))
        if draft is not None:  # a round's worth: the first finds nothing in the caches
            begun = clock()
            for _ in range(min(gamma, limit)):
                draft.verify(text[-1:], none)
            seconds[0].append((clock() - begun) / min(gamma, limit))
            draft.crop(len(text))
    middle = {k: median(times) for k, times in seconds.items() if times}
    one = max(middle[1], 1e-9)
    return (middle[0] / one if draft is not None else None), {k: middle[k] / one for k in sizes}


def _between(v: Mapping[int, float], size: int) -> float:
    """Return v at a number of tokens that may lie between those measured."""
    known = sorted(v)
    return float(np.interp(size, known, [v[k] for k in known]))


def _our_ways(
    pair: Any, gamma: int, drafters: Mapping[str, Drafter] | None, prompt: Any,
    settings: dict[str, Any], left_out: dict[str, str],
) -> dict[str, Callable[[Any], tuple[int, Any]]]:  # fmt: skip
    """Return our ways that the pair can do: prompt → (tokens emitted, trace)."""
    network = getattr(getattr(pair.target, "model", None), "model", None)
    depth = len(getattr(network, "layers", ()))
    other: dict[str, Drafter] = {
        "prompt lookup": PromptLookup(gamma), "tree (2, 2, 1, 1)": Tree((2, 2, 1, 1)),
        "medusa": Medusa(), "eagle": Eagle(gamma=gamma), "parallel": Parallel(gamma),
    }  # fmt: skip
    if depth > 1:
        other["early exit"] = EarlyExit(max(1, depth // 4), gamma)
    chosen = other if drafters is None else dict(drafters)
    everything: dict[str, tuple[Drafter, str | None]] = {
        PLAIN: (TargetOnly(), None), SPECULATIVE: (DraftModel(gamma), None)
    }  # fmt: skip
    everything |= {name: (drafter, None) for name, drafter in chosen.items()}
    if drafters is None and settings["temperature"] > 0:
        for named in ("block", "match"):
            everything[f"draft model, {named}"] = (DraftModel(gamma), named)
    ways: dict[str, Callable[[Any], tuple[int, Any]]] = {}
    for name, (drafter, rule) in everything.items():
        try:
            stream(pair, prompt, drafter=drafter, verify=rule, **settings).close()
        except ValueError as error:
            if drafters is not None and name in drafters:
                raise
            left_out[name] = str(error)
            continue

        def run(text: Any, drafter: Any = drafter, rule: Any = rule) -> tuple[int, Any]:
            trace = generate(pair, text, drafter=drafter, verify=rule, progress=False, **settings)
            return len(trace.tokens), trace

        ways[name] = run
    if SPECULATIVE in ways:

        def untraced(text: Any) -> tuple[int, None]:
            running = stream(pair, text, drafter=DraftModel(gamma), **settings)
            return sum(len(result.emitted) for result in running.unrecorded()), None

        ways[UNTRACED] = untraced
    return ways


def _their_ways(
    pair: Any, gamma: int, settings: dict[str, Any], left_out: dict[str, str]
) -> dict[str, Callable[[Any], tuple[int, None]]]:
    """Return transformers' own ways, where they decode the same thing."""
    if not isinstance(open_session(pair.target, pair.vocab_size), HFTarget):
        left_out[THEIRS] = "the target is a table"
        return {}
    model = pair.target.model
    draft: Any = getattr(pair.draft, "model", None)

    def run(text: Any, **more: Any) -> tuple[int, None]:
        ids = torch.as_tensor(pair.encode(text), device=model.device)[None]
        torch.manual_seed(settings["seed"])
        how: dict[str, Any] = {"do_sample": False}
        if settings["temperature"] > 0:
            warm = settings["temperature"]
            how = {"do_sample": True, "temperature": warm, "top_k": 0, "top_p": 1.0}
        with quiet(progress=False):
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=settings["max_new_tokens"],
                pad_token_id=0, eos_token_id=sorted(pair.stop_ids) or None, **how, **more,
            )  # fmt: skip
        return out.shape[1] - ids.shape[1], None

    ways: dict[str, Callable[[Any], tuple[int, None]]] = {THEIRS: run}
    why = ""
    if draft is None:
        why = "there is no draft model"
    elif pair.draft.vocab_size != pair.vocab_size:
        why = (
            "target and draft have vocabularies of different sizes, which it treats in another way"
        )
    elif (draft.device, draft.dtype) != (model.device, model.dtype):
        why = "target and draft differ in device or precision, which it would change"
    if why:
        left_out[ASSISTED] = why
        return ways

    def assisted(text: Any) -> tuple[int, None]:
        config = draft.generation_config
        before = {name: getattr(config, name, None) for name in STEADY}
        for name, value in {**STEADY, "num_assistant_tokens": gamma}.items():
            setattr(config, name, value)
        try:
            return run(text, assistant_model=draft)
        finally:
            for name, value in before.items():
                setattr(config, name, value)

    ways[ASSISTED] = assisted
    return ways


STEADY = {
    "num_assistant_tokens": 0,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}
"""transformers' assisted generation without its heuristics: the same gamma in every round."""


def _way(
    name: str, times: Mapping[str, list[float]], wall: Mapping[str, list[float]], traces: list[Any]
) -> Way:
    gains = [a / b for a, b in zip(times[PLAIN], times[name], strict=True)]
    quarter = quantiles(gains, n=4) if len(gains) > 1 else [gains[0]] * 3
    clock = median(a / b for a, b in zip(wall[PLAIN], wall[name], strict=True))
    found = [trace.measures() for trace in traces]
    return Way(
        name, median(gains), quarter[0], quarter[2], clock, 1000 * median(times[name]),
        _mean(one["tokens_per_pass"].value for one in found),
        _mean(one["alpha"].value for one in found),
    )  # fmt: skip


def _mean(values: Iterable[Any]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _load() -> float | None:
    """Return how many programs wanted a core in the last minute, where the system tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _busy(machine: Mapping[str, Any]) -> str:
    load, cores = machine["load_before"], machine["cores"]
    wanted = "" if load is None else f"; {load:.1f} programs wanted its {cores} cores at the start"
    return (
        f"{machine['clock']}, {machine['threads']} threads{wanted}; this process had "
        f"{machine['share_of_a_core']:.0%} of a core"
    )


__all__ = ["PLAIN", "SPECULATIVE", "Bench", "Way", "best_gamma", "measure", "pass_costs"]
