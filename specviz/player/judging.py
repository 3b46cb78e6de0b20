"""What each rule asks, in a few words. This is ``js/judging.js`` in Python."""

from __future__ import annotations

from specviz.player.run import Run

_CHANCE = {"rejection": "min(1, p(x) / q(x))", "lenience": "min(1, p(x) / (l q(x)))"}
_ASKS = {
    "rejection": "u < p / q, one by one",
    "lenience": "u < p / (l q)",
    "block": "last to pass decides",
    "typical": "is p enough?",
    "threshold": "is p enough?",
}


def asks(run: Run) -> str:
    """Return what decides, as the phase says it."""
    others = "u < its chance" if run.judged_by_u else "the target's own?"
    return _ASKS.get(str(run.header["rule"]), others)


def looks_at_p(run: Run) -> bool:
    """Whether the rule looks only at how likely the target finds a proposal."""
    return run.header["rule"] in ("typical", "threshold")


def chance(run: Run) -> str:
    """Return what u is compared with."""
    return _CHANCE.get(str(run.header["rule"]), "the chance that the rule gives it")


def about_to(run: Run, proposed: bool) -> str:
    """Return what follows the target's pass."""
    if not proposed:
        return "Next, the target draws a token from its own distribution."
    if run.header["rule"] == "block":
        return (
            "Next, every proposal gets a uniform draw u and passes if u falls below its h: "
            "the last one that passes decides, and everything up to it is kept."
        )
    if run.judged_by_u:
        return (
            f"Next, every proposal x gets its own uniform draw u: it is kept if u < {chance(run)}."
        )
    if looks_at_p(run):
        return "Next, the rule asks of every proposal whether the target's p for it is enough."
    return "Next, every proposal is compared with the target's own token there."


def takes_the_place(run: Run) -> str:
    """Return where the token after a rejection comes from, as the phase says it."""
    if run.header["rule"] == "block":
        return "from what p has left"
    if run.judged_by_u:
        return "from the residual"
    return "from the target's p" if looks_at_p(run) else "the target's own"
