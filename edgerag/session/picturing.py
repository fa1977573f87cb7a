"""Looking at the pages of a document's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgerag.errors import DocumentGone, LibraryMissing
from edgerag.session.browsing import Browsing
from edgerag.types import Source

if TYPE_CHECKING:
    from edgerag.ingest.page_pictures import PagePictures


class Picturing(Browsing):
    """What shows a document as it is seen."""

    def source_pages(self, source: Source) -> PagePictures:
        """The pages of the document of a source; to be closed by who asked.

        Raises DocumentUnsupported where it has none that can be drawn, DocumentGone where the document is no longer in
        the library, LibraryError.
        """
        from edgerag.ingest.page_pictures import PagePictures

        stored = source.hit.chunk
        try:
            with self._library_called(stored.library) as library:
                document = self._document_of(library, source)
        except LibraryMissing:
            document = None
        if document is None:
            raise DocumentGone("The document is no longer in the library.")
        return PagePictures(document, self.settings.ingest)
