"""Do a run's settings agree with what was recorded? The part of ``trace.check()`` about the run.

A setting can be shown wrong where the record contradicts it (temperature 0 beside a distribution of
two tokens); it can not be shown right (temperature .7 instead of .8 gives no impossible number).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray, Sampling
from specviz.core.rules import RULES, Rule
from specviz.core.trace.consistency import EXACT, Answer, vocab_size_of
from specviz.core.trace.measures import depths

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

NEEDED = (
    "rule", "rule_settings", "lossless", "drafter", "sampling", "seed", "sequence",
    "max_new_tokens", "stop", "target", "draft", "vocab_size", "stop_ids", "versions",
    "interrupted", "finish_reason",
)  # fmt: skip
"""What a complete record says of its run; without one of them less can be checked."""

LOSSY_DRAFTERS = frozenset({"kv_projection"})
"""Drafters by name whose text does not have the target's distribution, whatever the rule."""

Result = tuple[str, Answer, str]


def contradicted_settings(trace: Trace, rule: Rule) -> Iterator[Result]:
    """Yield (subject, answer, detail) for each setting that the record can contradict."""
    meta = trace.meta
    missing = [name for name in NEEDED if name not in meta]
    shaping = [field.name for field in fields(Sampling)]
    missing += [name for name in shaping if name not in meta.get("sampling", shaping)]
    yield "settings", None if missing else True, f"not recorded: {', '.join(missing)}"
    yield from _about_rule(meta, rule)
    yield from _about_drafter(trace, meta.get("drafter"), rule)
    yield from _about_models(trace)
    if "sampling" in meta:
        yield from _about_sampling(trace, meta["sampling"], rule)
    yield from _about_length(trace)
    yield from _about_the_end(trace)


# -- rule, drafter, models ------------------------------------------------------------------------


def drafters_in(drafter: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a drafter's settings, and those of the drafters it holds."""
    if isinstance(drafter, dict):
        yield drafter
        for one in drafter.get("drafters", []):
            yield from drafters_in(one)


def is_lossless(meta: Mapping[str, Any]) -> bool | None:
    """Return whether the text has the target's distribution, by the rule and drafter on record.

    False if the trace itself says so; None if this version does not know the rule.
    """
    rule = RULES.get(str(meta.get("rule")))
    names = {drafter.get("name") for drafter in drafters_in(meta.get("drafter"))}
    if meta.get("lossless") is False or names & LOSSY_DRAFTERS or (rule and not rule.lossless):
        return False
    return None if rule is None else True


def _about_rule(meta: Mapping[str, Any], rule: Rule) -> Iterator[Result]:
    if "lossless" in meta:
        yield "lossless", meta["lossless"] is is_lossless(meta), "the rule or the drafter is lossy"
    if rule.name == "greedy" and "sampling" in meta:
        temperature = meta["sampling"].get("temperature", 1.0)
        yield "rule", temperature == 0, f"greedy is for temperature 0, not {temperature:g}"


def _about_drafter(trace: Trace, drafter: Mapping[str, Any] | None, rule: Rule) -> Iterator[Result]:
    if drafter is None:
        return
    how = trace.node_table["q_draw"]
    if drafter["name"] == "target_only":
        yield "drafter", len(how) == 0, "target_only proposes nothing"
        return
    noisy = any(one.get("noise") == "target" for one in drafters_in(drafter))
    yield "drafter", noisy == rule.shares_noise, f"{drafter['name']} beside {rule.name!r}"
    if drafter["name"] == "prompt_lookup":
        yield "drafter", not how.any(), "prompt_lookup draws nothing"
    gamma = drafter.get("gamma")
    if isinstance(gamma, int) and not isinstance(gamma, bool) and drafter.get("tree") is None:
        depth, _ = depths(trace.node_table["parent"], trace.round_table["nodes"])  # (nodes,)
        longest = int(depth.max(initial=-1)) + 1
        yield "gamma", longest <= gamma, f"{longest} tokens were drafted in a row, not {gamma}"


def _about_models(trace: Trace) -> Iterator[Result]:
    size, target = trace.meta.get("vocab_size"), trace.meta.get("target", {})
    widths = {"full distributions": trace.full_vocab or None, "target": target.get("vocab_size")}
    for whose, width in widths.items():
        if size is not None and width is not None:
            yield "vocab_size", size == width, f"{size}, but the {whose} has {width} tokens"


# -- sampling -------------------------------------------------------------------------------------


def _about_sampling(trace: Trace, sampling: Mapping[str, Any], rule: Rule) -> Iterator[Result]:
    """Compare the sampling settings with every recorded p of the target itself."""
    p, tail, of_round = target_rows(trace)
    support = (p > 0).sum(axis=1) + (tail > EXACT)  # (m,) at least this many tokens
    largest = p.max(axis=1, initial=0.0)
    temperature, top_k = sampling.get("temperature", 1.0), sampling.get("top_k", 0)
    top_p, min_p = sampling.get("top_p", 1.0), sampling.get("min_p", 0.0)
    if temperature == 0:
        # the other settings play no part: all mass is on one token
        yield _impossible("temperature", 0, largest < 1 - EXACT, of_round)
        return
    if top_k:
        yield _impossible("top_k", top_k, support > top_k, of_round)
    # the least likely token on record; those in the tail are no more likely than all of the tail
    least = np.where(p > 0, p, np.inf).min(axis=1, initial=np.inf)
    least = np.where(tail > EXACT, np.minimum(least, tail), least)
    if min_p:
        yield _impossible("min_p", min_p, least < min_p * largest * (1 - EXACT), of_round)
    size = top_k or vocab_size_of(trace)
    if top_p < 1 and size and not min_p:
        # top_p keeps the smallest set that reaches it. Let M be the mass kept: without its least
        # likely token the set falls short, M (1 - least) < top_p; and what was dropped is no more
        # likely than that token, 1 - M <= (size - support) M least. So M has a range, maybe empty.
        dropped = np.maximum(0, size - support)
        wrong = (1 - least) >= top_p * (1 + dropped * least) + EXACT
        yield _impossible("top_p", top_p, wrong & (support > 1), of_round)


def _impossible(name: str, value: Any, wrong: NDArray[np.bool_], of_round: IntArray) -> Result:
    rounds = np.unique(of_round[wrong]).tolist()
    few = ", ".join(map(str, rounds[:5])) + (" …" if len(rounds) > 5 else "")
    return name, not rounds, f"{name} = {value:g} does not allow the p of round {few}"


def target_rows(trace: Trace) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the target's own distributions on record: listed p, the tail, and the round of each.

    Those are the p of first siblings and of bonus and plain tokens; later siblings and corrections
    are residuals (or p again).
    """
    nodes, rounds = trace.node_table, trace.round_table
    of_round = np.repeat(np.arange(len(trace)), rounds["nodes"])  # (nodes,)
    place = of_round * (len(nodes) + 1) + nodes["parent"]
    first = np.zeros(len(nodes), dtype=bool)
    first[np.unique(place, return_index=True)[1]] = True
    own = rounds["closing_kind"] != 1
    if trace.full_vocab:
        p = np.concatenate([nodes["full_p"][first], rounds["full_closing"][own]])
        return p, np.zeros(len(p)), np.concatenate([of_round[first], np.flatnonzero(own)])
    above, below = nodes["tail_p_above"][first], nodes["tail_p_below"][first]
    closing = np.nan_to_num(rounds["closing_top"][own])  # (m, k)
    p = np.zeros((first.sum() + own.sum(), 2 * trace.k + 1))
    p[: first.sum()] = np.nan_to_num(nodes["top_p"][first])
    p[first.sum() :, : trace.k] = closing
    tail = np.concatenate([above + below, np.maximum(0.0, 1 - closing.sum(axis=1))])
    return p, tail, np.concatenate([of_round[first], np.flatnonzero(own)])


# -- where the text ends --------------------------------------------------------------------------


def _about_length(trace: Trace) -> Iterator[Result]:
    n, meta = len(trace.tokens), trace.meta
    if "max_new_tokens" in meta:
        most = meta["max_new_tokens"]
        yield "max_new_tokens", n <= most, f"{n} tokens were emitted, at most {most} were asked for"
    context = meta.get("target", {}).get("context_length")
    if context is not None:
        whole = len(trace.prompt) + n
        yield (
            "context_length",
            whole <= context,
            f"the text has {whole} tokens, the context holds {context}",
        )


def _about_the_end(trace: Trace) -> Iterator[Result]:
    """Nothing goes on after an end; the reason given for the end is the reason."""
    meta, tokens, pieces = trace.meta, trace.tokens, trace.pieces
    ends = np.isin(tokens, meta.get("stop_ids", []))  # (n,)
    if "stop_ids" in meta:
        yield "stop_ids", not ends[:-1].any(), "the text goes on after an end token"
    stopped = _first_stop(pieces, meta.get("stop", []))
    if pieces and "stop" in meta:
        good = stopped is None or stopped == len(tokens) - 1
        yield "stop", good, "the text goes on after a stop string"
    reason = trace.finish_reason
    cut = bool(len(trace)) and int(trace.round_table["closing_emitted"][-1]) == 0
    by_token, by_string = bool(ends[-1:].any()), stopped is not None
    if cut and "stop_ids" in meta and (pieces or not meta.get("stop")):
        yield (
            "last round",
            by_token or by_string,
            "its tokens were cut short, but nothing ends the text there",
        )
    if "interrupted" in meta and reason is not None:
        good = trace.interrupted == (reason == "interrupted")
        yield "interrupted", good, f"{trace.interrupted}, but the text ended by {reason!r}"
    if reason is None or reason in ("interrupted", "error"):
        return
    context = meta.get("target", {}).get("context_length")
    at_most, whole = meta.get("max_new_tokens"), len(trace.prompt) + len(tokens)
    full = at_most is not None and len(tokens) >= at_most
    facts = {
        "eos": by_token or "stop_ids" not in meta,
        "stop": by_string and not by_token,
        "length": (full or at_most is None) and not by_token and not by_string,
        "context": (context is None or whole >= context) and not full and not by_token,
    }
    if reason == "stop" and not pieces:  # the text itself is not on record
        facts["stop"] = bool(meta.get("stop", True)) and not by_token
    yield "finish_reason", facts[reason], f"{reason!r} is not where the text ends"


def _first_stop(pieces: list[str], strings: list[str]) -> int | None:
    """Return the index of the token that completes the first stop string; None without one."""
    text, found = "", None
    for s in strings:
        at = "".join(pieces).find(s)
        if at >= 0 and (found is None or at + len(s) < found):
            found = at + len(s)  # characters up to the end of the stop string
    if found is None:
        return None
    for index, piece in enumerate(pieces):
        text += piece
        if len(text) >= found:
            return index
    return None
