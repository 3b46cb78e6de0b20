"""Extra heads that read a target's hidden states (Medusa, EAGLE, parallel), and their files."""

from specviz.models.heads.config import (
    EagleConfig,
    HeadsError,
    MedusaConfig,
    ParallelConfig,
    fingerprint,
)
from specviz.models.heads.eagle import EagleCache, EagleHead
from specviz.models.heads.files import load_heads, save_heads
from specviz.models.heads.medusa import MedusaHeads
from specviz.models.heads.parallel import ParallelHead

__all__ = [
    "EagleCache",
    "EagleConfig",
    "EagleHead",
    "HeadsError",
    "MedusaConfig",
    "MedusaHeads",
    "ParallelConfig",
    "ParallelHead",
    "fingerprint",
    "load_heads",
    "save_heads",
]
