"""Office files that are encrypted as a whole (MS-OFFCRYPTO), opened with one of the given passwords.

The library for it, msoffcrypto-tool, is loaded when the first such file comes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence

from edgerag.errors import DocumentDamaged
from edgerag.ingest.parse.passwords import refused

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PACKAGE = "EncryptedPackage".encode("utf-16-le")
# With this one Excel encrypts what may be read by anyone but not changed; it opens such files by itself.
_READ_ONLY = "VelvetSweatshop"
# What the library raises for files that contradict themselves.
_DAMAGES = (struct.error, zlib.error, ValueError, LookupError, OSError, AttributeError, TypeError)
_REMEDY = "Open it in the program that made it and save a copy without the password."


def is_locked(data: bytes) -> bool:
    """Whether this is a DOCX, XLSX or PPTX in an encrypted shell."""
    return data.startswith(_OLE) and _PACKAGE in data


def unlocked(data: bytes, passwords: Sequence[str], *, what: str = "The Office document") -> bytes:
    """The file without its encryption. Raises DocumentEncrypted when no password is right, DocumentDamaged."""
    import msoffcrypto
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError, ParseError

    try:
        for password in (_READ_ONLY, *filter(None, passwords)):
            file = msoffcrypto.OfficeFile(io.BytesIO(data))
            try:
                file.load_key(password=password, **_verifying(file))
                unpacked = io.BytesIO()
                file.decrypt(unpacked)
            except InvalidKeyError:
                continue
            except DecryptionError as error:
                raise DocumentDamaged(
                    f"{what} is encrypted in a way that is not read: {error}.", remedy=_REMEDY
                ) from error
            content = unpacked.getvalue()
            if data.startswith(_OLE) and (not is_locked(data) or zipfile.is_zipfile(io.BytesIO(content))):
                return content
    except (*_DAMAGES, FileFormatError, ParseError) as error:
        if passwords:
            raise DocumentDamaged(
                f"{what} is encrypted, and damaged or of a rare kind: {error}.", remedy=_REMEDY
            ) from error
    raise refused(what, tried=bool(passwords))


def _verifying(file: object) -> dict[str, bool]:
    """The newer formats check a password only when asked to."""
    return {"verify_password": True} if type(file).__name__ == "OOXMLFile" else {}
