"""What speculation would gain on hardware nobody here has: a roofline of every pass.

A pass takes as long as the slower of two things: reading the weights and the cached keys and
values from memory, or doing the arithmetic (Williams et al. 2009, Roofline); plus a fixed time for
each layer that is launched. From published shapes and device figures follow c (a draft pass ÷ a
target pass), v(k) (a pass that verifies k tokens ÷ a pass of one), and with the tokens per target
pass the gain. Nothing is fitted to the results it is held against (:data:`PUBLISHED`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specviz.core import checks
from specviz.core.formatting import format_number
from specviz.theory import break_even_alpha, expected_tokens


@dataclass(frozen=True)
class Device:
    """One accelerator, or several that share each product (tensor parallel).

    Parameters
    ----------
    name : str
        What it is called.
    flops : float
        Peak operations a second in the precision of the weights, of one.
    bandwidth : float
        Peak bytes a second from memory, of one.
    count : int
        How many share the work.
    efficiency : float
        Share of either peak that is reached.
    seconds_per_layer : float
        What a layer costs however little it computes: launches, and waiting for each other.
    """

    name: str
    flops: float
    bandwidth: float
    count: int = 1
    efficiency: float = 0.7
    seconds_per_layer: float = 15e-6

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth", "efficiency"):
            checks.number(name, getattr(self, name), above=0)
        checks.whole("count", self.count, 1)
        checks.number("seconds_per_layer", self.seconds_per_layer, at_least=0)


@dataclass(frozen=True)
class Shape:
    """A decoder-only transformer, as its config states it.

    Parameters
    ----------
    name : str
        What it is called.
    layers, hidden, intermediate, heads, kv_heads, head_dim, vocab_size : int
        Sizes.
    matrices : int
        Of the feed-forward block: 3 with a gate, 2 without.
    experts, chosen : int
        Feed-forward blocks in each layer, and how many of them a token goes through.
    bytes_per_weight : float
        2 for half precision; keys and values take as many.

    Examples
    --------
    >>> round(SHAPES["Llama 3.1 8B"].parameters / 1e9, 1)
    8.0
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    matrices: int = 3
    experts: int = 1
    chosen: int = 1
    bytes_per_weight: float = 2.0

    @property
    def attention(self) -> int:
        """Weights of the attention of one layer."""
        return 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)

    @property
    def expert(self) -> int:
        """Weights of one feed-forward block."""
        return self.matrices * self.hidden * self.intermediate

    @property
    def parameters(self) -> int:
        """All weights, input embedding and head both counted."""
        return self.layers * (self.attention + self.experts * self.expert) + (
            2 * self.hidden * self.vocab_size
        )

    def seconds(self, device: Device, tokens: int, context: int, batch: int = 1) -> float:
        """Return how long a pass takes that feeds ``tokens`` of each of ``batch`` texts.

        Parameters
        ----------
        device : Device
            Where.
        tokens : int
            Fed of each text, such as gamma + 1.
        context : int
            Tokens of each text that are cached.
        batch : int
            Texts.
        """
        fed = tokens * batch
        # With few tokens not all experts are chosen by one, and the others are not read.
        read = self.experts * (1 - (1 - self.chosen / self.experts) ** fed)
        head = self.hidden * self.vocab_size
        weights = self.layers * (self.attention + read * self.expert) + head
        cached = self.layers * 2 * self.kv_heads * self.head_dim * batch * (context + tokens)
        used = self.layers * (self.attention + self.chosen * self.expert) + head
        seen = self.layers * 2 * self.heads * self.head_dim * (context + tokens)
        reading = (weights + cached) * self.bytes_per_weight / device.bandwidth
        computing = 2 * fed * (used + seen) / device.flops
        peak = max(reading, computing) / (device.count * device.efficiency)
        return peak + self.layers * device.seconds_per_layer


@dataclass(frozen=True)
class Estimate:
    """What :func:`simulate` found; print it for the numbers with their assumptions.

    Parameters
    ----------
    gain : float
        Target-only time ÷ speculative time, per token and text.
    tokens_per_pass : float
        Of the target.
    c, v : float
        Draft pass ÷ target pass, and verification pass ÷ target pass.
    target_seconds, round_seconds : float
        A target pass of one token; a whole round.
    assumptions : str
        In one line.
    """

    gain: float
    tokens_per_pass: float
    c: float
    v: float
    target_seconds: float
    round_seconds: float
    gamma: int
    assumptions: str

    @property
    def break_even_alpha(self) -> float:
        """The smallest alpha that would not lose; NaN if none would."""
        return break_even_alpha(self.gamma, self.c, self.v)

    def __str__(self) -> str:
        return (
            f"gain {self.gain:.2f}× ({self.tokens_per_pass:.2f} tokens per target pass, "
            f"c = {format_number(self.c, digits=2)}, v = {self.v:.2f}; a target pass takes "
            f"{1000 * self.target_seconds:.1f} ms)\nassumed: {self.assumptions}"
        )


def simulate(
    target: Shape,
    draft: Shape | None,
    device: Device,
    *,
    gamma: int = 4,
    alpha: float | None = None,
    tokens_per_pass: float | None = None,
    nodes: int | None = None,
    context: int = 512,
    batch: int = 1,
) -> Estimate:
    """Estimate the gain of speculative decoding from shapes and device figures.

    Parameters
    ----------
    target, draft : Shape
        ``draft`` None: proposals that cost nothing (prompt lookup).
    device : Device
        Runs both.
    gamma : int
        Draft passes a round: the length of the chain, or the depth of the tree.
    alpha : float, optional
        Chance that a proposal is kept, the same at each position; gives the tokens per pass.
    tokens_per_pass : float, optional
        Known from elsewhere; give this or ``alpha``.
    nodes : int, optional
        Tokens that are verified in one pass, where a tree proposes more than ``gamma``.
    context, batch : int
        Tokens cached of each text, and texts.

    Raises
    ------
    ValueError
        If a setting is out of range, or not exactly one of ``alpha`` and ``tokens_per_pass`` is
        given.

    Examples
    --------
    >>> found = simulate(
    ...     SHAPES["Llama 3.1 70B"], SHAPES["Llama 3.2 1B"], replace(DEVICES["H100"], count=4),
    ...     gamma=5, alpha=0.8,
    ... )
    >>> 2 < found.gain < 3.7
    True
    """
    checks.whole("gamma", gamma, 1)
    checks.whole("context", context, 0)
    checks.whole("batch", batch, 1)
    checks.instance("target", target, Shape)
    checks.instance("device", device, Device)
    if draft is not None:
        checks.instance("draft", draft, Shape)
    if nodes is not None:
        checks.whole("nodes", nodes, gamma)
    if (alpha is None) == (tokens_per_pass is None):
        raise ValueError("give alpha or tokens_per_pass, one of the two")
    if alpha is not None:
        checks.number("alpha", alpha, at_least=0, at_most=1)
        tokens_per_pass = float(expected_tokens(alpha, gamma))
    assert tokens_per_pass is not None
    checks.number("tokens_per_pass", tokens_per_pass, at_least=1, at_most=gamma + 1)
    verified = 1 + (gamma if nodes is None else nodes)
    one = target.seconds(device, 1, context, batch)
    verify = target.seconds(device, verified, context, batch)
    step = 0.0 if draft is None else draft.seconds(device, 1, context, batch)
    spent = gamma * step + verify
    kept = f"{tokens_per_pass:g} tokens per pass, as given"
    if alpha is not None:
        kept = f"alpha = {alpha:g}"
    name = "nothing" if draft is None else draft.name
    assumptions = (
        f"{target.name} with {name}, {device.count} × {device.name} at {device.efficiency:.0%} of "
        f"its peaks, {1e6 * device.seconds_per_layer:g} µs a layer, {target.bytes_per_weight:g} "
        f"bytes a weight, gamma {gamma}, {verified} tokens verified, context {context}, batch "
        f"{batch}, {kept}; drawing and accepting cost nothing"
    )
    return Estimate(
        tokens_per_pass * one / spent, tokens_per_pass, step / one, verify / one, one, spent, gamma,
        assumptions,
    )  # fmt: skip


DEVICES = {
    device.name: device
    for device in (
        Device("A100", 312e12, 2.04e12),
        Device("H100", 989e12, 3.35e12),
        Device("H200", 989e12, 4.8e12),
        Device("RTX 3090", 71e12, 0.936e12),
        Device("TPU v4", 275e12, 1.2e12),
    )
}
"""Makers' peaks a second, not measured here: dense half-precision operations, bytes from memory."""

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("Llama 3.1 70B", 80, 8192, 28672, 64, 8, 128, 128256),
        Shape("Llama 3.1 8B", 32, 4096, 14336, 32, 8, 128, 128256),
        Shape("Llama 3.2 1B", 16, 2048, 8192, 32, 8, 64, 128256),
        Shape("Mixtral 8x7B", 32, 4096, 14336, 32, 8, 128, 32000, experts=8, chosen=2),
        Shape("Vicuna 13B", 40, 5120, 13824, 40, 40, 128, 32000),
        Shape("Llama 68M", 2, 768, 3072, 12, 12, 64, 32000),
        Shape("EAGLE head of Vicuna 13B", 1, 5120, 13824, 40, 40, 128, 32000),
        Shape("EAGLE-3 head of Llama 3.1 8B", 1, 4096, 14336, 32, 8, 128, 32000),
        Shape("Chinchilla 70B", 80, 8192, 32768, 64, 64, 128, 32000, matrices=2),
        Shape("Chinchilla's draft 4B", 8, 6144, 24576, 48, 48, 128, 32000, matrices=2),
        Shape("T5-XXL decoder", 24, 4096, 10240, 128, 128, 64, 32128),
        Shape("T5-small decoder", 8, 512, 1024, 12, 12, 64, 32128),
    )
}
"""After published configs, not checked against them here.

A T5 decoder's cross-attention is counted as twice the heads.
"""


@dataclass(frozen=True)
class Published:
    """A measured result, and what :func:`simulate` says of its setting.

    Parameters
    ----------
    source, what : str
        Where it stands, and what was measured: "gain" or "c".
    value : float
        As published.
    simulated : float
        By the figures above.
    """

    source: str
    what: str
    value: float
    simulated: float

    @property
    def error(self) -> float:
        """Simulated ÷ published, less 1."""
        return self.simulated / self.value - 1

    def __str__(self) -> str:
        return (
            f"{self.source}: {self.what} {self.value:.2f} published, {self.simulated:.2f} "
            f"simulated ({self.error:+.0%})"
        )


def published() -> Sequence[Published]:
    """Return published results beside the simulator's, each with its error.

    Examples
    --------
    >>> print(published()[0])  # doctest: +SKIP
    Leviathan et al. 2023, T5-XXL with T5-small, gamma 7, alpha .75: gain 3.40 published, …
    """
    tpus = replace(DEVICES["TPU v4"], count=16)
    a100, h100 = DEVICES["A100"], DEVICES["H100"]
    vicuna, eagle = SHAPES["Vicuna 13B"], SHAPES["EAGLE head of Vicuna 13B"]
    t5 = simulate(
        SHAPES["T5-XXL decoder"], SHAPES["T5-small decoder"], DEVICES["TPU v4"], gamma=7,
        alpha=0.75, context=128,
    )  # fmt: skip
    chinchilla = simulate(
        SHAPES["Chinchilla 70B"], SHAPES["Chinchilla's draft 4B"], tpus, alpha=0.6
    )
    rows = [
        Published("Leviathan et al. 2023, T5-XXL with T5-small, gamma 7, alpha .75", "gain", 3.4,
                  t5.gain),
        Published("Chen et al. 2023, Chinchilla 70B with a draft of 4B", "c", 1.8 / 14.1,
                  chinchilla.c),
    ]  # fmt: skip
    measured = (
        ("small draft model", SHAPES["Llama 68M"], 1.92, 2.24, 5, None),
        ("prompt lookup", None, 1.74, 1.80, 10, None),
        ("EAGLE", eagle, 3.05, 3.96, 5, 25),
        ("EAGLE-2", eagle, 4.22, 4.83, 6, 59),
        ("EAGLE-3", eagle, 5.51, 6.62, 7, 59),
    )
    for name, draft, gain, kept, gamma, nodes in measured:
        found = simulate(vicuna, draft, a100, gamma=gamma, tokens_per_pass=kept, nodes=nodes)
        rows.append(Published(f"Vicuna 13B, {name}", "gain", gain, found.gain))
    llama, head = SHAPES["Llama 3.1 8B"], SHAPES["EAGLE-3 head of Llama 3.1 8B"]
    few, many = (simulate(llama, head, h100, gamma=3, alpha=0.7, batch=batch) for batch in (2, 64))
    shrinks = Published(
        "EAGLE-3 on an H100, gain at batch 64 ÷ at batch 2", "ratio", 1.38 / 1.81,
        many.gain / few.gain,
    )  # fmt: skip
    return [*rows, shrinks]
