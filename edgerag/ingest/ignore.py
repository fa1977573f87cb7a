"""Which files of a folder are left out, and by what rule: ignore files, hidden names, junk, the user's own lists.

For each file or folder the first of these that says something decides:

1. ``ingest.exclude`` leaves it out;
2. the nearest ``.edgeragignore`` above it leaves it out, or takes it in whatever the following say;
3. the nearest ``.gitignore`` above it leaves it out, also one that lies above the named folder in the same repository;
4. a name that begins with a dot is left out (``ingest.hidden``);
5. folders and files that programs make for themselves are left out (``ingest.junk``);
6. ``ingest.include``, where it is not empty, leaves out files that it does not name.

What is left out is not entered. Patterns have git's syntax and meaning (glob.py), checked in the tests against git.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from edgerag.config import IngestSettings
from edgerag.ingest.glob import Glob, parse_line

OWN_NAME = ".edgeragignore"
GIT_NAME = ".gitignore"
# A longer one is not written by hand; every pattern of it would be tried on every file.
_LARGEST_BYTES = 256_000
NOT_INCLUDED = "No pattern of ingest.include names it."
# Found by their names; a Python environment of any name holds this file.
_ENVIRONMENT_MARK = "pyvenv.cfg"
_JUNK = """
.git
.hg/
.svn/
.jj/
node_modules/
bower_components/
__pycache__/
__pypackages__/
__MACOSX/
.venv/
.tox/
.nox/
.eggs/
*.egg-info/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.ipynb_checkpoints/
.gradle/
.terraform/
.idea/
.vs/
lost+found/
$RECYCLE.BIN/
System Volume Information/
.Trash-*/
.DS_Store
Thumbs.db
desktop.ini
~$*
.~lock.*#
*~
.*.sw[a-p]
*.crdownload
*.part
*.partial
"""


@dataclass(frozen=True)
class Patterns:
    """The patterns of one file or list; the last that matches decides."""

    globs: tuple[Glob, ...]

    @staticmethod
    def of(lines: Sequence[str]) -> Patterns:
        return Patterns(tuple(glob for line in lines if (glob := parse_line(line)) is not None))

    def deciding(self, name: str, path: Callable[[], str], *, is_folder: bool) -> Glob | None:
        """The pattern that decides about an entry; ``path()`` is the one below the folder of the patterns."""
        relative = path() if self._any_by_path is not None else ""
        if (
            name not in self._literals
            and not (self._any_by_name is not None and self._any_by_name.fullmatch(name))
            and not (self._any_by_path is not None and self._any_by_path.fullmatch(relative))
        ):
            return None
        for glob, regex in self._backwards:
            if (is_folder or not glob.folders_only) and regex.fullmatch(name if glob.by_name else relative):
                return glob
        return None

    @cached_property
    def _literals(self) -> frozenset[str]:
        return frozenset(glob.literal for glob in self.globs if glob.literal)

    @cached_property
    def _any_by_name(self) -> re.Pattern[str] | None:
        return _union([glob for glob in self.globs if glob.by_name and not glob.literal])

    @cached_property
    def _any_by_path(self) -> re.Pattern[str] | None:
        return _union([glob for glob in self.globs if not glob.by_name])

    @cached_property
    def _backwards(self) -> tuple[tuple[Glob, re.Pattern[str]], ...]:
        return tuple((glob, re.compile(glob.regex, re.DOTALL)) for glob in reversed(self.globs))


def _union(globs: Sequence[Glob]) -> re.Pattern[str] | None:
    """One expression for all: most files match no pattern, and are through after it."""
    return re.compile("|".join(f"(?:{glob.regex})" for glob in globs), re.DOTALL) if globs else None


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user asks for beyond the ignore files; patterns are relative to each named folder."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    junk: bool = False

    @staticmethod
    def of(settings: IngestSettings) -> Selection:
        return Selection(settings.include, settings.exclude, hidden=settings.hidden, junk=settings.junk)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The patterns of an ignore file, for what lies below ``folder``."""

    patterns: Patterns
    folder: str
    reason: str

    def decides(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """True: left out; False: taken in; None: it says nothing."""
        cut = len(self.folder.rstrip("/")) + 1
        glob = self.patterns.deciding(name, lambda: path[cut:], is_folder=is_folder)
        return None if glob is None else not glob.negated


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules for the entries of one folder."""

    named: str  # the folder that the user named
    selection: Selection
    own: tuple[_Layer, ...] = ()  # the nearest first
    git: tuple[_Layer, ...] = ()
    exclude: Patterns = Patterns(())
    include: Patterns = Patterns(())
    include_by: int = -1  # number of the last pattern of ``include`` that names this folder or one above
    junk: Patterns = Patterns(())
    troubles: dict[str, str] = field(default_factory=dict)  # ignore files that cannot be obeyed; shared by all folders

    def reason_against(self, path: str, name: str, *, is_folder: bool) -> str:
        """Why the entry is left out, in a sentence; "" when it is not."""
        if self.exclude.globs:
            glob = self.exclude.deciding(name, lambda: self._relative(path), is_folder=is_folder)
            if glob is not None and not glob.negated:
                return f"It is excluded by the pattern {glob.text!r} (ingest.exclude)."
        for layer in self.own:
            ignored = layer.decides(path, name, is_folder=is_folder)
            if ignored:
                return layer.reason
            if ignored is False:
                return self._reason_of_include(path, name, is_folder)
        for layer in self.git:
            ignored = layer.decides(path, name, is_folder=is_folder)
            if ignored:
                return layer.reason
            if ignored is False:
                break
        if name.startswith(".") and not self.selection.hidden:
            return "It is hidden (ingest.hidden)."
        if self.junk.globs and self.junk.deciding(name, lambda: name, is_folder=is_folder) is not None:
            return f"{name!r} is what programs make for themselves (ingest.junk)."
        return self._reason_of_include(path, name, is_folder)

    def _reason_of_include(self, path: str, name: str, is_folder: bool) -> str:
        if is_folder or not self.include.globs:
            return ""
        number = self._last_include(path, name, is_folder=False)
        return NOT_INCLUDED if number < 0 or self.include.globs[number].negated else ""

    def _last_include(self, path: str, name: str, *, is_folder: bool) -> int:
        """The number of the last pattern of ``include`` that names the entry or a folder above it; -1 for none."""
        glob = self.include.deciding(name, lambda: self._relative(path), is_folder=is_folder)
        return self.include_by if glob is None else max(self.include_by, self.include.globs.index(glob))

    def _relative(self, path: str) -> str:
        return path[len(self.named.rstrip("/")) + 1 :]

    def reason_against_folder(self, path: str, name: str, has: Callable[[str], bool]) -> str:
        """Why a folder among the entries is left out for what it holds (``has`` tells the names in it)."""
        if self.selection.junk or not has(_ENVIRONMENT_MARK):
            return ""
        if False in (layer.decides(path, name, is_folder=True) for layer in self.own):
            return ""
        return "It is a Python environment (ingest.junk)."

    def inside(self, folder: str, has: Callable[[str], bool]) -> Scope:
        """The rules for the entries of ``folder``, which is one of this scope's entries, or the named folder itself."""
        git = self.git
        if has(".git"):  # a repository of its own: what is above is not its business
            git = _with_file((), _repository_excludes(folder), folder, self.troubles)
        own = self.own
        if has(GIT_NAME):
            git = _with_file(git, os.path.join(folder, GIT_NAME), folder, self.troubles)  # noqa: PTH118
        if has(OWN_NAME):
            own = _with_file(own, os.path.join(folder, OWN_NAME), folder, self.troubles)  # noqa: PTH118
        include_by = self.include_by
        if self.include.globs and folder != self.named:
            include_by = self._last_include(folder, os.path.basename(folder), is_folder=True)  # noqa: PTH119
        if own is self.own and git is self.git and include_by == self.include_by:
            return self
        return replace(self, own=own, git=git, include_by=include_by)


def scope_of(named: str, selection: Selection) -> Scope:
    """The rules for the entries of a named folder, those of the repository around it included."""
    git, own, troubles = _rules_above(named)
    scope = Scope(
        named=named,
        selection=selection,
        own=own,
        git=git,
        exclude=Patterns.of(selection.exclude),
        include=Patterns.of(selection.include),
        junk=Patterns(()) if selection.junk else Patterns.of(_JUNK.splitlines()),
        troubles=troubles,
    )
    return scope.inside(named, lambda name: os.path.lexists(os.path.join(named, name)))  # noqa: PTH118


def _rules_above(named: str) -> tuple[tuple[_Layer, ...], tuple[_Layer, ...], dict[str, str]]:
    """What the repository says above the named folder; nothing where it ignores that folder: who names it knows."""
    git: tuple[_Layer, ...] = ()
    own: tuple[_Layer, ...] = ()
    troubles: dict[str, str] = {}
    above = _folders_of_repository(named)
    if above:
        git = _with_file((), _repository_excludes(above[0]), above[0], troubles)
    for folder, entry in pairwise([*above, named]):
        git = _with_file(git, os.path.join(folder, GIT_NAME), folder, troubles)  # noqa: PTH118
        own = _with_file(own, os.path.join(folder, OWN_NAME), folder, troubles)  # noqa: PTH118
        name = os.path.basename(entry)  # noqa: PTH119
        verdicts = (layer.decides(entry, name, is_folder=True) for layer in (*own, *git))
        if next((verdict for verdict in verdicts if verdict is not None), False):
            return (), (), troubles
    return git, own, troubles


def _folders_of_repository(named: str) -> list[str]:
    """The folders from the top of the repository that ``named`` lies in down to its parent; [] if it is in none."""
    above: list[str] = []
    folder = named
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):  # noqa: PTH118
            return above[::-1]
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return []
        folder = parent
        above.append(folder)


def _repository_excludes(top: str) -> str:
    return os.path.join(top, ".git", "info", "exclude")  # noqa: PTH118


def _with_file(layers: tuple[_Layer, ...], path: str, folder: str, troubles: dict[str, str]) -> tuple[_Layer, ...]:
    """The layers with the patterns of a file before them, which hold for ``folder``; without, where there is none."""
    try:
        patterns = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return layers
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        troubles[path] = f"Its patterns cannot be obeyed: {why}."
        return layers
    return (_Layer(patterns, folder, f"It is ignored by {path}."), *layers) if patterns.globs else layers


def _read(path: str) -> Patterns:
    """Raises OSError, ValueError for what is no such file."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if status.st_size > _LARGEST_BYTES:
        raise ValueError(f"it has more than {_LARGEST_BYTES:,} bytes")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LARGEST_BYTES).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return Patterns.of([line.removesuffix("\r") for line in text.split("\n")])
