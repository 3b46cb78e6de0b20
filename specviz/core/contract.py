"""What the parts of speculative decoding promise each other.

The letters are those of Leviathan et al. (2023): p is the **target**, q the **draft**. A target
opens as a :class:`Target` with a cache; a :class:`Drafter` is a recipe that starts a
:class:`DraftSession` per text. Every array below belongs to one text.

The one promise
---------------
``q`` is the distribution that a proposal was really *drawn* from, given its earlier siblings and
after every sampling setting; it is never reconstructed afterwards. A deterministic choice has a
one-hot q.

Why may a sampled node not be dropped? A node that exists only if its own token looks good was not
drawn from q but from q restricted to good tokens, and p/q acceptance is then biased. So whether a
node exists may depend on its ancestors and earlier siblings, never on its own token; only one-hot
nodes may be pruned or re-ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from specviz.core import checks
from specviz.core.arrays import FloatArray as FloatArray  # also offered here: the promise's words
from specviz.core.arrays import IntArray as IntArray
from specviz.core.draws import Draws

ROOT = -1
"""The parent of a first proposal: the last token of the text so far."""


class DraftContractError(RuntimeError):
    """A drafter broke its promise: it proposed what its own distribution says is impossible."""


@dataclass(frozen=True)
class Sampling:
    """How logits become a distribution; the same for target and draft.

    Parameters
    ----------
    temperature : float
        Logits are divided by it. 0 is greedy: all mass on the largest logit.
    top_k : int
        Keep the k most likely tokens; 0 keeps all.
    top_p : float
        Keep the smallest set of most likely tokens whose mass reaches ``top_p``; 1 keeps all.
    min_p : float
        Drop tokens less likely than ``min_p`` times the most likely one; 0 keeps all.
    repetition_penalty : float
        Divide positive (multiply negative) logits of tokens already in the text; 1 changes nothing.

    Raises
    ------
    ValueError, TypeError
        If a setting is out of range, in one sentence that names it.

    Examples
    --------
    >>> Sampling(temperature=0.8, top_k=50).temperature
    0.8
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        checks.number("temperature", self.temperature, at_least=0, hint="0 is greedy")
        checks.whole("top_k", self.top_k, 0, hint="0 keeps all tokens")
        checks.number("top_p", self.top_p, above=0, at_most=1, hint="1 keeps all tokens")
        checks.number("min_p", self.min_p, at_least=0, at_most=1, hint="0 keeps all tokens")
        checks.number(
            "repetition_penalty", self.repetition_penalty, above=0, hint="1 changes nothing"
        )

    @property
    def greedy(self) -> bool:
        """Whether every distribution is one-hot."""
        return self.temperature == 0


UNMODELLED = (
    *("logit_bias", "sequence_bias", "logits_processors", "presence_penalty", "frequency_penalty"),
    *("min_tokens", "min_new_tokens", "min_length", "bad_words", "bad_words_ids"),
    *("suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id"),
    *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty"),
    *("exponential_decay_length_penalty", "watermarking_config"),
    *("typical_p", "epsilon_cutoff", "eta_cutoff", "top_a", "tfs_z", "guidance_scale", "top_h"),
    *("mirostat", "dry_multiplier", "xtc_probability", "dynatemp_range", "smoothing_factor"),
    *("num_beams", "best_of", "use_beam_search", "penalty_alpha", "allowed_token_ids"),
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar", "grammar"),
    *("structured_outputs", "response_format", "json_schema", "regex"),
)
"""Settings of other engines that shape the distribution and that :class:`Sampling` lacks."""

_NEUTRAL_AT_ONE = (
    *("typical_p", "tfs_z", "guidance_scale", "num_beams", "best_of", "top_h"),
    "encoder_repetition_penalty",
)


def unmodelled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of an engine's settings that shape the distribution and are not modelled here.

    Examples
    --------
    >>> unmodelled({"temperature": 0.5, "logit_bias": {5: -3.0}, "num_beams": 1})
    {'logit_bias': {5: -3.0}}
    """

    def neutral(name: str, value: Any) -> bool:
        if name.endswith("_token_id"):
            return value is None  # 0 is a token
        return not value or (name in _NEUTRAL_AT_ONE and value == 1)

    asked = {name: settings.get(name) for name in UNMODELLED}
    return {name: value for name, value in asked.items() if not neutral(name, value)}


@dataclass
class Draft:
    """What a drafter proposes in one round: a chain, or a tree, of ``n`` nodes.

    Parameters
    ----------
    tokens : IntArray
        ``(n,)`` proposed ids, parents before children, siblings in the order they were drawn.
    parent : IntArray
        ``(n,)`` index of each node's parent, -1 for the root; a chain has ``parent[i] = i - 1``.
    q : FloatArray
        ``(m, vocab)`` float64, the rows of q that are not one-hot, each summing to 1.
    q_row : IntArray
        ``(n,)`` the row of ``q`` that node i was drawn from, or -1: a deterministic choice.

    Raises
    ------
    DraftContractError
        If a node stands before its parent.

    Examples
    --------
    >>> draft = Draft.chain([2, 0], np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), vocab_size=3)
    >>> len(draft), draft.is_chain, draft.distribution(0, 3).tolist()
    (2, True, [0.1, 0.2, 0.7])
    """

    tokens: IntArray
    parent: IntArray
    q: FloatArray
    q_row: IntArray
    is_chain: bool = field(init=False, repr=False, default=True)
    """Whether no node has a sibling."""
    _children: dict[int, list[int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for node, parent in enumerate(self.parent.tolist()):
            self.is_chain &= parent == node - 1
            if not ROOT <= parent < node:
                raise DraftContractError(
                    f"node {node} has parent {parent}; a parent must come before its children"
                )
            self._children.setdefault(parent, []).append(node)

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def empty(cls, vocab_size: int) -> Draft:
        """No proposal: the round is an ordinary step of the target."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none.copy(), np.zeros((0, vocab_size)), none.copy())

    @classmethod
    def chain(cls, tokens: Sequence[int], q: FloatArray | None, vocab_size: int) -> Draft:
        """Return one token after another; ``q`` is ``(n, vocab)``, or None for one-hot choices."""
        n = len(tokens)
        rows = np.full(n, -1) if q is None else np.arange(n)
        used = np.zeros((0, vocab_size)) if q is None else q
        ids = np.asarray(tokens, dtype=np.int64)
        return cls(ids, np.arange(n, dtype=np.int64) - 1, used, rows.astype(np.int64))

    def children(self, node: int) -> list[int]:
        """Return the proposals that follow ``node`` (-1: the text), in the order drawn."""
        return self._children.get(node, [])

    def distribution(self, node: int, vocab_size: int) -> FloatArray:
        """Return ``(vocab,)``: the q that a node was drawn from; one-hot if it was chosen."""
        if self.q_row[node] >= 0:
            row: FloatArray = self.q[self.q_row[node]]
            return row
        one_hot: FloatArray = self.q[:0].sum(axis=0)  # (vocab,) zeros, the same kind of array as q
        one_hot[self.tokens[node]] = 1.0
        return one_hot

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root to ``node``, inclusive."""
        nodes = []
        while node != ROOT:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes[::-1]

    def depths(self) -> IntArray:
        """Return ``(n,)``: 0 for the first proposed position."""
        depth = np.zeros(len(self), dtype=np.int64)
        for node, parent in enumerate(self.parent.tolist()):
            depth[node] = 0 if parent == ROOT else depth[parent] + 1
        return depth


@dataclass(frozen=True)
class Context:
    """What a drafter may look at when it proposes.

    Parameters
    ----------
    tokens : IntArray
        ``(length,)`` the text so far: the prompt and everything emitted.
    room : int
        How many proposals on one path can still be used; never propose deeper.
    sampling : Sampling
        The settings that turn the drafter's logits into ``q``.
    stop_ids : frozenset of int
        Tokens that end the text; nothing need be proposed after one.
    """

    tokens: IntArray
    room: int
    sampling: Sampling
    stop_ids: frozenset[int] = frozenset()


@runtime_checkable
class Target(Protocol):
    """A model with a cache: scores many tokens in one pass, and can take the last ones back."""

    @property
    def vocab_size(self) -> int:
        """Width of the logits."""
        ...

    @property
    def context_length(self) -> int | None:
        """The longest text it takes; None for no limit."""
        ...

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        ...

    def begin(self) -> None:
        """Forget everything."""
        ...

    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]:
        """Feed ``pending`` then the draft's nodes in **one** pass.

        Returns logits ``(1 + n, vocab)``: row 0 follows the last pending token, row ``1 + i``
        follows node i (it saw only its ancestors). ``n`` may be 0.
        """
        ...

    def keep(self, path: Sequence[int]) -> None:
        """Roll the last ``verify`` back to its pending tokens and the nodes in ``path``."""
        ...

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``."""
        ...


class ModelPair(Protocol):
    """What a drafter may ask of the pair: :class:`specviz.Pair`, or a stand-in with these."""

    @property
    def target(self) -> Any:
        """The large model, whose distribution is p."""
        ...

    @property
    def draft(self) -> Any:
        """The small model, whose distribution is q; None if there is none."""
        ...

    @property
    def vocab_size(self) -> int:
        """How many tokens the target has: the width of p."""
        ...


@dataclass(frozen=True)
class DrafterTraits:
    """What a drafter is and what it requires of a rule; a drafter that holds others joins theirs.

    Parameters
    ----------
    trees : bool
        It may propose siblings, so the rule must be one that judges trees.
    coupled : bool
        Its draft shares the target's noise. Its q is then not independent of the target's own
        draws, so only the rule ``coupled`` is exact.
    lossless : bool
        False if it changes what the target computes: then no rule is exact.

    Examples
    --------
    >>> DrafterTraits(trees=True) | DrafterTraits(coupled=True)
    DrafterTraits(trees=True, coupled=True, lossless=True)
    """

    trees: bool = False
    coupled: bool = False
    lossless: bool = True

    def __or__(self, other: DrafterTraits) -> DrafterTraits:
        return DrafterTraits(
            self.trees or other.trees,
            self.coupled or other.coupled,
            self.lossless and other.lossless,
        )


class DraftSession(Protocol):
    """One text being drafted: owns the caches, knows nothing of the verdict until ``commit``."""

    recipe: Drafter

    @property
    def gamma(self) -> int:
        """How deep it proposes now, where there is room; by default the recipe's depth."""
        return self.recipe.depth

    @property
    def cache_length(self) -> int:
        """How many tokens the drafter's own cache holds; 0 if it has none."""
        return 0

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Propose at most ``context.room`` tokens deep."""
        ...

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Learn what was emitted and which nodes were accepted; roll own caches back."""
        return

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter; by default what was asked for."""
        return self.recipe.settings()


@runtime_checkable
class Drafter(Protocol):
    """A recipe for drafting: frozen, comparable, reusable; every text gets a session of its own.

    Nothing of a text is kept here, so one recipe may serve many texts at once.
    """

    @property
    def name(self) -> str:
        """What it is called in traces, menus and on the command line."""
        ...

    @property
    def traits(self) -> DrafterTraits:
        """What it is and what it requires of a rule."""
        ...

    @property
    def depth(self) -> int:
        """How deep its first round proposes at most: gamma, or the levels of its tree."""
        ...

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> DraftSession:
        """Return a session for one text.

        Parameters
        ----------
        pair : ModelPair
            The models.
        target : Target
            The target's session for the same text, with nothing fed yet.
        prompt : IntArray
            ``(n,)`` ids.

        Raises
        ------
        ValueError
            If the pair cannot do this, in one sentence, before any model runs.
        """
        ...

    def settings(self) -> dict[str, Any]:
        """Return what was asked for: plain JSON values."""
        ...
