"""Whether the text of an RTF is seen: hidden, a dot, or in the colour of what it stands on (RTF 1.9.1, "Font").

The ground is known where the text or its paragraph is shaded, or nothing is: then it is the white page. In a table
that shades its cells, and in a text box, it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgerag.ingest.parse.colour import WHITE, Colour, alike

_SMALLEST_HALF_POINTS = 2  # a letter of one point or less is a dot
_MOST_COLOURS = 10_000


@dataclass(frozen=True, slots=True)
class Look:
    """What holds for the text that follows. Colours are numbers of the colour table; 0 is what the reader chooses."""

    hidden: bool = False
    half_points: int | None = None
    colour: int = 0
    ground: int = 0  # of the text itself: its background or marker
    paragraph_ground: int = 0


class Colours:
    """The colour table."""

    def __init__(self) -> None:
        self._table: list[Colour | None] = []
        self._entry: dict[str, int] = {}
        self.shaded_cells = False

    def component(self, word: str, number: int | None) -> None:
        """A word of the table: "red", "green" or "blue"."""
        self._entry[word] = min(max(number or 0, 0), 255)

    def separators(self, text: str) -> None:
        """The text of the table: each semicolon ends an entry."""
        for _ in range(min(text.count(";"), _MOST_COLOURS - len(self._table))):
            entry = self._entry
            self._table.append((entry.get("red", 0), entry.get("green", 0), entry.get("blue", 0)) if entry else None)
            self._entry = {}

    def hides(self, look: Look, *, in_table: bool, in_box: bool) -> bool:
        """Whether a text that looks so is not seen."""
        if look.hidden or (look.half_points is not None and look.half_points <= _SMALLEST_HALF_POINTS):
            return True
        colour = self._colour(look.colour)
        if colour is None:
            return False
        number = look.ground or look.paragraph_ground
        on_page = None if in_box or (in_table and self.shaded_cells) else WHITE
        ground = self._colour(number) if number else on_page
        return ground is not None and alike(colour, ground)

    def _colour(self, number: int) -> Colour | None:
        return self._table[number] if 0 < number < len(self._table) else None
