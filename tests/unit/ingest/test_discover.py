from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from edgerag.errors import UsageError
from edgerag.ingest.discover import Discovery, discover


def look(*paths: Path, own: Path = Path("/nowhere/library")) -> Discovery:
    return discover(paths, own=own)


def names(found: Discovery, root: Path) -> list[str]:
    return [os.path.relpath(candidate.path, root) for candidate in found.files]


def make(root: Path, *files: str) -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)


def test_files_and_folders_sorted_and_once(tmp_path: Path) -> None:
    make(tmp_path, "b.txt", "a.txt", "sub/c.txt", "other/d.txt")
    found = look(tmp_path / "sub", tmp_path, tmp_path / "a.txt", tmp_path / "sub" / ".." / "b.txt")
    assert names(found, tmp_path) == ["a.txt", "b.txt", "other/d.txt", "sub/c.txt"]
    first = found.files[0]
    assert (first.size_bytes, first.mtime_ns) == (5, (tmp_path / "a.txt").stat().st_mtime_ns)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'.*nothing-here'"):
        look(tmp_path / "nothing-here")


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert look(tmp_path).files == ()


def test_hidden_files_and_folders_are_left_out_unless_named(tmp_path: Path) -> None:
    make(tmp_path, ".secret", ".git/config", "seen.txt")
    assert names(look(tmp_path), tmp_path) == ["seen.txt"]
    assert names(look(tmp_path / ".git"), tmp_path) == [".git/config"]


def test_a_path_too_long_for_the_system_is_named(tmp_path: Path) -> None:
    name, folders = "d" * 200, [os.open(tmp_path, os.O_RDONLY)]
    for _ in range(22):
        os.mkdir(name, dir_fd=folders[-1])
        folders.append(os.open(name, os.O_RDONLY, dir_fd=folders[-1]))
    for folder in folders:
        os.close(folder)
    (unread,) = look(tmp_path).unread
    assert unread.trouble
    assert "name too long" in unread.reason


def test_links_that_leave_the_folder_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "in/a.txt", "out/b.txt")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "file.txt").symlink_to(tmp_path / "out" / "b.txt")
    (tmp_path / "in" / "dead.txt").symlink_to("nowhere")
    (tmp_path / "in" / "loop").symlink_to(".")
    (tmp_path / "in" / "again.txt").symlink_to("a.txt")
    found = look(tmp_path / "in")
    assert names(found, tmp_path / "in") == ["a.txt"]
    assert {Path(unread.path).name: unread.reason for unread in found.unread} == {
        "folder": "It is a symbolic link that leaves the folder.",
        "file.txt": "It is a symbolic link that leaves the folder.",
        "dead.txt": "It is a symbolic link to nothing that can be opened.",
    }


def test_a_link_into_a_hidden_store_of_the_folder_is_read(tmp_path: Path) -> None:
    make(tmp_path, ".git/annex/objects/1")
    (tmp_path / "paper.txt").symlink_to(".git/annex/objects/1")
    assert names(look(tmp_path), tmp_path) == ["paper.txt"]


def test_a_named_link_is_followed(tmp_path: Path) -> None:
    make(tmp_path, "real/a.txt")
    (tmp_path / "link").symlink_to("real")
    assert names(look(tmp_path / "link"), tmp_path) == ["link/a.txt"]


def test_pipes_sockets_and_devices_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        found = look(tmp_path, Path("/dev/null"))
    assert found.files == ()
    assert [unread.reason for unread in found.unread] == ["It is a device.", "It is a named pipe.", "It is a socket."]
    assert not any(unread.trouble for unread in found.unread)


def test_a_folder_that_cannot_be_opened_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "closed/a.txt", "open/b.txt")
    real = os.scandir

    def scandir(folder: str) -> object:  # as for another user; this test may run as root
        if folder.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    found = look(tmp_path)
    assert names(found, tmp_path) == ["open/b.txt"]
    (unread,) = found.unread
    assert (Path(unread.path).name, unread.trouble) == ("closed", True)
    assert "Permission denied" in unread.reason


def test_names_in_odd_bytes_survive(tmp_path: Path) -> None:
    name = b"caf\xe9\n\xff.txt"
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("x")
    (candidate,) = look(tmp_path).files
    assert os.fsencode(json.loads(json.dumps(candidate.path))).endswith(name)


def test_the_library_itself_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "indexes/mine/library.sqlite", "indexes/mine/segments/1", "notes.txt")
    own = tmp_path / "indexes" / "mine"
    assert names(look(tmp_path, own=own), tmp_path) == ["notes.txt"]
    for inside in (own, own / "library.sqlite"):
        found = look(inside, own=own)
        assert found.files == ()
        assert "library itself" in found.unread[0].reason


def test_what_is_covered(tmp_path: Path) -> None:
    make(tmp_path, "a/x.txt", "ab/y.txt")
    found = look(tmp_path / "a")
    assert found.covers(str(tmp_path / "a" / "gone.txt"))
    assert not found.covers(str(tmp_path / "ab" / "y.txt"))
