from __future__ import annotations

import pytest
from unit.measure.eval.craft import stored

from edgerag.measure.eval.matching import Target, even, fits, ranking


def target(*paths: str, page: int | None = None, text: str = "", grade: float = 1.0) -> Target:
    return Target(frozenset(paths), page, even(text), grade)


def test_a_document_stands_where_its_best_chunk_does_and_only_there() -> None:
    found = [
        stored("/b"),
        stored("/b", number=2),
        stored("/a", number=3),
        stored("/a", number=4),
        stored("/c", number=5),
    ]
    assert ranking(found, [target("/a"), target("/c")]) == (frozenset(), {0}, {1})


def test_a_copy_of_the_document_is_as_good() -> None:
    assert ranking([stored("/copy", also_in=("/a",))], [target("/a")]) == ({0},)


def test_a_page_is_met_by_a_chunk_that_holds_some_of_it() -> None:
    wanted = [target("/a", page=3)]
    assert ranking([stored("/a", pages=(1, 2)), stored("/a", number=2, pages=(2, 3))], wanted) == (frozenset(), {0})
    assert ranking([stored("/a")], wanted) == (frozenset(),), "a file without pages has no page 3"


def test_pages_of_the_right_file_that_are_wrong_take_a_rank_each() -> None:
    found = [stored("/a", pages=(1, 1)), stored("/a", number=2, pages=(2, 2)), stored("/a", number=3, pages=(2, 2))]
    assert ranking(found, [target("/a", page=9)]) == (frozenset(), frozenset())


def test_text_is_found_without_regard_to_case_and_line_ends() -> None:
    wanted = [target(text="9 Nm, crosswise")]
    assert ranking([stored(text="Lid screws:\n9 nm,\n  crosswise")], wanted) == ({0},)
    assert ranking([stored(text="9 Nm"), stored(text="12 Nm", number=2)], wanted) == (frozenset(), frozenset())


def test_what_is_given_must_hold_together() -> None:
    wanted = [target("/a", text="torque")]
    assert ranking([stored("/b", "torque"), stored("/a", "pressure", number=2)], wanted) == (frozenset(), frozenset())
    assert ranking([stored("/a", "Torque")], wanted) == ({0},)


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("/home/me/docs/manual.pdf", "manual.pdf", True),
        ("/home/me/docs/manual.pdf", "docs/manual.pdf", True),
        ("/home/me/docs/manual.pdf", "/home/me/docs/manual.pdf", True),
        ("/home/me/docs/old-manual.pdf", "manual.pdf", False),
        ("/home/me/box.zip!/letters/one.docx", "one.docx", True),
        ("/home/me/box.zip!/letters/one.docx", "box.zip!/letters/one.docx", True),
        ("/home/me/box.zip", "one.docx", False),
    ],
)
def test_a_file_is_named_by_the_end_of_its_path(path: str, name: str, expected: bool) -> None:
    assert fits(path, name) is expected
