"""How a drawn page goes from the parser process to its parent: checked field by field, as all that comes from there."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgerag.ingest.parse import wire_fields as fields
from edgerag.types.pictures import MOST_BOXES, MOST_PIXELS, PagePicture, PageWanted, PixelBox

_WIDEST = 20_000  # pixels
_LAST_PAGE = 10_000_000


@dataclass(frozen=True, slots=True)
class PageReply:
    """A page as it is seen, and the checksum of the file or the member that it was drawn from."""

    picture: PagePicture
    sha256: str


def wanted_body(wanted: PageWanted) -> Mapping[str, Any]:
    return {"number": wanted.number, "width": wanted.width, "passage": wanted.passage, "quote": wanted.quote}


def read_wanted(body: Any) -> PageWanted:
    """Raises ValueError, KeyError or TypeError for what is none."""
    return PageWanted(
        fields.number_within(body["number"], 1, _LAST_PAGE),
        fields.number_within(body["width"], 1, _WIDEST),
        fields.text(body["passage"]),
        fields.text(body["quote"]),
    )


def page_body(drawn: PageReply) -> Mapping[str, Any]:
    picture = drawn.picture
    return {
        "number": picture.number,
        "page_count": picture.page_count,
        "width": picture.width,
        "height": picture.height,
        "rgb": base64.b64encode(picture.rgb).decode("ascii"),
        "passage": picture.passage,
        "quote": picture.quote,
        "sha256": drawn.sha256,
    }


def read_page(body: Any) -> PageReply:
    """Raises ValueError, KeyError or TypeError for what is none: a picture of another size than it says, boxes outside
    it."""
    width, height = (
        fields.number_within(body["width"], 1, MOST_PIXELS),
        fields.number_within(body["height"], 1, MOST_PIXELS),
    )
    if width * height > MOST_PIXELS:
        raise ValueError("the picture is too large")
    rgb = base64.b64decode(fields.text(body["rgb"]), validate=True)
    if len(rgb) != 3 * width * height:
        raise ValueError("the picture has not the size that it says")
    page_count = fields.number_within(body["page_count"], 1, _LAST_PAGE)
    picture = PagePicture(
        fields.number_within(body["number"], 1, page_count),
        page_count,
        width,
        height,
        rgb,
        _boxes(body["passage"], width, height),
        _boxes(body["quote"], width, height),
    )
    return PageReply(picture, fields.text(body["sha256"]))


def _boxes(value: Any, width: int, height: int) -> tuple[PixelBox, ...]:
    if not isinstance(value, list) or len(value) > MOST_BOXES:
        raise ValueError("these are no boxes")
    boxes: list[PixelBox] = []
    for left, top, right, bottom in value:
        boxes.append(
            (
                fields.number_within(left, 0, width),
                fields.number_within(top, 0, height),
                fields.number_within(right, 0, width),
                fields.number_within(bottom, 0, height),
            )
        )
    return tuple(boxes)
