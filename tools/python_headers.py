"""The headers of a Python that an extension is compiled for, whichever Python runs this and for whichever machine.

They are those of any CPython of that version that this machine has. Of its headers only pyconfig.h depends on the
machine it was made for; what extensions take from it are sizes and a few switches, and the compiler for the other
machine confirms each of them. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from building import MACHINE, Missing, complaint, install_command

# As pyconfig.h and C call them; <Python.h> includes what declares the types.
_SIZES = {
    "SHORT": "short", "INT": "int", "LONG": "long", "LONG_LONG": "long long", "VOID_P": "void *", "SIZE_T": "size_t",
    "FLOAT": "float", "DOUBLE": "double", "LONG_DOUBLE": "long double", "WCHAR_T": "wchar_t", "_BOOL": "bool",
    "OFF_T": "off_t", "TIME_T": "time_t", "PID_T": "pid_t", "UINTPTR_T": "uintptr_t", "FPOS_T": "fpos_t",
    "PTHREAD_T": "pthread_t", "PTHREAD_KEY_T": "pthread_key_t",
}  # fmt: skip
_ALIGNMENTS = {"LONG": "long", "SIZE_T": "size_t", "MAX_ALIGN_T": "std::max_align_t"}


def include_flags(version: str, machine: str, compiler: Sequence[str], scratch: Path) -> list[str]:
    """The compiler's options that find the headers of Python ``version`` ("3.12"), valid for ``machine``.

    ``scratch`` may get a link that they need. Raises Missing where there are none, or none that are right.
    """
    wrong = ""
    for include in _folders(version):
        flags = [f"-I{include}"]
        # Debian's pyconfig.h includes the one of the machine that is compiled for, out of a folder of its name.
        own = include.parent / f"{MACHINE}-linux-gnu" / include.name
        if machine != MACHINE and own.is_dir():
            link = scratch / "python" / f"{machine}-linux-gnu" / include.name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(own)
            flags.append(f"-I{link.parent.parent}")
        wrong = complaint(compiler, "-std=c++14", *flags, code=_assertions(version))
        if not wrong:
            return flags
    if wrong:
        raise Missing(f"The headers of Python {version} are not those of an ordinary one on {machine}: {wrong}")
    how = (
        install_command() if version == _this() else f"install CPython {version} with its headers; any is found on PATH"
    )
    raise Missing(f"The headers of Python {version} (Python.h) are missing: {how}")


def _assertions(version: str) -> str:
    major, minor = version.split(".")
    lines = [
        "#include <Python.h>",
        "#include <cstddef>",
        "#include <pthread.h>",
        f'static_assert(PY_MAJOR_VERSION == {major} && PY_MINOR_VERSION == {minor}, "its version");',
        "#if defined(Py_GIL_DISABLED) || defined(Py_DEBUG) || defined(WORDS_BIGENDIAN)",
        "#error a debug build, one without its global lock, or big-endian",
        "#endif",
    ]
    for prefix, operator, types in (("SIZEOF", "sizeof", _SIZES), ("ALIGNOF", "alignof", _ALIGNMENTS)):
        for name, kind in types.items():
            macro = f"{prefix}_{name}"
            lines += [f"#ifdef {macro}", f'static_assert({macro} == {operator}({kind}), "{macro}");', "#endif"]
    return "\n".join(lines)


def _folders(version: str) -> Iterator[Path]:
    """Those of this interpreter, of the others on PATH, and of those that pyenv and uv keep."""
    seen = set()
    if version == _this():
        seen.add(Path(sysconfig.get_path("include")))
        yield from (each for each in seen if (each / "Python.h").is_file())
    for python in _interpreters(version):
        code = "import sysconfig; print(sysconfig.get_path('include'))"
        done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)
        folder = Path(done.stdout.strip())
        if done.returncode == 0 and folder not in seen and (folder / "Python.h").is_file():
            seen.add(folder)
            yield folder


def _interpreters(version: str) -> Iterator[Path]:
    places = [Path(each) for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places += sorted(pyenv.glob(f"versions/{version}.*/bin"))
    places += sorted((Path.home() / ".local/share/uv/python").glob(f"cpython-{version}.*/bin"))
    for place in places:
        python = place / f"python{version}"
        if os.access(python, os.X_OK):
            yield python


def _this() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
