"""A real JupyterLab in a real browser: started once a session, killed at its end."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import nbformat
from nbformat.sign import NotebookNotary

ROOT = Path(__file__).parents[2]
PATIENCE = 60_000  # milliseconds; machines are shared

# What JupyterLab complains about by itself, as when a page is left while it asks its debugger.
NOT_OURS = ("debugger state", "Canceled future")

KERNEL = (
    "const panel = window.jupyterapp.shell.currentWidget; const session = panel.sessionContext;"
)
IDLE = f"""() => {{ try {{ {KERNEL} const kernel = session.session?.kernel;
  return session.isReady && kernel?.connectionStatus === 'connected' && kernel?.status === 'idle';
}} catch {{ return false; }} }}"""


class Lab:
    """The server: its address, its folder of notebooks."""

    def __init__(self, folder: Path, port: int, token: str) -> None:
        self.folder = folder
        self.address = f"http://127.0.0.1:{port}"
        self.token = token

    def write(self, name: str, *cells: str) -> str:
        """Write a notebook of code cells; return its path on the server."""
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(book, self.folder / name)
        return name

    def write_saved(self, name: str, widget: Any) -> str:
        """Write a trusted notebook that was saved with a widget's state, to be opened only."""
        from ipywidgets.embed import dependency_state

        view = {"model_id": widget.model_id, "version_major": 2, "version_minor": 0}
        saved = {
            "version_major": 2,
            "version_minor": 0,
            "state": dependency_state([widget], drop_defaults=False),
        }
        shown = nbformat.v4.new_output(
            "display_data", {"application/vnd.jupyter.widget-view+json": view}
        )
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell("player", outputs=[shown], execution_count=1)],
            metadata={
                "kernelspec": {"name": "python3", "display_name": "Python 3"},
                "widgets": {"application/vnd.jupyter.widget-state+json": saved},
            },
        )
        nbformat.write(book, self.folder / name)
        NotebookNotary(data_dir=str(self.folder.parent / "data")).sign(book)
        return name

    def url(self, name: str) -> str:
        """Where a notebook opens, in a workspace of its own."""
        workspace = secrets.token_hex(4)
        return f"{self.address}/lab/workspaces/{workspace}/tree/{name}?reset&token={self.token}"

    def ask(self, path: str) -> Any:
        """Return what the server's interface says."""
        request = urllib.request.Request(
            f"{self.address}/api/{path}", headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)


@contextmanager
def running(folder: Path) -> Iterator[Lab]:
    """Start a server of its own, with folders of its own, and kill it with its kernels."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    token = secrets.token_hex(16)
    books = folder / "books"
    books.mkdir()
    own = {
        "HOME": folder,
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
        "IPYTHONDIR": folder / "ipython",
        "PYTHONPATH": ROOT,
        "OMP_NUM_THREADS": 1,
    }
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    news = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(news), "utf-8")
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={books}",
            "--LabApp.expose_app_in_browser=True", "--ServerApp.terminals_enabled=False",
            "--LabApp.extension_manager=readonly", "--LabApp.news_url=None",
        ],
        env=os.environ | {name: str(value) for name, value in own.items()},
        stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    lab = Lab(books, port, token)
    try:
        _wait(lab, process, folder / "log")
        yield lab
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)  # kernels are in sessions of their own
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(15)
        log.close()


def _wait(lab: Lab, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            lab.ask("status")
            return
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


class Book:
    """A notebook open in the browser; everything it asks for or complains about is accepted."""

    def __init__(self, browser: Any, lab: Lab, name: str, **options: Any) -> None:
        self.lab = lab
        self.name = name
        self.outside: list[str] = []
        self.complaints: list[str] = []
        self.context = browser.new_context(**options)
        self.context.route("**/*", self._guard)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda error: self._complain(str(error)))
        self.page.on(
            "console", lambda said: self._complain(said.text) if said.type == "error" else None
        )
        self.received: list[bytes] = []
        self.page.on("websocket", lambda one: one.on("framereceived", self._receive))
        self.page.goto(lab.url(name))
        self.ready()

    def _guard(self, route: Any) -> None:
        """Let through what is on this machine; write down and stop the rest."""
        url = route.request.url
        where = urlparse(url)
        if where.scheme in ("data", "blob") or url.startswith(self.lab.address):
            route.continue_()
            return
        self.outside.append(url)
        route.abort()

    def _complain(self, words: str) -> None:
        """Keep what is said, but for what JupyterLab says of itself."""
        if not any(known in words for known in NOT_OURS):
            self.complaints.append(words)

    def _receive(self, frame: bytes | str) -> None:
        self.received.append(frame.encode() if isinstance(frame, str) else frame)

    def ready(self) -> None:
        """Wait until the kernel is connected and idle."""
        self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget")
        self.page.wait_for_function(IDLE)

    def run_all(self) -> None:
        """Run every cell and wait until they are done."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.ready()

    def press(self, *keys: str) -> None:
        """Press keys with the first player focused."""
        self.page.focus(".svp")
        for key in keys:
            self.page.keyboard.press(key)

    def narrow(self) -> None:
        """Make the window a telephone's, the notebook alone in it."""
        self.page.set_viewport_size({"width": 320, "height": 640})
        self.page.evaluate(
            """() => { const { shell } = window.jupyterapp;
            shell.collapseLeft(); shell.mode = 'single-document'; }"""
        )
        self.until(lambda: self.page.locator(".svp").first.bounding_box()["width"] < 300)

    def save(self) -> None:
        """Save the notebook."""
        self.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        dirty = "window.jupyterapp.shell.currentWidget.context.model.dirty"
        self.until(lambda: not self.page.evaluate(dirty))

    def restart(self) -> None:
        """Restart the kernel without being asked."""
        self.page.evaluate(f"async () => {{ {KERNEL} await session.session.kernel.restart(); }}")
        self.ready()

    def python(self, code: str) -> str:
        """Run code in the notebook's kernel, beside its cells; return what it printed."""
        return str(
            self.page.evaluate(
                f"""async (code) => {{ {KERNEL}
                const made = session.session.kernel.requestExecute(
                  {{ code, store_history: false, stop_on_error: false }});
                let said = '';
                made.onIOPub = ({{ header, content }}) => {{
                  if (header.msg_type === 'stream') said += content.text;
                  if (header.msg_type === 'error') said += content.ename + ': ' + content.evalue;
                }};
                await made.done;
                return said.trim(); }}""",
                code,
            )
        )

    def models(self) -> int:
        """How many widget models the page holds."""
        return int(
            self.page.evaluate(
                """async () => { const panel = window.jupyterapp.shell.currentWidget;
                const { rendermime } = panel.content;
                const mimeType = 'application/vnd.jupyter.widget-view+json';
                const renderer = rendermime._factories[mimeType].createRenderer({ mimeType });
                const manager = await renderer._manager.promise;
                return Object.keys(manager._models).length; }"""
            )
        )

    def until(self, holds: Callable[[], object], polls: int = 600) -> None:
        """Wait until something holds."""
        for _ in range(polls):
            if holds():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"it did not come about; the page said {self.complaints[-3:]}")

    def close(self) -> None:
        """End its kernel and close it."""
        with suppress(Exception):  # the page may be gone; the server ends all kernels anyway
            self.page.evaluate(f"async () => {{ {KERNEL} await session.shutdown(); }}")
        self.context.close()
