"""Benchmarks: ways to decode side by side, and how fast texts are drawn for the statistics."""

from specviz.bench.replicas import Timing, time_long_texts, time_short_texts, time_tables
from specviz.bench.ways import PLAIN, Row, compare, table

__all__ = [
    "PLAIN",
    "Row",
    "Timing",
    "compare",
    "table",
    "time_long_texts",
    "time_short_texts",
    "time_tables",
]
