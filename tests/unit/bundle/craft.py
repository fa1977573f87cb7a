"""Small wheels, models and bundles, made in code."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from edgerag import __version__
from edgerag.bundle import create as creating
from edgerag.bundle.create import CarriedModel, Made, create
from edgerag.bundle.gather import this_target
from edgerag.bundle.keys import SecretKey
from edgerag.bundle.targets import BundleTarget

HERE = this_target()


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    tag: str = "py3-none-any",
    requires: Iterable[str] = (),
    headers: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """A wheel that pip installs: a module of its name, and ``files``."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n", *(f"{line}\n" for line in headers)]
    metadata += [f"Requires-Dist: {each}\n" for each in requires]
    contents = {
        f"{module}/__init__.py": f"version = {version!r}\n".encode(),
        **(files or {}),
        f"{info}/METADATA": "".join(metadata).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in contents.items())
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            # Not the time of day: the same files make the same wheel.
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return target


MAIN = b"import os, sys, pumps\nprint(os.environ['EDGERAG_HOME'], pumps.version, sys.argv[1:])\n"


def own_wheel(folder: Path, *, machine: str = "", main: bytes = MAIN) -> Path:
    """With a kernel for ``machine`` ("linux-x86_64"), or without one for any."""
    kernel = {"edgerag/index/hnsw/_kernel.so": machine.encode()} if machine else {}
    return wheel(
        folder,
        "edgerag",
        __version__,
        tag=f"py3-none-{machine.replace('-', '_') or 'any'}",
        requires=["pumps>=1", "valves; python_version < '3'"],
        files={"edgerag/__main__.py": main, **kernel},
        headers=["License-Expression: Apache-2.0"],
    )


def wheels(folder: Path) -> Path:
    """All that the made-up edgerag needs, and pip."""
    wheel(
        folder,
        "pumps",
        "1.2",
        headers=["License: MIT", "Project-URL: Homepage, https://pumps.example/"],
        requires=["seals[soft]>=2"],
        files={"pumps-1.2.dist-info/licenses/LICENSE": b"As you like.\n", "pumps/COPYING.txt": b"Of a part.\n"},
    )
    wheel(folder, "seals", "2.0", requires=["rubber; extra == 'soft'", "steel; extra == 'hard'"])
    wheel(folder, "rubber", "0.1", headers=["Classifier: License :: OSI Approved :: MIT License"])
    for each in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        shutil.copy(each, folder)
    return folder


def bundle(
    out: Path,
    scratch: Path,
    *,
    key: SecretKey | None = None,
    model: bytes = b"GGUF of a model",
    put_in: Path | None = None,
    targets: Sequence[BundleTarget] = (HERE,),
    own: Callable[[Path], Path] = own_wheel,
) -> Made:
    """A bundle of the made-up wheels and one model."""
    (scratch / "m.gguf").write_bytes(model)
    made = CarriedModel("m", scratch / "m.gguf", True, "m.gguf", "MIT", "https://models.example/m")
    originals = creating.make_own_wheel, creating.built_here
    # What was built in this checkout is of the real one.
    creating.make_own_wheel, creating.built_here = own, lambda _: []
    try:
        return create(
            out,
            targets,
            models=[made],
            libraries=[],
            wheel_folders=[put_in or wheels(scratch / "wheels")],
            key=key,
            report=lambda _: None,
            progress=lambda _done, _whole: None,
            installed=lambda _: None,
        )
    finally:
        creating.make_own_wheel, creating.built_here = originals


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
