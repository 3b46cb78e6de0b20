"""What every test stands on: one thread, no display, no network, fixed examples."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before anything imports torch, transformers or matplotlib: they read these once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "Agg"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background jobs have it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every run and every machine; time says nothing about right or wrong.
settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def root() -> Path:
    """Top folder of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One chromium for all tests of a session: playwright runs once a process."""
    from playwright.sync_api import sync_playwright

    from tests.browser.pages import EXECUTABLE, FLAGS

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=EXECUTABLE, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse any Python connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
            raise PermissionError(f"a test tried to reach {address[0]!r}; tests run offline")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
