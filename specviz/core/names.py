"""What drafters, phases and verdicts are called: one name each, wherever people meet it.

A drafter has one name in three spellings: ``draft_model`` in a trace, ``draft-model`` on the
command line and among the recorded runs, and its label, "draft model", in menus and captions.
The rules' names are those of :data:`specviz.core.rules.RULES`.
"""

from __future__ import annotations

DRAFTERS = {
    "draft_model": "draft model", "prompt_lookup": "prompt lookup",
    "early_exit": "early exit", "medusa": "Medusa", "eagle": "EAGLE", "parallel": "parallel",
    "tree": "tree", "quantized": "quantized draft", "kv_projection": "KV projection",
    "combined": "combined", "target_only": "target alone",
}  # fmt: skip
"""Recorded name → label."""

WITHOUT_DRAFT_MODEL = ("target_only", "prompt_lookup", "early_exit", "medusa", "eagle", "parallel")

PHASES = ("draft", "verify", "decide", "close", "rollback")
"""Of a round, in order."""

VERDICTS = ("never examined", "accepted", "rejected")
"""By the number that a trace records."""

KINDS = ("plain", "correction", "bonus")
"""Of a closing token, by the number that a trace records."""


def typed(name: str) -> str:
    """Return a drafter's recorded name as it is typed on the command line.

    Examples
    --------
    >>> typed("draft_model")
    'draft-model'
    """
    return name.replace("_", "-")
