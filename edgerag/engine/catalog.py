"""The models on this machine: those of the manifest, those the user added, and any GGUF by its path.

A file is used only after its header was read, its length compared with what the header asks for, its
checksum taken, and a child process has loaded it once (probe.py); all that is remembered (state.py)
until size or time of the file change.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from edgerag import errors
from edgerag.engine.files import copy_file, move_file, sha256_of
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.manifest import ManifestEntry, read_manifest
from edgerag.engine.probe import engine_fingerprint, probe
from edgerag.engine.state import Added, FileRecord, State, change_state, read_state
from edgerag.errors import (
    ModelDamaged,
    ModelError,
    ModelMissing,
    ModelWrongKind,
    StorageFull,
    UsageError,
)
from edgerag.types import Finding, ModelFile, ModelKind

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9._-]+")
_ANY_LANGUAGE = ("*",)  # what is assumed of a model that does not say
_CALLED: dict[ModelKind, str] = {"chat": "chat model", "embedder": "embedder", "reranker": "reranker"}
_CANNOT: dict[ModelKind, str] = {
    "chat": "cannot answer", "embedder": "gives no vectors", "reranker": "does not judge passages",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One line of ``models list``."""

    name: str
    kind: ModelKind
    state: Literal["ready", "missing", "damaged"]
    size_bytes: int  # of the file here; of the shipped weights when it is missing
    licence: str
    source: str
    path: Path | None
    detail: str
    languages: tuple[str, ...] = ()  # ISO 639-1 codes; ("*",) for many


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the model of a name lies, and what is known about it beforehand."""

    name: str
    path: Path
    source: str
    manifest: ManifestEntry | None = None
    managed: bool = True  # in the models folder: its content must not change


class Catalog:
    """The models known in ``models_folder``; making one reads nothing."""

    def __init__(self, models_folder: Path, manifest_file: Path) -> None:
        self.folder = models_folder
        self._manifest_file = manifest_file
        # What this catalogue tried itself, by the key of the file: all there is where no state can be kept.
        self._tried: dict[str, FileRecord] = {}
        self._examining: dict[str, threading.Lock] = {}  # by the key of the file: it is read by one thread at a time

    def manifest(self) -> dict[str, ManifestEntry]:
        """The entries of the manifest by name. Raises UsageError when it is wrong."""
        return read_manifest(self._manifest_file)

    def entries(self) -> list[CatalogEntry]:
        """Every model of the manifest and every added one; loads nothing and hashes nothing."""
        state = self._state()
        return [self._entry(place, state) for place in self._places(state).values()]

    def find(self, kind: ModelKind, name: str = "") -> ModelFile:
        """The model called ``name`` (or lying at that path); "" takes the manifest's default if it is
        here, else the first ready one. Raises ModelMissing, ModelDamaged, ModelWrongKind, what loading
        it for the first time showed, or ModelError when what is remembered of the models cannot be read."""
        state = self._state()
        place = self._named(name, state) if name else self._first(kind, state)
        return self._checked(place, kind, state)

    def find_embedder(self, weights_sha256: str) -> ModelFile | None:
        """The embedder of these weights, whatever it is called; None when none that works is here. Raises ModelError
        when what is remembered of the models cannot be read."""
        state = self._state()
        for place in self._places(state).values():
            if not place.path.exists() or self._entry(place, state).kind != "embedder":
                continue
            try:
                model = self._checked(place, "embedder", state)
            except ModelError:
                continue  # `models list` says what is wrong with it
            if model.weights_sha256 == weights_sha256:
                return model
        return None

    def add(self, path: Path, *, name: str = "") -> ModelFile:
        """Takes a GGUF file, or a sentence-transformers folder (converted), into the models folder.

        Raises UsageError for a name that is taken, StorageFull, or what is wrong with the model; then
        nothing is left behind. Adding the same content again changes nothing.
        """
        path = path.expanduser().absolute()
        name = _model_name(name or path.stem if path.suffix == ".gguf" else name or path.name)
        if path.is_dir():
            from edgerag.engine.convert import auto_weight_type, convert_folder

            self._make_folder()
            with tempfile.TemporaryDirectory(prefix=".add-", dir=self.folder) as scratch:
                converted = Path(scratch) / f"{name}.gguf"
                convert_folder(path, converted, weight_type=auto_weight_type(), name=name)
                return self._take_in(converted, name, str(path), keep_source=False)
        if not path.exists():
            raise ModelMissing(f"There is no file or folder {path}.")
        return self._take_in(path, name, str(path))

    def install(self, file: Path, entry: ManifestEntry) -> ModelFile:
        """Takes in the finished file of a manifest model, which must lie in this file system; replaces
        what lay in its place."""
        return self._put(file, self._manifest_place(entry), keep_source=False)

    def verify(self, names: Sequence[str] = ()) -> list[Finding]:
        """Reads every named model (all that are here, if none is named) to its end and loads it again."""
        state = self._state()
        places = [self._named(name, state) for name in names] if names else list(self._places(state).values())
        return [self._verify(place, state, named=bool(names)) for place in places]

    def _state(self) -> State:
        return read_state(self.folder, self._shipped())

    def _change_state(self, change: Callable[[State], None]) -> None:
        change_state(self.folder, change, self._shipped())

    def _shipped(self) -> set[str]:
        """The names of the files that are the manifest's."""
        return {entry.file for entry in self.manifest().values()}

    # ------------------------------------------------------------ where models lie

    def _places(self, state: State) -> dict[str, _Place]:
        places = {name: self._manifest_place(entry) for name, entry in self.manifest().items()}
        for name, added in sorted(state.added.items()):
            places.setdefault(name, _Place(name=name, path=self.folder / added.file, source=added.source))
        return places

    def _manifest_place(self, entry: ManifestEntry) -> _Place:
        return _Place(name=entry.name, path=self.folder / entry.file, source=entry.source, manifest=entry)

    def _named(self, name: str, state: State) -> _Place:
        places = self._places(state)
        if name in places:
            return places[name]
        path = Path(name).expanduser()
        if "/" in name or name.endswith(".gguf"):
            return _Place(name=path.stem, path=path.absolute(), source=str(path), managed=False)
        raise ModelMissing(
            f"There is no model {name!r}.",
            remedy=f"Known: {', '.join(places) or 'none'}. Add one: edgerag models add FILE",
        )

    def _first(self, kind: ModelKind, state: State) -> _Place:
        places = self._places(state).values()
        for place in places:
            if place.manifest and place.manifest.default and place.manifest.kind == kind and place.path.exists():
                return place
        for place in places:
            entry = self._entry(place, state)
            if entry.kind == kind and entry.state == "ready":
                return place
        raise ModelMissing(
            f"There is no {_CALLED[kind]} on this machine.",
            remedy="Add a GGUF file or a folder of one: edgerag models add PATH"
            if kind == "reranker"
            else "Provide the default models: edgerag models pull. Or add a file: edgerag models add FILE",
        )

    def _key(self, path: Path) -> str:
        return path.name if path.parent == self.folder else str(path)

    # ------------------------------------------------------------ what they are

    def _entry(self, place: _Place, state: State) -> CatalogEntry:
        manifest = place.manifest
        kind: ModelKind = manifest.kind if manifest else "chat"
        licence = manifest.licence if manifest else ""
        size_bytes, path = (manifest.size_bytes if manifest else 0), None
        languages = manifest.languages if manifest else _ANY_LANGUAGE
        found: Literal["ready", "missing", "damaged"] = "missing"
        detail = f"edgerag models pull {place.name}" if manifest else f"{place.path} is gone"
        if place.path.exists():
            path, size_bytes = place.path, place.path.stat().st_size
            record = self._remembered(place, state)
            try:
                header = None if record else read_header(path)
                kind = record.kind if record else header.kind if header else kind
                licence = licence or (record.licence if record else header.licence if header else "")
                languages = (record.languages if record else header.languages if header else ()) or languages
                found = "damaged" if record and record.trouble else "ready"
                detail = (record.trouble or record.weight_type) if record else "not tried yet"
            except ModelError as error:
                found, detail = "damaged", error.message
        return CatalogEntry(place.name, kind, found, size_bytes, licence, place.source, path, detail, languages)

    def _remembered(self, place: _Place, state: State) -> FileRecord | None:
        """What is known of the file as it lies there now, or None."""
        key = self._key(place.path)
        try:
            stat = place.path.stat()
        except OSError as error:
            raise self._missing(place) from error
        for record in (self._tried.get(key), state.files.get(key)):
            if record and (record.size_bytes, record.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
                return record
        return None

    def _checked(self, place: _Place, kind: ModelKind, state: State) -> ModelFile:
        record = self._remembered(place, state)
        if record is None or record.engine != engine_fingerprint():
            with self._examining.setdefault(self._key(place.path), threading.Lock()):
                record = self._tried_now(place, kind)
        _check_kind(place.name, record.kind, kind)
        if record.trouble:
            trouble: type[ModelError] = getattr(errors, record.trouble_kind)
            raise trouble(record.trouble, remedy="Pull or add it again; `edgerag models verify` tries it again.")
        return _model_file(place, record)

    def _tried_now(self, place: _Place, kind: ModelKind) -> FileRecord:
        """Reads the file and has it loaded, as far as no other thread has done so just now."""
        state = self._state()
        record = self._remembered(place, state)
        if record is None:
            header = read_header(place.path)
            _check_kind(place.name, header.kind, kind)
            record = self._examine(place, header, state.files.get(self._key(place.path)))
        _check_kind(place.name, record.kind, kind)
        return record if record.engine == engine_fingerprint() else self._try(place, record)

    def _examine(self, place: _Place, header: Header, before: FileRecord | None) -> FileRecord:
        """A record of a file not seen like this before; not tried yet. Raises ModelDamaged when it must
        be the same as before, or as the manifest says, and is not."""
        stat = place.path.stat()
        sha256 = sha256_of(place.path)
        weights = header.text("edgerag.weights_sha256", sha256)
        made_of = _vectors_of(weights, header)
        if place.manifest and weights != place.manifest.sha256:
            raise ModelDamaged(
                f"{place.path} is not {place.name}: its weights have the SHA-256 {weights[:12]}..., "
                f"the manifest says {place.manifest.sha256[:12]}....",
                remedy=f"Remove the file and run `edgerag models pull {place.name}`.",
            )
        if place.managed and before and not before.trouble and before.sha256 != sha256:
            raise ModelDamaged(
                f"{place.path} is not the file it was: its SHA-256 is {sha256[:12]}..., "
                f"it was {before.sha256[:12]}....",
                remedy="Pull or add it again.",
            )
        return FileRecord(
            size_bytes=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            sha256=sha256,
            kind=header.kind,
            weights_sha256=made_of,
            weight_type=header.weight_type,
            licence=header.licence or (place.manifest.licence if place.manifest else ""),
            languages=header.languages or (place.manifest.languages if place.manifest else _ANY_LANGUAGE),
            context_tokens=header.context_tokens,
            dimension=header.dimension,
            engine="",
        )

    def _try(self, place: _Place, record: FileRecord) -> FileRecord:
        """Has the file loaded by a child process; remembers how that went, where it is about the file."""
        trouble, trouble_kind = "", ""
        try:
            probe(_model_file(place, record))
        except (ModelDamaged, ModelWrongKind) as error:
            trouble, trouble_kind = error.message, type(error).__name__
        tried = replace(record, engine=engine_fingerprint(), trouble=trouble, trouble_kind=trouble_kind)
        self._tried[self._key(place.path)] = tried
        self._remember(lambda state: state.files.__setitem__(self._key(place.path), tried))
        return tried

    def _remember(self, change: Callable[[State], None]) -> None:
        # A read-only or full models folder: the next process looks at the file again, no more.
        with contextlib.suppress(StorageFull):
            self._change_state(change)

    def _verify(self, place: _Place, state: State, *, named: bool) -> Finding:
        if not place.path.exists():
            severity: Literal["error", "info"] = "error" if named or not place.manifest else "info"
            return Finding(place.name, severity, "It is not on this machine.", self._missing(place).remedy)
        before = state.files.get(self._key(place.path))
        try:
            record = self._try(place, self._examine(place, read_header(place.path), before))
        except ModelError as error:
            return Finding(place.name, "error", error.message, error.remedy)
        if record.trouble:
            return Finding(place.name, "error", record.trouble, "Pull or add it again.")
        known = "as recorded" if before else "recorded now"
        return Finding(place.name, "ok", f"{record.size_bytes:,} bytes, SHA-256 {record.sha256[:12]}... {known}")

    def _missing(self, place: _Place) -> ModelMissing:
        return ModelMissing(
            f"The model {place.name!r} is not on this machine ({place.path}).",
            remedy=f"Provide it: edgerag models pull {place.name}" if place.manifest else "Add it again.",
        )

    # ------------------------------------------------------------ taking in

    def _take_in(self, file: Path, name: str, source: str, *, keep_source: bool = True) -> ModelFile:
        state = self._state()
        places = self._places(state)
        if name in places:
            existing = places[name]
            if existing.path.exists() and existing.path.stat().st_size == file.stat().st_size:
                present = self._checked(existing, read_header(file).kind, state)
                if present.sha256 == sha256_of(file):
                    return present
            raise UsageError(
                f"There is already another model called {name!r}.", remedy="Give this one another name: --name NAME"
            )
        place = _Place(name=name, path=self.folder / f"{name}.gguf", source=source)
        if place.path.exists():
            raise UsageError(f"{place.path} is in the way.", remedy="Remove it, or give another name: --name NAME")
        model = self._put(file, place, keep_source=keep_source)
        added = Added(file=place.path.name, source=source)
        self._change_state(lambda state: state.added.__setitem__(name, added))
        return model

    def _put(self, file: Path, place: _Place, *, keep_source: bool) -> ModelFile:
        """Tries ``file`` where it lies, then copies or moves it to its place and records it."""
        origin = replace(place, path=file, managed=False)
        header = read_header(file)
        record = self._examine(origin, header, None)
        probe(_model_file(origin, record))
        self._make_folder()
        (copy_file if keep_source else move_file)(file, place.path)
        stat = place.path.stat()
        record = replace(record, size_bytes=stat.st_size, mtime_ns=stat.st_mtime_ns, engine=engine_fingerprint())
        self._tried[self._key(place.path)] = record
        self._change_state(lambda state: state.files.__setitem__(self._key(place.path), record))
        return _model_file(place, record)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFull(f"The models folder {self.folder} cannot be made: {error.strerror}.") from error


def _vectors_of(weights_sha256: str, header: Header) -> str:
    """What the vectors of an embedder are known by: its weights, and the texts that are put before what it reads."""
    prompts = [header.text(f"edgerag.{role}_prompt", "") for role in ("query", "passage")]
    if not any(prompts):
        return weights_sha256
    return hashlib.sha256("\0".join([weights_sha256, *prompts]).encode()).hexdigest()


def _check_kind(name: str, kind: ModelKind, wanted: ModelKind) -> None:
    if kind == wanted:
        return
    raise ModelWrongKind(
        f"{name} is {_a(_CALLED[kind])} and {_CANNOT[wanted]}.",
        remedy=f"Name {_a(_CALLED[wanted])} in models.{wanted}.",
    )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _model_file(place: _Place, record: FileRecord) -> ModelFile:
    return ModelFile(
        name=place.name,
        kind=record.kind,
        path=place.path,
        size_bytes=record.size_bytes,
        sha256=record.sha256,
        weights_sha256=record.weights_sha256,
        licence=record.licence,
        languages=record.languages,
        context_tokens=record.context_tokens,
        dimension=record.dimension,
    )


def _model_name(text: str) -> str:
    name = _NOT_IN_A_NAME.sub("-", text.lower()).strip("-._")[:64]
    if not name:
        raise UsageError(f"{text!r} gives no name for a model.", remedy="Give one: --name NAME")
    return name
