"""Names of files in files, and which file is which when something moved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgerag.ingest.member_paths import member_path, outer_path

names = st.text(min_size=1, max_size=5).filter(lambda name: "/" not in name)


@given(st.lists(names, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=3))
def test_the_file_on_the_disk_is_found_again(folders: list[str], member: list[str]) -> None:
    outer = "/" + "/".join(folders)
    path = member_path(outer, member)
    assert outer_path(path, lambda known: known == outer) == outer
    assert member_path(outer, ()) == outer


def test_a_folder_that_ends_like_a_file_with_members_is_none() -> None:
    assert outer_path("/docs/wow!/one.txt", lambda _: False) == ""
    assert outer_path("/docs/wow!/box.zip!/one.txt", lambda path: path == "/docs/wow!/box.zip") == "/docs/wow!/box.zip"
