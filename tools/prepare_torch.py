"""Makes `.venv-torch` for the tests of the torch embedder: torch's CPU build over what `.venv` holds.

    python3 tools/prepare_torch.py

Apart from `.venv`, so that every other test and the demo run as they do for a user who has no torch. Where the package
index gives a torch with CUDA for this version, name the CPU build's index by pip's own settings (PIP_INDEX_URL).
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from building import CHECKOUT, VENV, run, works

TORCH_VENV = CHECKOUT / ".venv-torch"
PYTHON = TORCH_VENV / "bin" / "python"
REQUIREMENTS = ("torch==2.13.0", "sentence-transformers>=3.0")


def main() -> int:
    if works("import sentence_transformers, torch, edgerag", python=PYTHON):
        return 0
    print("Making .venv-torch", flush=True)
    venv.create(TORCH_VENV, clear=True, with_pip=True, symlinks=True)
    own, shared = (site_packages(folder) for folder in (TORCH_VENV, VENV))
    # The packages of `.venv` behind its own; addsitedir, because an editable install is a .pth file there.
    own.joinpath("shared.pth").write_text(f"import site; site.addsitedir({str(shared)!r})\n", encoding="utf-8")
    try:
        run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS])
    except subprocess.CalledProcessError as error:
        print(f"\ntorch could not be installed (exit code {error.returncode}).", file=sys.stderr)
        return 1
    return 0


def site_packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python3*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
