"""Models that remember their logits by text: a short run can be repeated thousands of times.

Only the forward passes are saved: the loop, the rule, the drafter and the sampling settings that
run over them are the shipped ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray, IntArray, Sampling
from specviz.core.draws import Sampler
from specviz.core.rules import RULES, Rule
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.loop import RoundResult, rounds
from specviz.decoding.sampling import logits_to_distributions
from specviz.decoding.stopping import Stopping

Text = tuple[int, ...]


class Memo:
    """A model whose logits after each text are computed once."""

    def __init__(self, model: Any, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.context_length = model.context_length
        self._runner = HFTarget(model, vocab_size)
        self._read: Text = ()
        self._rows: dict[Text, FloatArray] = {}

    def row(self, text: Text) -> FloatArray:
        """Return the logits ``(vocab,)`` after a text; its common start is not read again."""
        if text not in self._rows:
            shared = 0
            while shared < min(len(text) - 1, len(self._read)) and (
                text[shared] == self._read[shared]
            ):
                shared += 1
            self._runner.crop(shared)
            rest = np.array(text[shared:], dtype=np.int64)
            self._rows[text] = self._runner.verify(rest, Draft.empty(self.vocab_size))[0]
            self._read = text
        return self._rows[text]

    def distribution(self, text: Sequence[int], sampling: Sampling) -> FloatArray:
        """Return the distribution ``(vocab,)`` of the next token."""
        return logits_to_distributions(self.row(tuple(text))[None], sampling)[0]

    def session(self, vocab_size: int | None = None) -> _Session:
        return _Session(self)


class _Session:
    """The Target protocol over remembered logits."""

    def __init__(self, memo: Memo) -> None:
        self.memo = memo
        self.vocab_size = memo.vocab_size
        self.context_length = memo.context_length
        self.begin()

    @property
    def length(self) -> int:
        return len(self._cache)

    def begin(self) -> None:
        self._cache: Text = ()
        self._draft = Draft.empty(self.vocab_size)
        self._pending = 0

    def verify(self, pending: IntArray, draft: Draft) -> FloatArray:
        text = self._cache + tuple(pending.tolist())
        self._pending, self._draft = len(text), draft
        self._cache = text + tuple(draft.tokens.tolist())
        paths = [draft.path(node) for node in range(ROOT, len(draft))]
        return np.stack([self.memo.row(text + tuple(draft.tokens[p].tolist())) for p in paths])

    def keep(self, path: Sequence[int]) -> None:
        kept = tuple(int(self._draft.tokens[node]) for node in path)
        self._cache = self._cache[: self._pending] + kept

    def crop(self, length: int) -> None:
        self._cache = self._cache[:length]


def memoised(pair: Any) -> Any:
    """Return a pair for ``loop.rounds`` and enumeration whose models are remembered."""
    return SimpleNamespace(
        target=Memo(pair.target, pair.vocab_size),
        draft=Memo(pair.draft, pair.vocab_size),
        vocab_size=pair.vocab_size,
        stop_ids=frozenset(),
        encode=lambda prompt, messages=None: np.asarray(prompt, dtype=np.int64),
    )


def continuations(
    pair: Any,
    drafter: Any,
    rule: Rule | str,
    prompt: Sequence[int],
    *,
    length: int,
    count: int,
    seed: int,
    sampling: Sampling,
    see: Callable[[RoundResult], None] | None = None,
) -> list[Text]:
    """Decode ``count`` short texts with the shipped loop: sequences 0, 1, … of one seed."""
    ids = np.asarray(prompt, dtype=np.int64)
    chosen = RULES[rule] if isinstance(rule, str) else rule
    texts = []
    for sequence in range(count):
        target = pair.target.session()
        session = drafter.start(pair, target, ids)
        result = rounds(
            target, session, chosen, ids, sampling=sampling, draws=Sampler(seed, sequence),
            stopping=Stopping(len(ids), length, pair.target.context_length),
        )  # fmt: skip
        text: list[int] = []
        for round_ in result:
            text += round_.emitted.tolist()
            if see is not None:
                see(round_)
        texts.append(tuple(text))
    return texts


def joint_distribution(
    memo: Memo, prompt: Sequence[int], length: int, sampling: Sampling
) -> dict[Text, float]:
    """Return text -> probability of every continuation, from the model's distributions alone."""
    distribution: dict[Text, float] = {(): 1.0}
    for _ in range(length):
        grown: dict[Text, float] = {}
        for text, mass in distribution.items():
            p = memo.distribution((*prompt, *text), sampling)
            for token in np.flatnonzero(p).tolist():
                grown[(*text, token)] = mass * float(p[token])
        distribution = grown
    return distribution


def resampling(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the distribution of a token if a rejection draws from p again: wrong."""
    kept = np.minimum(p, q)
    out: FloatArray = kept + (1 - kept.sum()) * p
    return out


def witness(pair: Any, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Text:
    """Return the prompt after which that fault changes the next token's distribution most.

    Distributions with nearly all mass on one token are passed over: they leave nothing to test
    after it.
    """
    faults: dict[Text, float] = {}
    for prompt in prompts:
        p, q = pair.target.distribution(prompt, sampling), pair.draft.distribution(prompt, sampling)
        faults[tuple(prompt)] = (
            float(p.max() < 0.8) * 0.5 * float(np.abs(resampling(p, q) - p).sum())
        )
    best = max(faults, key=lambda prompt: faults[prompt])
    assert faults[best] >= 0.1, "target and draft hardly differ: planted faults would not show"
    return best


def pairs_distribution(
    memo: Memo, prompt: Sequence[int], firsts: Sequence[int], sampling: Sampling
) -> Mapping[Text, float]:
    """Return the distribution of two tokens,
    all texts that begin with none of ``firsts`` as one: ``()``.
    """
    p = memo.distribution(prompt, sampling)
    distribution: dict[Text, float] = {(): 1.0 - float(p[list(firsts)].sum())}
    for first in firsts:
        then = memo.distribution((*prompt, first), sampling)
        for second in np.flatnonzero(then).tolist():
            distribution[first, second] = float(p[first] * then[second])
    return distribution
