"""Other people's samplers as subjects of an audit."""

from specviz.lossless.audit.adapters import server_log, transformers
from specviz.lossless.audit.adapters.function import Function, one_by_one

__all__ = ["Function", "one_by_one", "server_log", "transformers"]
