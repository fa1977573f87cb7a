"""A bundle is put together and becomes a folder in which its edgerag runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from unit.bundle import craft

from edgerag.bundle import own_wheel
from edgerag.bundle.carried import installing
from edgerag.bundle.carried import manifest as manifests
from edgerag.bundle.carried.installing import install
from edgerag.bundle.carried.machine import Here, fitting, here
from edgerag.bundle.carried.manifest import Manifest, Target
from edgerag.bundle.carried.refused import Refused
from edgerag.bundle.create import Made
from edgerag.bundle.targets import BundleTarget
from edgerag.bundle.wheel import read_wheel
from edgerag.bundle.write import described
from edgerag.errors import BundleError, UsageError

OTHER = BundleTarget("linux-x86_64" if craft.HERE.machine == "aarch64" else "linux-aarch64", craft.HERE.python)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Made]:
    scratch = tmp_path_factory.mktemp("made")
    return scratch / "bundle", craft.bundle(scratch / "bundle", scratch)


def put_up(bundle: Path, folder: Path, probe: str = "import edgerag, pumps") -> list[str]:
    said: list[str] = []
    install(bundle, folder, key=None, say=said.append, progress=lambda _done, _whole: None, probe=probe)
    return said


def test_what_is_needed_is_in_it_and_nothing_else(made: tuple[Path, Made]) -> None:
    folder, told = made
    (pack,) = told.manifest.packs
    assert pack.file == f"packs/{craft.HERE.platform}.xz"
    assert [path.name for path in (folder / "packs").iterdir()] == [f"{craft.HERE.platform}.xz"]
    assert [wheel.name.split("-")[0] for wheel in pack.wheels] == [
        "wheels/edgerag", "wheels/pip", "wheels/pumps", "wheels/rubber", "wheels/seals",
    ]  # fmt: skip
    texts = {path.read_bytes() for path in (folder / "licences" / "pumps-1.2").iterdir()}
    assert texts == {b"As you like.\n", b"Of a part.\n"}
    lines = (folder / "licences" / "LIST.txt").read_text().splitlines()
    assert "pumps 1.2: MIT" in lines
    assert "rubber 0.1: MIT License (no licence text in its wheel)" in lines
    assert "seals 2.0: not said (no licence text in its wheel)" in lines
    assert told.size_bytes - told.size_without_models_bytes == len(b"GGUF of a model")


def test_the_same_contents_make_the_same_bundle(tmp_path: Path) -> None:
    wheels = craft.wheels(tmp_path / "wheels")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    craft.bundle(tmp_path / "a.tar", tmp_path / "a", put_in=wheels)
    craft.bundle(tmp_path / "b.tar", tmp_path / "b", put_in=wheels)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    with pytest.raises(UsageError, match="there already"):
        craft.bundle(tmp_path / "b.tar", tmp_path / "b", put_in=wheels)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.tar", "b", "b.tar", "wheels"]


def test_the_bill_of_materials_lists_what_is_carried(made: tuple[Path, Made]) -> None:
    folder, told = made
    bill = json.loads((folder / "sbom.cdx.json").read_bytes())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    hashes = {file.name: file.sha256 for file in told.manifest.files}
    # Of a wheel its own, as an index has it, and not that of what it is in its pack.
    own = [*(folder.parent / "wheels").iterdir(), craft.own_wheel(folder.parent / "again")]
    hashes |= {f"wheels/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in own}
    parts = {part["name"]: part for part in bill["components"]}
    assert set(parts) == {"edgerag", "pip", "pumps", "seals", "rubber", "m"}
    pumps = parts["pumps"]
    assert pumps["purl"].startswith("pkg:pypi/pumps@1.2?")
    assert pumps["licenses"] == [{"license": {"name": "MIT"}}]
    assert pumps["externalReferences"] == [{"type": "website", "url": "https://pumps.example/"}]
    assert parts["edgerag"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert parts["m"]["type"] == "machine-learning-model"
    for part in parts.values():
        assert part["hashes"][0]["content"] == hashes[part["properties"][0]["value"]]
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert needs[parts["pumps"]["bom-ref"]] == [parts["seals"]["bom-ref"]]
    assert set(needs["bundle"]) == {part["bom-ref"] for part in parts.values()}


def test_it_installs_by_its_own_script_with_python_alone(made: tuple[Path, Made], tmp_path: Path) -> None:
    """Isolated, without site-packages, from another working folder; twice, and the second time it is refused."""
    folder, target = made[0], tmp_path / "a 'b"
    # The made-up edgerag has none of the native libraries that the real one is probed for.
    code = (
        "import sys; sys.dont_write_bytecode = True; sys.path.append(sys.argv.pop(1)); from pathlib import Path\n"
        "from installer import installing, script\n"
        "installing.install.__kwdefaults__['probe'] = 'import edgerag, pumps'\n"
        f"sys.exit(script.main(Path({str(folder)!r}), sys.argv[1:]))"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(folder), "--to", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    environ = {name: value for name, value in os.environ.items() if name != "EDGERAG_HOME"} | {"PYTHONPATH": "/work"}
    ran = subprocess.run([target / "bin" / "edgerag", "x"], capture_output=True, text=True, check=True, env=environ)
    assert ran.stdout == f"{target} 1.2 ['x']\n"
    assert (target / "models" / "m.gguf").read_bytes() == b"GGUF of a model"
    assert sorted(path.name for path in target.iterdir()) == ["bin", "indexes", "models", "venv"]
    again = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert again.returncode == 6
    assert "is not empty" in again.stderr
    verify = [sys.executable, "-I", str(folder / "install.py"), "--verify"]
    assert subprocess.run(verify, capture_output=True, check=False).returncode == 0, "nothing was written into it"


def test_nothing_is_left_where_it_is_refused(made: tuple[Path, Made], tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"could not be installed: .*No module named 'nothing'"):
        put_up(made[0], tmp_path / "new", probe="import nothing")
    assert not list((tmp_path / "new").iterdir())
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"  # as code for another processor does
    with pytest.raises(Refused, match="a library in it was built for another processor"):
        put_up(made[0], tmp_path / "new", probe=dies)
    assert not list((tmp_path / "new").iterdir())
    changed = tmp_path / "b.tar"
    (tmp_path / "s").mkdir()
    craft.bundle(changed, tmp_path / "s")
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    with pytest.raises(Refused):
        put_up(changed, tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


def test_it_installs_out_of_one_file(tmp_path: Path) -> None:
    craft.bundle(tmp_path / "b.tar", tmp_path)
    put_up(tmp_path / "b.tar", tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["bin", "indexes", "models", "venv"]


def test_a_bundle_of_before_there_were_packs_is_installed(tmp_path: Path) -> None:
    old = old_bundle(tmp_path / "old", tmp_path)
    put_up(old, tmp_path / "new")
    assert (tmp_path / "new" / "bin" / "edgerag").exists()
    wheel = next((old / "wheels").glob("pumps-*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(Refused, match=f"wheels/{wheel.name} was changed"):
        put_up(old, tmp_path / "second")


def test_a_wheel_that_is_not_what_the_manifest_says_is_refused(made: tuple[Path, Made], tmp_path: Path) -> None:
    """The pack is as it was listed: its maker was wrong, or somebody else made the list."""
    bundle = tmp_path / "bundle"
    shutil.copytree(made[0], bundle)
    record = json.loads((bundle / "manifest.json").read_bytes())
    pack = record["packs"][0]
    wheel = next(each for each in pack["wheels"] if "seals" in each["name"])
    wheel["sha256"] = "0" * 64
    record.pop("sha256")
    (bundle / "manifest.json").write_bytes(manifests.with_digest(record))
    with pytest.raises(Refused) as refused:
        put_up(bundle, tmp_path / "new")
    assert wheel["name"] in refused.value.message
    assert pack["file"] in refused.value.message
    assert not list((tmp_path / "new").iterdir())


def test_a_python_that_cannot_unpack_is_told_before_anything_is_written(
    made: tuple[Path, Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(Refused, match="has no module lzma"):
        put_up(made[0], tmp_path / "new")
    assert not (tmp_path / "new").exists()
    put_up(old_bundle(tmp_path / "old", tmp_path), tmp_path / "new")


def test_room_is_asked_for_packs_and_for_what_is_in_them(
    made: tuple[Path, Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = made[1].manifest
    (target,) = manifest.targets
    needed = target.unpacked_bytes + sum(wheel.size_bytes for wheel in manifest.packs[0].wheels)
    needed += sum(file.size_bytes for file in manifest.files if file.name.startswith(("packs/", "models/")))
    free = needed - 1
    monkeypatch.setattr(installing.shutil, "disk_usage", lambda _: type("Free", (), {"free": free})())
    with pytest.raises(Refused, match="MB are free"):
        put_up(made[0], tmp_path / "new")
    free = needed
    put_up(made[0], tmp_path / "new")


def test_an_unfinished_folder_is_begun_anew_and_others_are_left_alone(made: tuple[Path, Made], tmp_path: Path) -> None:
    (tmp_path / "killed" / ".arriving" / "wheels").mkdir(parents=True)
    (tmp_path / "killed" / "venv").mkdir()
    put_up(made[0], tmp_path / "killed")
    assert (tmp_path / "killed" / "bin" / "edgerag").exists()
    (tmp_path / "killed" / ".arriving").mkdir()  # killed behind the end
    with pytest.raises(Refused, match="is not empty"):
        put_up(made[0], tmp_path / "killed")
    assert (tmp_path / "killed" / "models" / "m.gguf").exists()
    (tmp_path / "mine" / "models").mkdir(parents=True)
    with pytest.raises(Refused, match="is not empty"):
        put_up(made[0], tmp_path / "mine")
    assert (tmp_path / "mine" / "models").exists()


def test_a_disk_without_room_is_said_before(
    made: tuple[Path, Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing.shutil, "disk_usage", lambda _: type("Free", (), {"free": 10})())
    with pytest.raises(Refused, match="0 MB are free"):
        put_up(made[0], tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Here("linux-x86_64", "3.12", (2, 36)), "for Python 3.11 on linux-x86_64; here is Python 3.12 on linux-x86_64"),
        (Here("linux-aarch64", "3.11", (2, 36)), "here is Python 3.11 on linux-aarch64"),
        (Here("linux-x86_64", "3.11", (2, 28)), "needs glibc 2.34 or newer, and here is glibc 2.28"),
        (Here("linux-x86_64", "3.11", None), "runs on another C library"),
        (Here("linux-x86_64", "3.11", (2, 36), "this Python is PyPy, and CPython is needed"), "CPython is needed"),
    ],
)
def test_another_machine_or_python_is_refused_in_a_sentence(machine: Here, said: str) -> None:
    target = Target("linux-x86_64", "3.11", (2, 34), 0, ())
    bundle = Manifest("1.0", "wheels/pip.whl", (target,), (), (), ())
    with pytest.raises(Refused, match=said.replace(".", r"\.")) as refused:
        fitting(bundle, machine)
    assert refused.value.message.count(". ") == 0
    assert fitting(bundle, Here("linux-x86_64", "3.11", (2, 34))) is target


def test_what_is_here_is_known() -> None:
    assert here().words == craft.HERE.words
    assert here().glibc is not None


def test_an_installed_edgerag_gives_its_wheel_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = craft.own_wheel(tmp_path)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(site)]
    subprocess.run([*pip, str(original)], check=True, capture_output=True)
    monkeypatch.setattr(own_wheel, "checkout", lambda: None)
    found = [each for each in own_wheel.importlib.metadata.distributions(path=[str(site)]) if each.name == "edgerag"]
    monkeypatch.setattr(own_wheel.importlib.metadata, "distribution", lambda _: found[0])
    (tmp_path / "out").mkdir()
    again = read_wheel(own_wheel.make_own_wheel(tmp_path / "out"))
    assert (again.path.name, again.requires) == (original.name, read_wheel(original).requires)
    second = tmp_path / "second"
    subprocess.run([*pip[:-1], str(second), str(again.path)], check=True, capture_output=True)
    for path in (site / "edgerag").glob("*.py"):
        assert (second / "edgerag" / path.name).read_bytes() == path.read_bytes()
    (site / "edgerag" / "__init__.py").write_text("changed = True\n")
    with pytest.raises(BundleError, match=r"edgerag/__init__\.py is not what was installed"):
        own_wheel.make_own_wheel(tmp_path / "out")


def test_each_machine_gets_the_kernel_that_is_for_it(tmp_path: Path) -> None:
    folder = craft.wheels(tmp_path / "wheels")
    craft.own_wheel(folder, machine=OTHER.platform)
    told = craft.bundle(tmp_path / "b", tmp_path, put_in=folder, targets=[craft.HERE, OTHER], own=own_for_here)
    for target in told.manifest.targets:
        (wheel,) = [name for name in target.wheels if name.startswith("wheels/edgerag-")]
        assert wheel.endswith(f"-{target.platform.replace('-', '_')}.whl")


@pytest.mark.parametrize("changed", ["more", "less"])
def test_the_edgerag_of_another_machine_is_of_the_same_source(changed: str, tmp_path: Path) -> None:
    """It was built some time ago, and this one just now: a bundle must not hold two programs."""
    folder = craft.wheels(tmp_path / "wheels")
    old = craft.own_wheel(folder, machine=OTHER.platform, main=craft.MAIN + b"# older\n")
    if changed == "more":
        old = craft.own_wheel(folder, machine=OTHER.platform)
        with zipfile.ZipFile(old, "a") as archive:
            archive.writestr("edgerag/forgotten.py", b"")
    with pytest.raises(BundleError, match=r"edgerag/(__main__|forgotten)\.py differs") as caught:
        craft.bundle(tmp_path / "b", tmp_path, put_in=folder, targets=[craft.HERE, OTHER], own=own_for_here)
    assert str(old) in str(caught.value)
    assert f"--for {OTHER.platform} --python {OTHER.python}" in str(caught.value.remedy)
    assert not (tmp_path / "b").exists()


def test_what_no_index_has_is_named_with_the_command_that_builds_it(tmp_path: Path) -> None:
    folder = craft.wheels(tmp_path / "wheels")
    pythons = [BundleTarget(OTHER.platform, python) for python in ("3.12", "3.13")]
    with pytest.raises(BundleError, match=rf"no wheels for Python 3\.12 on {OTHER.platform}: edgerag") as caught:
        craft.bundle(tmp_path / "b", tmp_path, put_in=folder, targets=[craft.HERE, *pythons], own=own_for_here)
    assert f"`python3 tools/prepare.py --wheels --for {OTHER.platform} --python 3.12,3.13`" in str(caught.value.remedy)


def test_what_pip_does_not_have_is_no_matter_of_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = craft.wheels(tmp_path / "wheels")
    next(folder.glob("rubber-*.whl")).unlink()
    with pytest.raises(BundleError, match="rubber") as caught:
        craft.bundle(tmp_path / "b", tmp_path, put_in=folder)
    assert "prepare.py" not in str(caught.value.remedy)


def old_bundle(out: Path, scratch: Path) -> Path:
    """As version 2 was written: each wheel a file of its own."""
    folder = craft.wheels(scratch / "old-wheels")
    made = craft.bundle(out, scratch, put_in=folder)
    wheels = {f"wheels/{path.name}": path for path in [*folder.iterdir(), craft.own_wheel(scratch / "own")]}
    (out / "wheels").mkdir()
    for name, path in wheels.items():
        shutil.copy(path, out / name)
    shutil.rmtree(out / "packs")
    record = json.loads(manifests.written(made.manifest))
    left = [file for file in record["files"] if not file["name"].startswith("packs/")]
    listed = [dataclasses.asdict(file) for file in described(wheels)]
    for name in ("packs", "sha256"):
        record.pop(name)
    (out / "manifest.json").write_bytes(manifests.with_digest({**record, "version": 2, "files": left + listed}))
    return out


def own_for_here(folder: Path) -> Path:
    return craft.own_wheel(folder, machine=craft.HERE.platform)
