"""Arrays by what they hold; their shapes stand beside them in comments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
"""Token ids, positions, nodes."""

FloatArray = NDArray[np.float64]
"""Distributions, logits, uniforms."""

BoolArray = NDArray[np.bool_]
"""Masks."""
