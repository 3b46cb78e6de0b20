"""Benchmarks: ways to decode side by side, and how fast texts are drawn for the statistics."""

from specviz.bench.measure import PLAIN, SPECULATIVE, Bench, Way, measure, pass_costs
from specviz.bench.replicas import Timing, time_long_texts, time_short_texts, time_tables

__all__ = [
    "PLAIN",
    "SPECULATIVE",
    "Bench",
    "Timing",
    "Way",
    "measure",
    "pass_costs",
    "time_long_texts",
    "time_short_texts",
    "time_tables",
]
