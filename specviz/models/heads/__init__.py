"""Extra heads that read a target's hidden states: Medusa's and EAGLE's, and their files."""

from specviz.models.heads.config import EagleConfig, HeadsError, MedusaConfig, fingerprint
from specviz.models.heads.eagle import EagleCache, EagleHead
from specviz.models.heads.files import load_heads, save_heads
from specviz.models.heads.medusa import MedusaHeads

__all__ = [
    "EagleCache",
    "EagleConfig",
    "EagleHead",
    "HeadsError",
    "MedusaConfig",
    "MedusaHeads",
    "fingerprint",
    "load_heads",
    "save_heads",
]
