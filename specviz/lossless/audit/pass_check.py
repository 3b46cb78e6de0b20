"""The shipped verification pass, held against a fresh pass of the model over the whole text.

Statistics judge emitted tokens, and an audit may draw those with a fast engine that never runs the
pass that ``generate`` runs. So every audit of a pair also drives that pass itself: the target's
session verifies chains or trees, is rolled back to nothing, to a part and to the whole of what was
proposed, and goes on. Each row of logits is compared with those that the model gives for the same
text in one pass without a cache, which shares neither positions, masks nor rollback with it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Context, Draft, Drafter, FloatArray, IntArray, Sampling
from specviz.core.draws import Sampler

ROUNDS = 24
"""Verification passes per prompt: eight after each kind of rollback."""

LEAST = {"float64": 1e-9, "float32": 1e-4}
"""Total variation that is rounding, whatever the model; for half precision see ``HALF``."""

HALF = 0.02

NOISE = 5.0
"""How many times the rounding measured between two right passes is still rounding."""


@dataclass(frozen=True)
class PassCheck:
    """What the comparison found.

    Parameters
    ----------
    passes, rows : int
        Verification passes that were run, and rows of logits that were compared.
    trees : bool
        Whether a pass held siblings.
    after_full, after_partial, after_none : int
        Passes that came after a rollback to all, some and none of the proposals.
    tv : float
        Largest total variation between a row of the shipped pass and the fresh one.
    where : str
        The row where it was found.
    tolerance : float
        What is taken for rounding: five times what two right passes of other shapes differ by.
    """

    passes: int
    rows: int
    trees: bool
    after_full: int
    after_partial: int
    after_none: int
    tv: float
    where: str
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether no row differs by more than rounding."""
        return self.tv <= self.tolerance

    @property
    def text(self) -> str:
        """The outcome in one or two sentences."""
        shape = "trees" if self.trees else "chains"
        ran = (
            f"The shipped verification pass was run {self.passes} times on {shape} "
            f"(once at the start, {self.after_full} times after full acceptance, "
            f"{self.after_partial} after part, {self.after_none} after none was kept) and compared "
            f"with fresh passes without a cache, row by row ({self.rows} rows)"
        )
        if self.ok:
            return f"{ran}: they differ by rounding (largest TV {self.tv:.1g})."
        return (
            f"{ran}: {self.where} it gives another distribution (TV {self.tv:.2g}; rounding is "
            f"at most {self.tolerance:.1g})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return {**asdict(self), "ok": self.ok}


def check_pass(
    pair: Any, prompt: IntArray, drafter: Drafter, *, seed: int = 0, rounds: int = ROUNDS
) -> PassCheck | None:
    """Drive the target's session through every kind of rollback and compare each row of logits.

    Which proposals are kept does not follow the rule here: all, some and none in turn, so that
    each case occurs however well the draft agrees with the target.

    Parameters
    ----------
    pair : Pair
        The models.
    prompt : IntArray
        ``(k,)`` ids.
    drafter : Drafter
        Its own proposals are verified; where it has none, tokens drawn at random are.
    seed : int
        Of the draws.
    rounds : int
        How many passes.

    Returns
    -------
    PassCheck or None
        None if the context has no room for two passes.
    """
    from specviz.decoding.hf.target import open_session

    target = open_session(pair.target, pair.vocab_size)
    target.begin()
    session = drafter.start(pair, target, prompt)
    draws, random = Sampler(seed, 2**31), np.random.default_rng(seed)
    verify = target.verify
    limit = target.context_length
    depth = max(1, drafter.depth)
    text, kept_before, done = prompt, "", 0
    rows_seen, worst, noise, where, trees = 0, -1.0, 0.0, "", False
    came_after = {"full": 0, "part": 0, "none": 0}
    for index in range(rounds):
        room = depth if limit is None else min(depth, limit - len(text) - 1)
        if room < 1:
            break
        draws.begin_round(index)
        draft = session.propose(Context(text, room, Sampling()), draws)
        if len(draft) == 0:
            known = getattr(pair, "shared_vocab", pair.vocab_size)
            draft = Draft.chain(random.integers(0, known, room).tolist(), None, pair.vocab_size)
        logits = verify(text[target.length :], draft)  # (1 + n, vocab)
        fresh, shorter = _fresh_rows(pair, text, draft)  # (1 + n, vocab), (vocab,)
        differences = _total_variations(logits, fresh)  # (1 + n,)
        noise = max(noise, float(_total_variations(shorter[None], fresh[:1])[0]))
        row = int(np.argmax(differences))
        if differences[row] > worst or np.isnan(differences[row]):
            worst = float(np.nan_to_num(differences[row], nan=1.0))
            after = f" and {_kept_words(kept_before)}" if kept_before else ""
            place = "the text" if row == 0 else f"proposal {row - 1}"
            where = f"in pass {index}, after {len(text)} tokens{after}, in the row after {place},"
        rows_seen += len(draft) + 1
        trees = trees or not draft.is_chain
        if kept_before:
            came_after[kept_before] += 1
        done += 1
        path = _path(draft, index, random)
        last = path[-1] if path else ROOT
        kept_before = "none" if not path else "part" if draft.children(last) else "full"
        p = _softmax(fresh[last + 1])
        closing = int(random.choice(len(p), p=p))
        emitted = np.append(draft.tokens[path], closing).astype(np.int64)
        target.keep(path)
        session.commit(emitted, path)
        text = np.concatenate([text, emitted])
    if done < 2:
        return None
    least = LEAST.get(str(pair.target.dtype), HALF)
    return PassCheck(
        done, rows_seen, trees, came_after["full"], came_after["part"], came_after["none"],
        worst, where, max(least, NOISE * noise),
    )  # fmt: skip


def _path(draft: Draft, index: int, random: np.random.Generator) -> list[int]:
    """Return the nodes to keep: a whole branch, none, or a part of one, in turn."""
    leaves = [node for node in range(len(draft)) if not draft.children(node)]
    branch = draft.path(int(random.choice(leaves)))
    kind = ("full", "none", "part")[index % 3]
    if kind == "none":
        return []
    if kind == "full" or len(branch) < 2:
        return branch
    return branch[: int(random.integers(1, len(branch)))]


def _kept_words(kept: str) -> str:
    return {
        "full": "after every proposal was kept", "part": "after some proposals were rejected",
        "none": "after every proposal was rejected",
    }[kept]  # fmt: skip


def _fresh_rows(pair: Any, text: IntArray, draft: Draft) -> tuple[FloatArray, FloatArray]:
    """Return logits after the text and every node, and after the text in a pass of its own.

    Each branch is read from the start in one pass without a cache.
    """
    leaves = [node for node in range(len(draft)) if not draft.children(node)]
    rows = np.empty((len(draft) + 1, pair.vocab_size))
    for leaf in leaves:
        path = draft.path(leaf)
        found = _logits_along(pair, np.append(text, draft.tokens[path]))[-len(path) - 1 :]
        rows[[0, *(node + 1 for node in path)]] = found
    return rows, _logits_along(pair, text)[-1]


def _logits_along(pair: Any, ids: IntArray) -> FloatArray:
    """Return logits ``(len(ids), vocab)`` of the model itself, without cache, masks or positions.

    A table, or a model with a session of its own, answers one context after the other.
    """
    model = pair.target
    if not hasattr(model, "session"):
        import torch

        from specviz.models.model import execution_device

        network = model.model
        # the ids between what the tokenizer knows and the padded embedding are the model's too
        fed = torch.as_tensor(ids[None], device=execution_device(network))
        with torch.inference_mode():
            logits = network(input_ids=fed, use_cache=False).logits[0]
        out: FloatArray = logits[:, : pair.vocab_size].double().cpu().numpy()
        return out
    none = Draft.empty(pair.vocab_size)
    every = []
    for end in range(1, len(ids) + 1):
        fresh = model.session(pair.vocab_size)
        fresh.begin()
        every.append(fresh.verify(ids[:end], none)[0])
    return np.asarray(every, dtype=np.float64)


def _softmax(logits: FloatArray) -> FloatArray:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    out: FloatArray = shifted / shifted.sum(axis=-1, keepdims=True)
    return out


def _total_variations(a: Any, b: Any) -> FloatArray:
    """Return the total variation row by row, ``(n,)``, of two arrays of logits ``(n, vocab)``."""
    if hasattr(a, "cpu"):
        a = a.cpu().numpy()
    out: FloatArray = 0.5 * np.abs(
        _softmax(np.asarray(a, dtype=np.float64)) - _softmax(np.asarray(b, dtype=np.float64))
    ).sum(axis=-1)
    return out
