"""Scale: many runs over any executor, and estimates for pairs that do not fit here."""

from specviz.scale.cost import DEVICES, SHAPES, Device, Estimate, Shape, published, simulate
from specviz.scale.sweep import Cell, SweepError, decode, sweep

__all__ = [
    "DEVICES",
    "SHAPES",
    "Cell",
    "Device",
    "Estimate",
    "Shape",
    "SweepError",
    "decode",
    "published",
    "simulate",
    "sweep",
]
