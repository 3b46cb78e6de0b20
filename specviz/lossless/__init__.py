"""Is the output law exactly the target's? By enumeration where possible, by tests where not.

A statistical test never shows that two laws are equal: a report says what would have been caught.
"""

from specviz.lossless import adapters, anytime, faults
from specviz.lossless.anytime import EProcess, peeking
from specviz.lossless.audit_report import AuditReport
from specviz.lossless.auditing import audit
from specviz.lossless.difference import Difference, first_difference
from specviz.lossless.distance import Distance
from specviz.lossless.evidence import Evidence
from specviz.lossless.exact import (
    Law,
    enumerate_law,
    outcomes,
    target_law,
    total_variation,
)
from specviz.lossless.findings import Answer, Finding
from specviz.lossless.gathering import AuditError
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
from specviz.lossless.recorded import Recorded, read_jsonl, write_jsonl
from specviz.lossless.reference import two_sample
from specviz.lossless.report import BatteryReport, Detectable, Impossible, Verdict
from specviz.lossless.sample import END, Sample
from specviz.lossless.scores import Scores, score_tokens
from specviz.lossless.seen import TableSeen
from specviz.lossless.streams import Cells, cells_of_position, cells_of_texts
from specviz.lossless.tree import PrefixTree, grow
from specviz.lossless.verifier import VerifierError, audit_verifier
from specviz.lossless.witness import Witness

__all__ = [
    "END",
    "Answer",
    "AuditError",
    "AuditReport",
    "BatteryReport",
    "Cells",
    "ConditionalLaw",
    "Detectable",
    "Difference",
    "Distance",
    "EProcess",
    "Evidence",
    "Finding",
    "Identity",
    "Impossible",
    "Independence",
    "Law",
    "PrefixTree",
    "Recorded",
    "Sample",
    "Scores",
    "TablePower",
    "TableSeen",
    "Verdict",
    "VerifierError",
    "Witness",
    "adapters",
    "anytime",
    "audit",
    "audit_verifier",
    "battery",
    "battery_of_scores",
    "cells_of_position",
    "cells_of_texts",
    "detectable_tv",
    "enumerate_law",
    "faults",
    "first_difference",
    "grow",
    "identity",
    "noise_floor",
    "outcomes",
    "peeking",
    "power_against",
    "read_jsonl",
    "samples_for_tv",
    "score_tokens",
    "target_law",
    "total_variation",
    "two_sample",
    "write_jsonl",
]
