"""Other people's samplers as subjects of an audit."""

from specviz.lossless.adapters import server_log, transformers
from specviz.lossless.adapters.function import Function, one_by_one

__all__ = ["Function", "one_by_one", "server_log", "transformers"]
