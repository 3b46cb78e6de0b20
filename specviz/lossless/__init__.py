"""Losslessness: by enumeration where possible, by tests of emitted tokens where not.

A statistical test never shows that two distributions are equal: a report says what would have been
caught.
"""

from specviz.lossless import faults
from specviz.lossless.audit import adapters
from specviz.lossless.audit.difference import Difference, first_difference
from specviz.lossless.audit.gathering import AuditError
from specviz.lossless.audit.recorded_texts import Recorded, read_jsonl, write_jsonl
from specviz.lossless.audit.two_sample import two_sample
from specviz.lossless.audit.verifier import VerifierError, audit_verifier
from specviz.lossless.exact.enumerate import (
    Distribution,
    enumerate_distribution,
    outcomes,
    target_distribution,
    total_variation,
)
from specviz.lossless.exact.identity import Identity, identity
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport, Detectable, Impossible, Verdict
from specviz.lossless.report.eprocess_path import EProcessPath
from specviz.lossless.report.table_summary import TableSeen
from specviz.lossless.statistics import eprocess as anytime
from specviz.lossless.statistics.battery import battery, battery_of_scores
from specviz.lossless.statistics.conditional_distribution import ConditionalDistribution
from specviz.lossless.statistics.distance import Distance, Witness
from specviz.lossless.statistics.eprocess import (
    Cells,
    EProcess,
    cells_of_position,
    cells_of_texts,
    peeking,
)
from specviz.lossless.statistics.findings import Answer, Finding
from specviz.lossless.statistics.independence import Independence
from specviz.lossless.statistics.power import (
    TablePower,
    detectable_tv,
    noise_floor,
    power_against,
    samples_for_tv,
)
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow
from specviz.lossless.statistics.sample import END, Sample
from specviz.lossless.statistics.scores import Scores, score_tokens

__all__ = [
    "END",
    "Answer",
    "AuditError",
    "AuditReport",
    "BatteryReport",
    "Cells",
    "ConditionalDistribution",
    "Detectable",
    "Difference",
    "Distance",
    "Distribution",
    "EProcess",
    "EProcessPath",
    "Finding",
    "Identity",
    "Impossible",
    "Independence",
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
    "audit_verifier",
    "battery",
    "battery_of_scores",
    "cells_of_position",
    "cells_of_texts",
    "detectable_tv",
    "enumerate_distribution",
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
    "target_distribution",
    "total_variation",
    "two_sample",
    "write_jsonl",
]
