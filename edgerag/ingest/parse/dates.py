"""When a document says that it was written: the date of a mail, the last change that a file's properties name; and
the time of a file as a library can hold it.

What they say is not checked; what can be no date of a file (before 1970, the clock that was never set, or beyond what
64 bits of nanoseconds hold) counts as not said. A date without a zone is one of the zone of this machine.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from xml.etree import ElementTree

# Of Office Open XML and of OpenDocument; the last change first.
PROPERTIES = (
    "{http://purl.org/dc/terms/}modified",
    "{http://purl.org/dc/elements/1.1/}date",
    "{http://purl.org/dc/terms/}created",
    "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}creation-date",
)
_FIRST_S = 86_400  # 1970-01-02: earlier is an unset clock
_LAST_S = 9_000_000_000  # in 2255
# D:20240517143000+02'00' (ISO 32000-1, 7.9.4); everything after the year may be missing, and some leave out "D:".
_PDF = re.compile(
    r"\s*(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?\s*(?:(Z)|([+-])(\d{2})'?(\d{2})?)?", re.ASCII
)

# What a library can hold: 1677 to 2262. NTFS (from 1601), XFS and ext4 have files beyond.
_FIRST_NS, _LAST_NS = -(2**63), 2**63 - 1


def file_time_ns(status: os.stat_result) -> int:
    """When a file was changed, in nanoseconds since 1970; what 64 bits do not hold is the nearest that they do."""
    return min(max(status.st_mtime_ns, _FIRST_NS), _LAST_NS)


def iso_date_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of a date in ISO 8601; None for what is no such date."""
    try:
        return _checked(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def pdf_date_ns(text: str) -> int | None:
    """The same of a date as PDF writes it."""
    match = _PDF.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, utc, sign, zone_hours, zone_minutes = match.groups()
    zone = "+00:00" if utc else f"{sign}{zone_hours}:{zone_minutes or '00'}" if sign else ""
    iso = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    return iso_date_ns(iso)


def properties_date_ns(root: ElementTree.Element) -> int | None:
    """The same of the properties of an office document or a book: of its last change, else of its making."""
    dates = (iso_date_ns(element.text or "") for tag in PROPERTIES for element in root.iter(tag))
    return next((moment for moment in dates if moment is not None), None)


def _checked(moment: datetime) -> int | None:
    try:
        seconds = moment.timestamp()
    except (OverflowError, OSError, ValueError):  # beyond what the system's clock can say
        return None
    return int(seconds) * 10**9 if _FIRST_S <= seconds <= _LAST_S else None
