"""Compiles the index's kernel when the package is built: one C file into one shared library, without Python's headers.

No compiler is needed to install: without one, or when it fails, the package works with its numpy
reference, slowly, and `edgerag doctor` says so. EDGERAG_REQUIRE_KERNEL=1 makes it an error instead.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("edgerag/index/hnsw/kernel.c")
# No fast-math and no contraction: the kernel's sums are the reference's, bit for bit.
FLAGS = ["-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"]


class KernelBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel":
            return
        target = SOURCE.with_name("_kernel" + (".dylib" if sys.platform == "darwin" else ".so"))
        problem = compile_kernel(Path(self.root) / SOURCE, Path(self.root) / target)
        if problem:
            if os.environ.get("EDGERAG_REQUIRE_KERNEL"):
                raise RuntimeError(problem)
            self.app.display_warning(f"{problem} The index will be searched by numpy, slowly.")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(str(target))


def compile_kernel(source: Path, target: Path) -> str:
    """Compiles into ``target``, whole or not at all; returns what went wrong, or nothing."""
    compiler = shlex.split(os.environ.get("CC", ""))
    compiler = compiler or next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])
    if not compiler:
        target.unlink(missing_ok=True)
        return "There is no C compiler."
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        command = [*compiler, *FLAGS, "-o", str(temporary), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            target.unlink(missing_ok=True)
            return f"The C compiler failed: {done.stderr.strip()[-2000:]}"
        temporary.replace(target)
    except OSError as error:
        target.unlink(missing_ok=True)
        return f"The C compiler could not be run: {error}."
    finally:
        temporary.unlink(missing_ok=True)
    return ""
