"""Running heads and page numbers: kept where they stand first, taken out of the text of the other pages. Pure.

A line runs when it stands at the same height on most pages, or on every page or every other page of a long enough
stretch (the head of a chapter), with nothing farther out on its page but other lines that run. Its numbers are the
same too, or count with the pages.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from edgerag.ingest.parse.pdf_lines import Line

_FEWEST_PAGES = 3
_FEWEST_IN_STRETCH = 4
_HEIGHT_STEP = 3.0  # points: heights that differ by less are the same
_OUTERMOST = 4  # lines from the top and from the bottom of a page
_LONGEST = 200
_NUMBER = re.compile(r"\d{1,9}|\b[ivxlc]{1,8}\b", re.I)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_MOST_NUMBERS = 3  # in a line: each is the same on every page, or counts with them

_Key = tuple[str, bool]  # the words, and whether they stand at the top


def without_running(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The pages without lines that run from an earlier page."""
    if len(pages) < _FEWEST_PAGES:
        return [list(lines) for lines in pages]
    edges = [{True: _edge(lines, top=True), False: _edge(lines, top=False)} for lines in pages]
    running = _running(edges)
    seen: set[_Key] = set()
    kept: list[list[Line]] = []
    for number, (lines, edge) in enumerate(zip(pages, edges, strict=True)):
        gone: set[int] = set()
        here: set[_Key] = set()
        for top, outer in edge.items():
            for line in outer:
                keys = {(words, top) for words in _words(line, number)}
                runs = {key for key in keys if number in running.get(key, ())}
                if not runs:
                    break  # what stands farther in is text
                if runs & seen:
                    gone.add(id(line))
                here |= runs
        seen |= here
        rest = [line for line in lines if id(line) not in gone]
        kept.append(rest or list(lines))  # a page of nothing else: it is what the page says
    return kept


def _edge(lines: Sequence[Line], *, top: bool) -> list[Line]:
    """The outermost lines of a page, from the edge inwards."""
    placed = sorted((line for line in lines if line.size), key=lambda line: -line.first if top else line.first)
    return [line for line in placed[:_OUTERMOST] if len(line.text) <= _LONGEST]


def _words(line: Line, page: int) -> Iterator[str]:
    """What a line says, with each of its numbers as it is, and as its distance from the number of the page."""
    text = " ".join(line.text.casefold().split())
    numbers = list(_NUMBER.finditer(text))
    yield text
    if not 0 < len(numbers) <= _MOST_NUMBERS:
        return
    for counts in itertools.product((False, True), repeat=len(numbers)):
        said: list[str] = []
        end = 0
        for number, counting in zip(numbers, counts, strict=True):
            said.append(text[end : number.start()])
            said.append(f"#{_value(number[0]) - page}#" if counting else number[0])
            end = number.end()
        yield "".join([*said, text[end:]])


def _value(number: str) -> int:
    if number[0].isdigit():
        return int(number)
    values = [_ROMAN[digit] for digit in number]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _running(edges: Sequence[dict[bool, list[Line]]]) -> dict[_Key, set[int]]:
    """The pages (from 0) on which each line runs."""
    places: dict[_Key, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, edge in enumerate(edges):
        for top, outer in edge.items():
            for line in outer:
                step = round(line.first / _HEIGHT_STEP)
                for words, near in itertools.product(set(_words(line, number)), (step - 1, step, step + 1)):
                    places[(words, top)][near].append(number)
    running: dict[_Key, set[int]] = defaultdict(set)
    for key, at in places.items():
        for numbers in at.values():
            pages = sorted(set(numbers))
            if len(pages) >= _FEWEST_PAGES and 2 * len(pages) > len(edges):
                running[key].update(pages)
            else:
                running[key].update(_stretches(pages))
    return running


def _stretches(pages: Sequence[int]) -> set[int]:
    """The pages of long enough runs in which every page or every other page is there."""
    found: set[int] = set()
    stretch: list[int] = list(pages[:1])
    for before, page in pairwise([*pages, pages[-1] + 10]):
        if page - before > 2:
            if len(stretch) >= _FEWEST_IN_STRETCH:
                found.update(stretch)
            stretch = []
        stretch.append(page)
    return found
