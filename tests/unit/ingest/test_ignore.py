"""Which files of a folder are left out. The judge of patterns is git itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgerag.ingest.discover import Discovery, discover
from edgerag.ingest.glob import parse_line
from edgerag.ingest.ignore import Selection

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not on this machine")

ALL = Selection(hidden=True, junk=True)  # only the ignore files decide


def look(*paths: Path, selection: Selection = Selection(), **more: object) -> Discovery:  # noqa: B008
    return discover(paths, own=Path("/nowhere/library"), selection=selection, **more)  # type: ignore[arg-type]


def names(found: Discovery, root: Path) -> list[str]:
    return [os.path.relpath(candidate.path, root) for candidate in found.files]


def make(root: Path, **files: str) -> None:
    for name, text in files.items():
        write(root / name, text)


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


def tree(root: Path, *files: str) -> None:
    for file in files:
        write(root / file)


# ---------------------------------------------------------------- patterns, against git


def git(*arguments: str, cwd: Path, given: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run([GIT or "", *arguments], cwd=cwd, input=given, capture_output=True, env=environment)
    assert done.returncode in ok, done.stderr
    return done.stdout


def kept_by_git(root: Path) -> list[str]:
    listed = git("ls-files", "-z", "--others", "--exclude-standard", cwd=root)
    return sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)


NAME = st.sampled_from(["a", "b", "ab", "a.b", "b.txt", "x y", "[a]", "a-b", "!a", "#a", "a*", "-", "A"])
PIECE = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "/", ".", "txt", "[ab]", "[!a]", "[^a]", "[a-b]", "[[:alpha:]]", "[]a]", "[a-]",
     "\\a", "\\*", "\\ ", " ", "[", "]", "!", "#", "-", "\\", "***", "[[:x:]]", "[a", "[--a]", "[a/b]", "x"]
)  # fmt: skip
LINE = st.builds(
    lambda negated, pieces, folder: negated + "".join(pieces) + folder,
    st.sampled_from(["", "", "!"]),
    st.lists(PIECE, min_size=1, max_size=6),
    st.sampled_from(["", "", "/"]),
)
FILES = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)


def agrees_with_git(files: list[str], rules: dict[str, list[str]], excluded: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        git("init", "-q", cwd=root)
        for file in files:
            path = root / file
            if any(above.is_file() for above in path.parents if above.is_relative_to(root)) or path.exists():
                continue
            write(path)
        for folder, lines in rules.items():
            if (root / folder).is_dir():
                (root / folder / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_text("\n".join(excluded) + "\n", encoding="utf-8")
        ours = [name for name in names(look(root, selection=ALL), root) if not name.startswith(".git/")]
        assert sorted(ours) == kept_by_git(root), rules


@needs_git
@settings(max_examples=150, deadline=None)
@given(
    files=FILES, top=st.lists(LINE, max_size=5), nested=st.lists(LINE, max_size=3), excluded=st.lists(LINE, max_size=2)
)
@example(files=["a/b/a", "a/ab"], top=["*", "!*/", "!ab"], nested=[], excluded=[])
@example(files=["a/b/ab", "a/ab"], top=["a/*", "!a/b/"], nested=["ab"], excluded=[])
@example(files=["a/b", "b/b"], top=["/b", "a/**"], nested=["!b"], excluded=["b"])
@example(files=["x y", "a"], top=["x\\ y  ", "a\\"], nested=[], excluded=[])
@example(files=["a/b/ab/b", "a/b"], top=["a/**/b/", "**/ab/**"], nested=[], excluded=[])
def test_folders_are_read_as_git_reads_them(
    files: list[str], top: list[str], nested: list[str], excluded: list[str]
) -> None:
    agrees_with_git(files, {"": top, "a": nested, "a/b": nested}, excluded)


@needs_git
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE.map(lambda line: line.lstrip("!") or "a"), min_size=20, max_size=20), paths=FILES)
def test_single_patterns_match_as_in_git(lines: list[str], paths: list[str]) -> None:
    """Many patterns, each in a folder of its own, over paths that need not exist."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        git("init", "-q", cwd=root)
        asked = []
        for number, line in enumerate(lines):
            write(root / f"{number:02}" / ".gitignore", line + "\n")
            asked += [f"{number:02}/{path}" for path in paths]
        given = b"".join(os.fsencode(path) + b"\0" for path in asked)
        told = git("check-ignore", "-z", "--no-index", "--stdin", cwd=root, given=given, ok=(0, 1))
        matched = {os.fsdecode(path) for path in told.split(b"\0") if path}
        for number, line in enumerate(lines):
            ours = {path for path in paths if ours_matches(line, path)}
            assert ours == {path[3:] for path in matched if path.startswith(f"{number:02}/")}, line


def ours_matches(line: str, path: str) -> bool:
    """Whether the pattern says something about the path or a folder above it."""
    glob = parse_line(line)
    if glob is None:
        return False
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        if count == len(parts) and glob.folders_only:  # nothing of that name exists: git takes it for a file
            continue
        if re.compile(glob.regex, re.DOTALL).fullmatch(parts[count - 1] if glob.by_name else "/".join(parts[:count])):
            return True
    return False


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/a/" * 40 + "b", "*?" * 60 + "/b", "[!b]*" * 40 + "c"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """With backtracking each of them would run for years: this test ends, or it does not."""
    glob = parse_line(pattern)
    assert glob is not None
    regex = re.compile(glob.regex, re.DOTALL)
    assert not regex.fullmatch("a" * 250)
    assert not regex.fullmatch("a/" * 2000 + "a")


# ---------------------------------------------------------------- which rules hold


def test_ignore_files_hold_outside_of_repositories_too(tmp_path: Path) -> None:
    tree(tmp_path, "a.txt", "a.log", "sub/b.log", "sub/keep.log", "sub/deep/c.log", "sub/deep/c.txt")
    write(tmp_path / ".gitignore", "*.log\n/sub/deep/*.txt\n")
    write(tmp_path / "sub" / ".gitignore", "!keep.log\n")
    assert names(look(tmp_path), tmp_path) == ["a.txt", "sub/keep.log"]


def test_the_own_file_wins_and_may_take_in_again(tmp_path: Path) -> None:
    tree(
        tmp_path, "build/report.md", ".notes/n.md", "node_modules/m/readme.md", "draft.md", "env/pyvenv.cfg", "env/x.md"
    )
    write(tmp_path / ".gitignore", "build/\n!draft.md\n")
    write(tmp_path / ".edgeragignore", "draft.md\n!build/\n!.notes/\n!node_modules/\n!env/\n")
    assert names(look(tmp_path), tmp_path) == [
        ".notes/n.md", "build/report.md", "env/pyvenv.cfg", "env/x.md", "node_modules/m/readme.md"
    ]  # fmt: skip


def test_what_programs_make_for_themselves_is_left_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "a.md", "node_modules/m/readme.md", "src/__pycache__/x.txt", ".venv/lib/y.txt", "env/pyvenv.cfg",
        "env/lib/z.txt", ".git/config", "~$letter.docx", "letter.docx~", "film.part", "Thumbs.db",
    )  # fmt: skip
    found = look(tmp_path)
    assert names(found, tmp_path) == ["a.md"]
    assert found.left_out[str(tmp_path / "env")] == "It is a Python environment (ingest.junk)."
    assert "ingest.junk" in found.left_out[str(tmp_path / "node_modules")]
    assert len(names(look(tmp_path, selection=ALL), tmp_path)) == 11
    assert names(look(tmp_path / "node_modules"), tmp_path) == ["node_modules/m/readme.md"]


def test_hidden_files_can_be_asked_for(tmp_path: Path) -> None:
    tree(tmp_path, ".plan.txt", ".notes/a.md", "b.md", ".git/config")
    assert names(look(tmp_path, selection=Selection(hidden=True)), tmp_path) == [".notes/a.md", ".plan.txt", "b.md"]


def test_include_limits_files_and_exclude_wins(tmp_path: Path) -> None:
    tree(tmp_path, "a.pdf", "a.txt", "old/b.pdf", "new/c.pdf", "new/c.txt", "all/d.txt", "all/deep/e.bin")
    selection = Selection(include=("*.pdf", "/all/"), exclude=("old/", "deep"))
    assert names(look(tmp_path, selection=selection), tmp_path) == ["a.pdf", "all/d.txt", "new/c.pdf"]
    assert names(look(tmp_path, selection=Selection(include=("*", "!*.txt"))), tmp_path) == [
        "a.pdf", "all/deep/e.bin", "new/c.pdf", "old/b.pdf"
    ]  # fmt: skip
    assert names(look(tmp_path, selection=Selection(exclude=("*.pdf", "!new/*.pdf"))), tmp_path) == [
        "a.txt", "all/d.txt", "all/deep/e.bin", "new/c.pdf", "new/c.txt"
    ]  # fmt: skip


def test_include_does_not_take_in_what_is_ignored(tmp_path: Path) -> None:
    tree(tmp_path, "a.pdf", "b.pdf", ".c.pdf")
    write(tmp_path / ".gitignore", "b.pdf\n")
    assert names(look(tmp_path, selection=Selection(include=("*.pdf",))), tmp_path) == ["a.pdf"]


def test_a_named_file_is_read_whatever_the_rules(tmp_path: Path) -> None:
    tree(tmp_path, "secret.log", ".hidden", "x.part")
    write(tmp_path / ".gitignore", "*\n")
    selection = Selection(exclude=("*",), include=("nothing",))
    found = look(tmp_path / "secret.log", tmp_path / ".hidden", tmp_path / "x.part", selection=selection)
    assert names(found, tmp_path) == [".hidden", "secret.log", "x.part"]


def test_rules_of_the_repository_hold_below_it_but_not_for_what_is_named(tmp_path: Path) -> None:
    tree(tmp_path, "repo/.git/HEAD", "repo/docs/a.md", "repo/docs/a.tmp", "repo/docs/b.key", "repo/build/out/c.md")
    write(tmp_path / ".gitignore", "*.md\n")  # above the repository: not its business
    write(tmp_path / "repo" / ".gitignore", "*.tmp\nbuild/\nbuild/**\n")
    write(tmp_path / "repo" / ".git" / "info" / "exclude", "*.key\n")
    assert names(look(tmp_path / "repo" / "docs"), tmp_path) == ["repo/docs/a.md"]
    assert names(look(tmp_path / "repo" / "build" / "out"), tmp_path) == ["repo/build/out/c.md"]


def test_a_repository_inside_has_rules_of_its_own(tmp_path: Path) -> None:
    tree(tmp_path, "inner/.git/HEAD", "inner/a.md", "inner/b.txt", "c.md", "d.txt")
    write(tmp_path / ".gitignore", "*.md\n")
    write(tmp_path / ".edgeragignore", "b.txt\n")
    assert names(look(tmp_path), tmp_path) == ["d.txt", "inner/a.md"]


def test_reasons_name_the_file(tmp_path: Path) -> None:
    tree(tmp_path, "a.log", "sub/x/y.md", ".h", "b.md", "c.txt")
    write(tmp_path / ".gitignore", "*.log\n")
    write(tmp_path / "sub" / ".edgeragignore", "x/\n")
    found = look(tmp_path, selection=Selection(exclude=("b.*",), include=("*.md",)))
    root = str(tmp_path)
    assert found.reason_against(f"{root}/a.log", root=root) == f"It is ignored by {root}/.gitignore."
    assert found.reason_against(f"{root}/sub/x/y.md", root=root) == f"It is ignored by {root}/sub/.edgeragignore."
    assert found.reason_against(f"{root}/.h", root=root) == "It is hidden (ingest.hidden)."
    assert found.reason_against(f"{root}/b.md", root=root) == "It is excluded by the pattern 'b.*' (ingest.exclude)."
    # What was named itself, or lies in a folder that was, is its user's wish; what include does not name stays.
    assert found.reason_against(f"{root}/a.log", root=f"{root}/a.log") == ""
    assert found.reason_against(f"{root}/sub/x/y.md", root=f"{root}/sub/x") == ""
    assert found.reason_against(f"{root}/c.txt", root=root) == ""


def test_ignore_files_that_are_none_are_named_and_stop_nothing(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "big/b.md", "folder/.gitignore/x", "link/c.md")
    os.mkfifo(tmp_path / ".gitignore")
    write(tmp_path / "big" / ".gitignore", "b.md\n" * 60_000)
    (tmp_path / "link" / ".edgeragignore").symlink_to("/dev/zero")
    found = look(tmp_path)
    assert names(found, tmp_path) == ["a.md", "big/b.md", "link/c.md"]
    troubles = {os.path.relpath(unread.path, tmp_path): unread.reason for unread in found.unread if unread.trouble}
    assert set(troubles) == {".gitignore", "big/.gitignore", "folder/.gitignore", "link/.edgeragignore"}
    assert "256,000 bytes" in troubles["big/.gitignore"]


def test_odd_bytes_and_line_ends(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.txt")
    tree(tmp_path, odd, "a.md", "b.md", "c.md")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfa.md\r\nb.md\ncaf\xe9.*")
    assert names(look(tmp_path), tmp_path) == ["c.md"]


# ---------------------------------------------------------------- a part of a folder


@settings(max_examples=60, deadline=None)
@given(files=FILES, lines=st.lists(LINE, max_size=4), own=st.lists(LINE, max_size=2), changed=FILES)
def test_looking_at_a_part_sees_what_looking_at_all_sees(
    files: list[str], lines: list[str], own: list[str], changed: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for file in [*files, ".h/x", "node_modules/y"]:
            path = root / file
            if not any(above.is_file() for above in path.parents if above.is_relative_to(root)) and not path.exists():
                write(path)
        write(root / ".gitignore", "\n".join(lines))
        if (root / "a").is_dir():
            write(root / "a" / ".edgeragignore", "\n".join(own))
        places = {str(root / part) for part in changed}
        everything, part = look(root), look(root, changed=places)
        assert part.files == tuple(file for file in everything.files if part.covers(file.path))
        assert all(not everything.reason_against(file.path, root=file.root) for file in part.files)
        assert part.covers(str(root)) == (str(root) in places)


def test_what_is_asked_for_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    tree(tmp_path, "docs/a.md", "other/b.md")
    found = look(tmp_path / "docs", changed=[str(tmp_path / "other" / "b.md"), str(tmp_path / "docs" / "gone.md")])
    assert found.files == ()
    assert found.covers(str(tmp_path / "docs" / "gone.md"))
    assert not found.covers(str(tmp_path / "other" / "b.md"))


def test_a_root_that_is_gone_is_passed_over_when_a_part_is_looked_at(tmp_path: Path) -> None:
    tree(tmp_path, "docs/a.md")
    found = look(tmp_path / "stick", tmp_path / "docs", changed=[str(tmp_path / "stick"), str(tmp_path / "docs")])
    assert names(found, tmp_path) == ["docs/a.md"]
    assert not found.covers(str(tmp_path / "stick" / "x"))


def test_a_changed_link_is_read_once(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", ".store/1")
    (tmp_path / "again.md").symlink_to("a.md")
    (tmp_path / "paper.md").symlink_to(".store/1")
    found = look(tmp_path, changed=[str(tmp_path / "again.md"), str(tmp_path / "paper.md")])
    assert names(found, tmp_path) == ["paper.md"]


def test_own_reports_are_withheld(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "report.json")
    assert names(look(tmp_path, withheld=[str(tmp_path / "report.json")]), tmp_path) == ["a.md"]
