"""What a person typed, checked before any model runs: one sentence that says what would work."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from specviz.core import checks
from specviz.core.contract import Drafter, Sampling, unmodelled
from specviz.core.rules import Rule, check_fits, get_rule
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel, draft_model_of
from specviz.drafters.target_only import TargetOnly
from specviz.models.text import special_ids

DEFAULT_GAMMA = 4
_WARNED: set[str] = set()


class LossyWarning(UserWarning):
    """The text does not have the target's distribution; said once for each source."""


NEEDED = ("target", "encode", "decode", "pieces", "token_strings", "vocab_size", "stop_ids")


def checked_pair(pair: Any) -> Any:
    """Return the pair, or say how to get one."""
    missing = [name for name in NEEDED if not hasattr(pair, name)]
    if missing:
        raise TypeError(
            f"pair must be a specviz.Pair (from specviz.load() or specviz.Pair(target=…)), "
            f"got {type(pair).__name__}"
        )
    return pair


def checked_stop(stop: Any) -> tuple[str, ...]:
    """Return the stop strings as a tuple."""
    strings = (stop,) if isinstance(stop, str) else stop
    if not isinstance(strings, Sequence) or not all(isinstance(s, str) for s in strings):
        raise TypeError(f"stop must be a string or a list of strings, got {stop!r}")
    if any(not s for s in strings):
        raise ValueError("stop must not hold an empty string: every text contains it")
    return tuple(strings)


def special_stops(pair: Any, strings: tuple[str, ...]) -> tuple[frozenset[int], tuple[str, ...]]:
    """Return the ids that end a text, and the strings that are left to look for.

    A decoded text has no special tokens, so the name of one would never be found in it: the token
    itself ends the text.

    Raises
    ------
    ValueError
        If a string has a special token's name within other text.
    """
    ids: set[int] = set(pair.stop_ids)
    if pair.tokenizer is None:
        return frozenset(ids), strings
    special = sorted(special_ids(pair.tokenizer))
    names = dict(zip(pair.tokenizer.convert_ids_to_tokens(special), special, strict=True))
    left = []
    for string in strings:
        if string in names:
            ids.add(names[string])
            continue
        inside = next((name for name in names if name and name in string), None)
        if inside is not None:
            raise ValueError(
                f"stop={string!r} contains the special token {inside!r}, which decoded text never "
                f"shows: give stop={inside!r} alone to end at that token"
            )
        left.append(string)
    return frozenset(ids), tuple(left)


class GenerationConfigWarning(UserWarning):
    """A checkpoint asks for something that shapes its text and is not applied here."""


def warn_of_generation_config(pair: Any, sampling: Sampling) -> None:
    """Say once for each model what its generation_config asks for and this run does not do."""
    config = getattr(pair.target.model, "generation_config", None)
    if config is None:
        return
    asked = list(unmodelled(vars(config)))
    if config.repetition_penalty not in (None, 1, sampling.repetition_penalty):
        asked.append("repetition_penalty")
    key = f"generation_config of {pair.target.name}: {asked}"
    if asked and key not in _WARNED:
        _WARNED.add(key)
        own = ""
        if "repetition_penalty" in asked:
            own = f"; for its penalty pass repetition_penalty={config.repetition_penalty}"
        warnings.warn(
            f"the generation_config of {pair.target.name!r} sets {', '.join(asked)}, which is not "
            f"applied: p is the model's own distribution, for target and draft alike{own}",
            GenerationConfigWarning,
            stacklevel=4,
        )


class ShorterContextWarning(UserWarning):
    """A model is used up to fewer tokens than its config states."""


def warn_of_shorter_context(pair: Any, wanted: int) -> None:
    """Say once for each model that a text of ``wanted`` tokens will end before its config says."""
    target = pair.target
    context, note = target.context_length, getattr(target, "context_note", "")
    key = f"context of {target.name}: {context}"
    if note and wanted > context and key not in _WARNED:
        _WARNED.add(key)
        warnings.warn(
            f"the text will end at {context} tokens, the prompt's included, before max_new_tokens "
            f"is reached: {target.name!r} is used up to there only, because {note}",
            ShorterContextWarning,
            stacklevel=4,
        )


def choose_rule(verify: Any, sampling: Sampling, *, plain: bool) -> Rule:
    """Return the rule asked for; by default "greedy" at temperature 0, else "rejection".

    Target-only decoding (``plain``) lets the target draw its own tokens, as ``match`` does, so
    that its text is the one that ``match`` and ``coupled`` reproduce at the same seed.
    """
    if verify is None:
        verify = "greedy" if sampling.greedy else "match" if plain else "rejection"
    if not isinstance(verify, (str, Rule)):
        raise TypeError(
            f"verify must be the name of a rule such as 'rejection', or a Rule, got {verify!r}"
        )
    rule = get_rule(verify)
    if not rule.lossless:
        _warn_once(rule.name, f"verify={rule.name!r} is lossy")
    if rule.name == "greedy" and not sampling.greedy:
        raise ValueError(
            f"verify='greedy' needs temperature=0, got temperature={sampling.temperature}; "
            f"use verify='rejection' or 'match' to sample"
        )
    return rule


def _warn_once(name: str, what: str) -> None:
    """Say that a rule or a drafter is lossy, the first time it is used by whoever called us."""
    if name in _WARNED:
        return
    _WARNED.add(name)
    warnings.warn(
        f"{what}: the text does not have the target's distribution", LossyWarning, stacklevel=5
    )


def is_plain(drafter: Any, gamma: Any) -> bool:
    """Return whether this is target-only decoding."""
    return isinstance(drafter, TargetOnly) or (drafter is None and gamma is not None and gamma == 0)


def choose_drafter(pair: Any, drafter: Any, gamma: Any, rule: Rule) -> Drafter:
    """Return the drafter asked for, or the pair's draft model with ``gamma`` tokens a round."""
    if drafter is not None and gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} is given twice: it belongs to the drafter, so write "
            f"drafter={type(drafter).__name__}(gamma={gamma!r}) and leave gamma out"
        )
    if drafter is not None:
        check_fits(drafter, rule)
        if not drafter.traits.lossless:
            _warn_once(drafter.name, f"drafter={type(drafter).__name__}() is lossy")
        return drafter
    if gamma is None:
        gamma = DEFAULT_GAMMA
    if not isinstance(gamma, AdaptiveGamma):
        gamma = checks.whole("gamma", gamma, 0, also="an AdaptiveGamma", hint="0 is target only")
    if gamma == 0:
        return TargetOnly()
    draft_model_of(pair)  # refused before anything is encoded
    return DraftModel(gamma, noise="target" if rule.name == "coupled" else "draft")
