"""Does the extra ``lab`` open and run a notebook? Run in a checkout where only it is installed."""

import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FIRST = Path("notebooks/00_start_here.ipynb")

notebook = nbformat.read(FIRST, as_version=4)
# An exercise that nobody has solved yet fails with an AssertionError, and nothing else may fail.
NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
for cell in notebook.cells:
    for output in cell.get("outputs", []):
        if output.output_type == "error" and output.ename != "AssertionError":
            sys.exit(f"{FIRST}: {output.ename}: {output.evalue}\n{cell.source}")

token, port = secrets.token_hex(8), 18888
lab = subprocess.Popen(
    [
        *(sys.executable, "-m", "jupyter", "lab", str(FIRST), "--no-browser", "--allow-root"),
        *(f"--port={port}", f"--IdentityProvider.token={token}", "--ServerApp.port_retries=0"),
    ]
)
try:
    for _ in range(60):
        time.sleep(1)
        try:
            address = f"http://127.0.0.1:{port}/lab/tree/{FIRST}?token={token}"
            with urllib.request.urlopen(address, timeout=5) as answer:
                print("JupyterLab answers:", answer.status)
                break
        except OSError:
            continue
    else:
        sys.exit("JupyterLab did not answer within a minute")
finally:
    lab.terminate()
    lab.wait()
