"""Load models without a word on the screen, and leave everyone's settings as they were."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
from transformers.utils import logging as transformers_logging


@contextlib.contextmanager
def quiet(progress: bool) -> Iterator[None]:
    """Silence what loading would log, warn of or draw; afterwards all is as it was.

    Parameters
    ----------
    progress : bool
        Whether progress bars may still show, for models that take their time.
    """
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    bars, no_hub_bars = transformers_logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            if not progress:
                transformers_logging.disable_progress_bar()  # and the Hub's
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if not progress and bars:
                transformers_logging.enable_progress_bar()  # and the Hub's
            if not progress and no_hub_bars:
                disable_progress_bars()
