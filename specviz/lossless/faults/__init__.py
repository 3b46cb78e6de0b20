"""Planted faults: each classic bug of a speculative decoder as a switch.

A fault replaces one part of the shipped loop (the rule, what the drafter reports, the draws, or
the target) by a wrong one and leaves the rest as it is. So it can be run like any decoder, its
induced distribution can be enumerated, and a test that is worth anything must catch it.
"""

from specviz.lossless.faults.catalogue import FAULTS, Fault, get_fault
from specviz.lossless.faults.diagnose import Diagnosis, diagnose
from specviz.lossless.faults.power_table import FaultPower, FaultTable, table
from specviz.lossless.faults.run import expected_tv, faulty_distribution, run_with_fault

__all__ = [
    "FAULTS",
    "Diagnosis",
    "Fault",
    "FaultPower",
    "FaultTable",
    "diagnose",
    "expected_tv",
    "faulty_distribution",
    "get_fault",
    "run_with_fault",
    "table",
]
