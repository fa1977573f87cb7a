"""Settings become opened parts here, and only here: every user interface works through a Session.

Models are loaded when first needed and at most once; :meth:`Session.warm` starts that in the
background, so that reading the index and loading weights overlap. The library is opened twice for
reading, once for asking and once for browsing, so that a list of documents never waits for an
answer; ingest opens its own writer. All of them share one ceiling on the memory of the index.
"""

from edgerag.session.ingesting import document_number
from edgerag.session.session import Session
from edgerag.session.wiring import never

__all__ = ["Session", "document_number", "never"]
