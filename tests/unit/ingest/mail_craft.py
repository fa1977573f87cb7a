"""Mails of several parts, made on the spot."""

from __future__ import annotations

import base64

HEAD = "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>\nSubject: Hello\nDate: Fri, 1 Mar 2024 09:30:00 +0100\n"
PLAIN = "Content-Type: text/plain\n\nPlain words."
HTML = "Content-Type: text/html\n\n<h1>Part</h1><p>Formatted words.</p>"


def parts(kind: str, *inner: str, head: str = HEAD) -> str:
    """A multipart; each part begins with its headers and an empty line."""
    body = "".join(f"--b0und\n{part}\n" for part in inner)
    return f'{head}MIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary="b0und"\n\n{body}--b0und--\n'


def nested(kind: str, boundary: str, *inner: str) -> str:
    body = "".join(f"--{boundary}\n{part}\n" for part in inner)
    return f"Content-Type: multipart/{kind}; boundary={boundary}\n\n{body}--{boundary}--"


def attachment(name: str, content: bytes, kind: str = "application/octet-stream") -> str:
    data = base64.encodebytes(content).decode()
    return (
        f"Content-Type: {kind}\nContent-Transfer-Encoding: base64\n"
        f"Content-Disposition: attachment; {name}\n\n{data}".rstrip("\n")
    )
