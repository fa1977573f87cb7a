"""Widgets that grow with a streaming answer, laid out once for a word and not twice.

Textual lays the whole screen out again when a widget's ``virtual_size`` is another, and it sets that while it lays the
screen out. For what takes its height from its content that is a second layout, and a second paint, of the same screen
(docs/decisions/119).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size

if TYPE_CHECKING:
    from textual.widget import Widget as _Base
else:
    _Base = object  # Textual looks for styles in the first base that is a widget, which is not to be this one


class OneLayout(_Base):
    """To be named before the Textual class that it is mixed into."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:  # noqa: ARG002 - Textual's signature
        return super()._size_updated(size, virtual_size, container_size, layout=False)
