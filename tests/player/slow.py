"""A draft model that takes its time, so that a run can be watched, changed and cancelled."""

from __future__ import annotations

import time
from typing import Any

import specviz as sv
from tests.drafters.changed import Changed


class Slow(Changed, sv.DraftModel):
    """As DraftModel, but each round takes at least so many seconds."""

    name = "slow"
    seconds = 0.05

    def change(self, inner: Any, context: Any, draws: Any) -> sv.Draft:
        time.sleep(self.seconds)
        return inner.propose(context, draws)
