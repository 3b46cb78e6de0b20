"""What heads are made of, and for which target: the plain facts in their ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

FINGERPRINT = 64
TOLERANCE = 0.05
"""Half precision moves an entry of the fingerprint by less than .01, another target by about 1."""

MOST = 64
"""No more heads, blocks or layers than this are read from a file."""


class HeadsError(ValueError):
    """These heads cannot be used, at all or with this target."""


@dataclass(frozen=True)
class MedusaConfig:
    """The shape of Medusa heads, and the target they belong to.

    Parameters
    ----------
    hidden_size, vocab_size : int
        The target's.
    layers : tuple of int
        The target's layers they read, 1 for the output of the first; the last entry is the
        target's last layer, whose output its own head reads.
    heads : int
        How many: head i predicts the token i + 1 places after the one whose state it reads.
    blocks : int
        Residual blocks in each head.
    target : str
        The target's name.
    fingerprint : tuple of float
        See :func:`fingerprint`; empty if unknown.
    ranks : tuple of tuple of float
        Measured: entry ``[i][r]`` is the target's mean probability of the token that head i + 1
        ranks r-th. The default tree is built from it; empty if it was not measured.

    Raises
    ------
    HeadsError
        If a value is impossible, in one sentence that names it.
    """

    hidden_size: int
    vocab_size: int
    layers: tuple[int, ...]
    heads: int = 4
    blocks: int = 1
    target: str = "unknown"
    fingerprint: tuple[float, ...] = ()
    ranks: tuple[tuple[float, ...], ...] = ()

    kind = "medusa"

    def __post_init__(self) -> None:
        _check_shape(self)
        for name in ("heads", "blocks"):
            _whole(name, getattr(self, name), most=MOST)
        flat = [share for row in self.ranks for share in row]
        if self.ranks and len(self.ranks) != self.heads:
            raise HeadsError(f"ranks must have a row for each of {self.heads} heads")
        if not all(isinstance(x, float) and 0 <= x <= 1 for x in flat):
            raise HeadsError("ranks must hold probabilities from 0 to 1")


@dataclass(frozen=True)
class EagleConfig:
    """The shape of an EAGLE head, and the target it belongs to.

    Parameters
    ----------
    hidden_size, vocab_size : int
        The target's.
    layers : tuple of int
        The target's layers whose outputs are its features, 1 for the first.
    intermediate_size, num_heads, num_kv_heads, head_dim : int
        Of its one decoder layer.
    rope_theta, eps : float
        Base of the rotary positions; what keeps a norm from dividing by 0.
    features : bool
        False switches the features off: an ablation of equal size.
    steps : int
        How many of its own roll-out steps it was trained on.
    window : int
        How many positions, its own included, it looks back on: as many as in training.
    own_vocabulary : bool
        Whether it has an embedding of its own, which is its output head too, as a draft model
        has. Without one it reads the target's embedding and speaks through the target's head.
    target, fingerprint
        As in :class:`MedusaConfig`.

    Raises
    ------
    HeadsError
        If a value is impossible, in one sentence that names it.
    """

    hidden_size: int
    vocab_size: int
    layers: tuple[int, ...]
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float = 10000.0
    eps: float = 1e-5
    features: bool = True
    steps: int = 1
    window: int = 256
    own_vocabulary: bool = False
    target: str = "unknown"
    fingerprint: tuple[float, ...] = ()

    kind = "eagle"

    def __post_init__(self) -> None:
        _check_shape(self)
        for name in ("num_heads", "num_kv_heads", "head_dim", "steps"):
            _whole(name, getattr(self, name), most=1024)
        _whole("window", self.window, most=2**24)
        _whole("intermediate_size", self.intermediate_size, most=64 * self.hidden_size)
        if self.num_heads % self.num_kv_heads or self.head_dim % 2:
            raise HeadsError(
                f"num_heads={self.num_heads} must be a multiple of num_kv_heads="
                f"{self.num_kv_heads}, and head_dim={self.head_dim} even"
            )
        if self.num_heads * self.head_dim > 64 * self.hidden_size:
            raise HeadsError("num_heads * head_dim is absurdly larger than hidden_size")
        for name in ("rope_theta", "eps"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value < 1e12:
                raise HeadsError(f"{name} must be a positive number, got {value!r}")
        for name in ("features", "own_vocabulary"):
            if not isinstance(getattr(self, name), bool):
                raise HeadsError(f"{name} must be true or false, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class ParallelConfig(EagleConfig):
    """The shape of a parallel head: an EAGLE head's layer, and placeholders for tokens not drawn.

    Parameters
    ----------
    gamma : int
        How many tokens it proposes in one pass.
    """

    gamma: int = 4

    kind = "parallel"

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole("gamma", self.gamma, most=MOST)
        if self.window < self.gamma:
            raise HeadsError(f"window={self.window} must hold the gamma={self.gamma} placeholders")


HeadConfig = MedusaConfig | EagleConfig | ParallelConfig
KINDS: dict[str, type[MedusaConfig] | type[EagleConfig]] = {
    "medusa": MedusaConfig,
    "eagle": EagleConfig,
    "parallel": ParallelConfig,
}


def _whole(name: str, value: Any, *, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise HeadsError(f"{name} must be a whole number from 1 to {most}, got {value!r}")


def _check_shape(config: Any) -> None:
    for name, most in (("hidden_size", 2**17), ("vocab_size", 2**22)):
        _whole(name, getattr(config, name), most=most)
    layers = config.layers
    if not 1 <= len(layers) <= MOST or sorted(set(layers)) != list(layers):
        raise HeadsError(f"layers must be rising layer numbers such as (8, 16), got {layers!r}")
    for layer in layers:
        _whole("layers", layer, most=2**12)
    if len(config.fingerprint) not in (0, FINGERPRINT):
        raise HeadsError(f"fingerprint must hold {FINGERPRINT} numbers")
    if not all(isinstance(x, (int, float)) for x in config.fingerprint):
        raise HeadsError("fingerprint must hold numbers")
    if not isinstance(config.target, str):
        raise HeadsError(f"target must be the name of a model, got {config.target!r}")


def to_json(config: HeadConfig) -> dict[str, Any]:
    """Return a configuration as plain JSON values, its kind among them."""
    return {"kind": config.kind, **asdict(config)}


def from_json(values: Mapping[str, Any]) -> HeadConfig:
    """Return the configuration that :func:`to_json` wrote; unknown entries are ignored.

    Raises
    ------
    HeadsError
        If the kind is unknown, an entry is missing or has an impossible value.
    """
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise HeadsError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    known = {f.name: f for f in fields(KINDS[kind])}
    lacking = [n for n, f in known.items() if f.default is MISSING and n not in values]
    if lacking:
        raise HeadsError(f"config.json lacks {', '.join(map(repr, lacking))}")
    given = {name: _frozen(values[name]) for name in known if name in values}
    try:
        return KINDS[kind](**given)
    except TypeError as error:  # a list where a number belongs, and the like
        raise HeadsError(f"config.json has an entry of the wrong type: {error}") from None


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def fingerprint(embedding: Tensor) -> tuple[float, ...]:
    """Return 64 numbers that tell one target's embedding ``(vocab, hidden)`` from another's.

    They are entries spread evenly over the matrix, relative to its root mean square, so that
    the same weights in another precision still match (:func:`same_target`).

    Examples
    --------
    >>> len(fingerprint(torch.ones(10, 20)))
    64
    """
    flat = embedding.detach().flatten()
    places = torch.linspace(0, flat.numel() - 1, FINGERPRINT, dtype=torch.float64).long()
    sample = flat[places.to(flat.device)].float().cpu()
    scale = float(flat.float().pow(2).mean().sqrt()) or 1.0
    return tuple(round(float(x) / scale, 3) for x in sample)


def same_target(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two fingerprints are of the same embedding, rounding apart."""
    return len(one) == len(other) and all(
        abs(a - b) <= TOLERANCE for a, b in zip(one, other, strict=True)
    )
