"""See, replay and test speculative decoding.

Decoding produces evidence, a `Trace`; everything else reads it.

>>> import specviz as sv
>>> pair = sv.load()                                          # doctest: +SKIP
>>> trace = sv.generate(pair, "Once upon a time", gamma=4)    # doctest: +SKIP
>>> trace.rounds[0].nodes[0].ratio                            # doctest: +SKIP

Throughout, p is the target's distribution and q the draft's. Importing the package is light: a
name is looked up, and with it torch or matplotlib loaded, the first time it is used. A recorded
trace can be opened, read and drawn where torch is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from specviz._version import __version__

if TYPE_CHECKING:
    from specviz import bench, figures, lossless, scale, theory
    from specviz.api.generate import generate, stream
    from specviz.core import rules, tabular
    from specviz.core.contract import Draft, Sampling
    from specviz.core.trace.trace import Trace
    from specviz.drafters.combined import Combined
    from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
    from specviz.drafters.eagle import DynamicTree, Eagle
    from specviz.drafters.early_exit import EarlyExit
    from specviz.drafters.kv_projection import KVProjection
    from specviz.drafters.medusa import Medusa
    from specviz.drafters.parallel import Parallel
    from specviz.drafters.prompt_lookup import PromptLookup
    from specviz.drafters.quantized import Quantized
    from specviz.drafters.target_only import TargetOnly
    from specviz.drafters.tree import Tree
    from specviz.exercises import exercise
    from specviz.figures.drawing import save
    from specviz.figures.plots.overlap_map import overlap_map
    from specviz.figures.report_page import report
    from specviz.lossless.audit.audit import audit
    from specviz.lossless.audit.verifier import audit_verifier
    from specviz.models.load import load
    from specviz.models.pair import Pair
    from specviz.player.editor import one_position, one_position_html
    from specviz.player.film import film
    from specviz.player.live import play_live
    from specviz.player.page import to_html
    from specviz.player.still import still
    from specviz.player.watch import watch, watch_html
    from specviz.player.widget import play, race
    from specviz.recordings.shelf import recorded

__all__ = [
    "AdaptiveGamma",
    "Combined",
    "Draft",
    "DraftModel",
    "DynamicTree",
    "Eagle",
    "EarlyExit",
    "KVProjection",
    "Medusa",
    "Pair",
    "Parallel",
    "PromptLookup",
    "Quantized",
    "Sampling",
    "TargetOnly",
    "Trace",
    "Tree",
    "__version__",
    "audit",
    "audit_verifier",
    "bench",
    "exercise",
    "figures",
    "film",
    "generate",
    "load",
    "lossless",
    "one_position",
    "one_position_html",
    "overlap_map",
    "play",
    "play_live",
    "race",
    "recorded",
    "report",
    "rules",
    "save",
    "scale",
    "still",
    "stream",
    "tabular",
    "theory",
    "to_html",
    "watch",
    "watch_html",
]

# Where each lazy name lives: "module:name", or the module alone where the name stands for it.
_HOMES = {
    "AdaptiveGamma": "specviz.drafters.draft_model:AdaptiveGamma",
    "Combined": "specviz.drafters.combined:Combined",
    "Draft": "specviz.core.contract:Draft",
    "DraftModel": "specviz.drafters.draft_model:DraftModel",
    "DynamicTree": "specviz.drafters.eagle:DynamicTree",
    "Eagle": "specviz.drafters.eagle:Eagle",
    "EarlyExit": "specviz.drafters.early_exit:EarlyExit",
    "KVProjection": "specviz.drafters.kv_projection:KVProjection",
    "Medusa": "specviz.drafters.medusa:Medusa",
    "Pair": "specviz.models.pair:Pair",
    "Parallel": "specviz.drafters.parallel:Parallel",
    "PromptLookup": "specviz.drafters.prompt_lookup:PromptLookup",
    "Quantized": "specviz.drafters.quantized:Quantized",
    "Sampling": "specviz.core.contract:Sampling",
    "TargetOnly": "specviz.drafters.target_only:TargetOnly",
    "Trace": "specviz.core.trace.trace:Trace",
    "Tree": "specviz.drafters.tree:Tree",
    "audit": "specviz.lossless.audit.audit:audit",
    "audit_verifier": "specviz.lossless.audit.verifier:audit_verifier",
    "bench": "specviz.bench",
    "exercise": "specviz.exercises:exercise",
    "figures": "specviz.figures",
    "film": "specviz.player.film:film",
    "generate": "specviz.api.generate:generate",
    "load": "specviz.models.load:load",
    "lossless": "specviz.lossless",
    "one_position": "specviz.player.editor:one_position",
    "one_position_html": "specviz.player.editor:one_position_html",
    "overlap_map": "specviz.figures.plots.overlap_map:overlap_map",
    "play": "specviz.player.widget:play",
    "play_live": "specviz.player.live:play_live",
    "race": "specviz.player.widget:race",
    "recorded": "specviz.recordings.shelf:recorded",
    "report": "specviz.figures.report_page:report",
    "rules": "specviz.core.rules",
    "scale": "specviz.scale",
    "save": "specviz.figures.drawing:save",
    "still": "specviz.player.still:still",
    "stream": "specviz.api.generate:stream",
    "tabular": "specviz.core.tabular",
    "theory": "specviz.theory",
    "to_html": "specviz.player.page:to_html",
    "watch": "specviz.player.watch:watch",
    "watch_html": "specviz.player.watch:watch_html",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'specviz' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
