"""Is the output law exactly the target's? By enumeration where possible, by tests where not.

A statistical test never shows that two laws are equal: a report says what would have been caught.
"""

from specviz.lossless import anytime
from specviz.lossless.anytime import EProcess, peeking
from specviz.lossless.distance import Distance
from specviz.lossless.exact import (
    Law,
    enumerate_law,
    outcomes,
    target_law,
    total_variation,
)
from specviz.lossless.findings import Answer, Finding
from specviz.lossless.identity import Identity, identity
from specviz.lossless.law import ConditionalLaw
from specviz.lossless.long_texts import battery_of_scores
from specviz.lossless.one_sample import battery
from specviz.lossless.power import (
    TablePower,
    detectable_tv,
    noise_floor,
    power_against,
    samples_for_tv,
)
from specviz.lossless.preflight import Independence
from specviz.lossless.reference import two_sample
from specviz.lossless.report import BatteryReport, Detectable, Impossible, Verdict
from specviz.lossless.sample import END, Sample
from specviz.lossless.scores import Scores, score_tokens
from specviz.lossless.tree import PrefixTree, grow
from specviz.lossless.witness import Witness

__all__ = [
    "END",
    "Answer",
    "BatteryReport",
    "ConditionalLaw",
    "Detectable",
    "Distance",
    "EProcess",
    "Finding",
    "Identity",
    "Impossible",
    "Independence",
    "Law",
    "PrefixTree",
    "Sample",
    "Scores",
    "TablePower",
    "Verdict",
    "Witness",
    "anytime",
    "battery",
    "battery_of_scores",
    "detectable_tv",
    "enumerate_law",
    "grow",
    "identity",
    "noise_floor",
    "outcomes",
    "peeking",
    "power_against",
    "samples_for_tv",
    "score_tokens",
    "target_law",
    "total_variation",
    "two_sample",
]
