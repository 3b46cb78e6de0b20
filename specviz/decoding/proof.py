"""See for yourself that a model can be rolled back, once for each model, on a handful of tokens.

A config says what a model claims. Attention that looks ahead, a cache that was not really cut
back, or a tree mask that is passed over would all be silently wrong, so a short draft is verified,
rolled back and compared with passes that use no cache and no mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from specviz.core.contract import Draft, IntArray
from specviz.decoding.cache import UnsupportedModelError

if TYPE_CHECKING:
    from specviz.decoding.target import HFTarget

LOOSE = 0.1
"""Error allowed, relative to the spread of the logits: above the noise of bf16 and of int8 drafts,
below attention that looks ahead or a cache that was not rolled back (both 0.2 and more)."""

STRICT = 0.01
"""For trees in float32 and better: positions that count nodes instead of depth make about 0.03."""

_proven: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def prove(target: HFTarget, *, trees: bool) -> None:
    """Verify and roll back a tiny draft; compare with plain passes. Done once for each model.

    Parameters
    ----------
    target : HFTarget
        Its model is used; its own cache and length stay as they are.
    trees : bool
        Try a tree (two siblings, a child each) instead of a chain.

    Raises
    ------
    UnsupportedModelError
        If a pass fails or the logits differ, naming the model's type.
    """
    what = "tree" if trees else "chain"
    done = _proven.setdefault(target.model, set())
    if what in done:
        return
    done.add(what)
    kept = target.cache, target.length, target._verified
    target.begin()
    try:
        error = _error(target, trees)
    except (TypeError, AttributeError, IndexError, RuntimeError, ValueError, KeyError) as failure:
        done.discard(what)
        raise UnsupportedModelError(
            f"model type {target.kind.model_type!r} cannot verify a {what}: a trial pass failed "
            f"with {type(failure).__name__}: {failure}"
        ) from failure
    finally:
        target.cache, target.length, target._verified = kept
    loose = not trees or target.model.dtype in (torch.float16, torch.bfloat16)
    if error > (LOOSE if loose else STRICT):
        done.discard(what)
        raise UnsupportedModelError(
            f"model type {target.kind.model_type!r} cannot verify a {what}: in a trial, the logits "
            f"after rolling back differed from those of a plain pass by {error:.0%} of their spread"
        )


def _error(target: HFTarget, trees: bool) -> float:
    """Return the largest relative error of a trial; 0 if the context is too short for one."""
    if target.context_length is not None and target.context_length < 7:
        return 0.0
    usable = min(target._known_ids, target.vocab_size)
    text, a, b, a_child, b_child = np.split(np.arange(1, 8) * usable // 9, [3, 4, 5, 6])
    tokens = np.concatenate([a, b, a_child, b_child] if trees else [a, b])
    parent = np.array([-1, -1, 0, 1] if trees else [-1, 0])
    draft = Draft(tokens, parent, np.zeros((0, target.vocab_size)), np.full(len(tokens), -1))
    logits = target.verify(text, draft)
    path = draft.path(len(draft) - 1) if trees else [0]
    target.keep(path)
    after = target.verify(a_child, Draft.empty(target.vocab_size))
    target.keep([])
    followed = [[], *(draft.path(node) for node in range(len(draft)))]
    pairs = [(row, tokens[nodes]) for row, nodes in zip(logits, followed, strict=True)]
    pairs.append((after[0], np.concatenate([tokens[path], a_child])))
    return max(_difference(row, _plain(target, [text, more])) for row, more in pairs)


@torch.inference_mode()
def _plain(target: HFTarget, parts: Sequence[IntArray]) -> NDArray[Any]:
    ids = torch.as_tensor(np.concatenate(parts), device=target.model.device)[None]
    uncached = "use_cache" in inspect.signature(target.model.forward).parameters
    output = target.model(input_ids=ids, **({"use_cache": False} if uncached else {}))
    return target._fitted(output.logits[0, -1:])[0]


def _difference(ours: NDArray[Any], plain: NDArray[Any]) -> float:
    finite = np.isfinite(plain)
    if not finite.any() or not np.isfinite(ours[finite]).all():
        return 0.0  # bad weights, not a bad cache: the laws will say where
    spread = float(np.linalg.norm(plain[finite] - plain[finite].mean()))
    return float(np.linalg.norm(ours[finite] - plain[finite])) / max(spread, 1e-6)
