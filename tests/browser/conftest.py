"""One JupyterLab for all tests of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.lab import Lab, running


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running(tmp_path_factory.mktemp("lab")) as server:
        yield server
