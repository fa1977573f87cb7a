"""Pictures of screens as SVG files: made small and the same every time, and compared in words."""

from __future__ import annotations

import difflib
import html
import re
from pathlib import Path

import textual

_ROW_PIXELS, _CELL_PIXELS = 24.4, 12.2  # of a cell in Rich's SVG
_TEXT = re.compile(r'<text class="[^"]*-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_STYLE = re.compile(r"-(r\d+) \{([^}]*)\}")
_GROUND = re.compile(r'<rect fill="([^"]*)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"')
_MOST_SAID = 24  # lines of a difference: what has moved by a row changes all below it


def compact(svg: str) -> str:
    """The picture without what says nothing about the screen: web fonts, and the number that Rich makes of it all,
    which would change every line when one word does."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: *(?:Fira Code|arial)[^;]*;", "font-family: monospace;", svg)
    svg = re.sub(r"terminal-\d+", "t", svg)
    # One clip path for each row, which only browsers with another font would need.
    svg = re.sub(r'<clipPath id="t-line-\d+">.*?</clipPath>', "", svg, flags=re.DOTALL)
    svg = re.sub(r' clip-path="url\(#t-line-\d+\)"', "", svg)
    svg = svg.replace(' shape-rendering="crispEdges"', "").replace(
        "<style>", "<style>rect { shape-rendering: crispEdges }", 1
    )
    svg = svg.replace("&#160;", " ").replace("<text ", '<text xml:space="preserve" ')
    svg = re.sub(r'(<text) (xml:space="preserve") (class="[^"]*") ', r"\1 \3 \2 ", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def rows_of(svg: str) -> list[str]:
    """The words of a picture, row by row."""
    rows: dict[int, str] = {}
    for _, x, y, text in _texts(svg):
        row = rows.get(y, "")
        rows[y] = row.ljust(x) + text
    return [rows.get(y, "").rstrip() for y in range(max(rows, default=-1) + 1)]


def _texts(svg: str) -> list[tuple[str, int, int, str]]:
    svg = svg.replace(' xml:space="preserve"', "")
    return [
        (style, round(float(x) / _CELL_PIXELS), round((float(y) - 20) / _ROW_PIXELS), html.unescape(text))
        for style, x, y, text in _TEXT.findall(svg)
    ]


def difference(before: str, after: str) -> str:
    """What a person would see that is another in the second picture; "" where it is the same picture."""
    if before == after:
        return ""
    rows = [*difflib.unified_diff(rows_of(before), rows_of(after), "before", "now", lineterm="", n=1)][2:]
    if not rows:
        rows = ["The words are the same; their colours are not:", *_colours(before, after)]
    more = [f"... and {len(rows) - _MOST_SAID} lines more"] if len(rows) > _MOST_SAID else []
    return "\n".join(rows[:_MOST_SAID] + more)


def _colours(before: str, after: str) -> list[str]:
    said = []
    for kind in (_painted, _grounds):
        old, new = kind(before), kind(after)
        for place in sorted(old.keys() | new.keys()):
            was, is_now = old.get(place), new.get(place)
            said += [f"row {place[0] + 1}, column {place[1] + 1}: {was} -> {is_now}"] * (was != is_now)
    return said


def _painted(svg: str) -> dict[tuple[int, int], str]:
    styles = dict(_STYLE.findall(svg))
    return {(y, x): f"{text.strip()[:30]!r} {styles.get(style, '').strip()}" for style, x, y, text in _texts(svg)}


def _grounds(svg: str) -> dict[tuple[int, int], str]:
    return {
        (round(float(y) / _ROW_PIXELS), round(float(x) / _CELL_PIXELS)): f"ground {colour}, {float(width):.0f} wide"
        for colour, x, y, width in _GROUND.findall(svg)
    }


class Album:
    """A folder of pictures, which the version of Textual belongs to that drew them."""

    def __init__(self, folder: Path, *, renew: bool) -> None:
        self.folder = folder
        self._renew = renew
        self._seen: set[str] = set()

    def compare(self, name: str, svg: str, *, aside: Path) -> str:
        """What is another than in the picture of that name; with ``renew`` it takes its place. What is not the same is
        written to ``aside``, to be looked at."""
        self._seen.add(name)
        now, file = compact(svg), self.folder / f"{name}.svg"
        if self._renew:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(now, encoding="utf-8")
            return ""
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        said = difference(before, now)
        if said:
            aside.mkdir(parents=True, exist_ok=True)
            (aside / f"{name}.svg").write_text(now, encoding="utf-8")
            said = f"{file.parent.name}/{file.name} is no longer what the screen shows ({aside / file.name}):\n{said}"
        return said

    def unknown(self) -> set[str]:
        """Pictures that nothing is compared with any more; taken away with ``renew``."""
        old = {file.stem for file in self.folder.glob("*.svg")} - self._seen
        if self._renew:
            for name in old:
                (self.folder / f"{name}.svg").unlink()
            return set()
        return old


def drawn_with(folder: Path, *, renew: bool) -> str:
    """The version of Textual that drew the pictures."""
    file = folder / "textual-version"
    if renew:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{textual.__version__}\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
