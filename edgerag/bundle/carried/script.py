"""What ``install.py`` in a bundle runs: ``python3 install.py --to FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import contents, minisign
from .installing import install
from .refused import Refused

EXIT_REFUSED = 6  # as edgerag's own


def main(bundle: Path, arguments: list[str] | None = None) -> int:
    """Installs the bundle at ``bundle``, or only compares it; gives the exit code."""
    parser = argparse.ArgumentParser(prog="install.py", description="Installs edgerag from this bundle, offline.")
    parser.add_argument("--to", metavar="FOLDER", help="a new folder")
    parser.add_argument("--verify", action="store_true", help="only compare every file with the manifest")
    parser.add_argument("--public-key", metavar="FILE", help="the key that the bundle must be signed with (minisign)")
    parsed = parser.parse_args(arguments)
    if not parsed.verify and not parsed.to:
        parser.error("name a new folder: --to FOLDER")
    try:
        key = read_key(Path(parsed.public_key)) if parsed.public_key else None
        if parsed.verify:
            with contents.opened(bundle) as open_bundle:
                head = contents.head(open_bundle, str(bundle), key)
                contents.check(open_bundle, head.manifest, str(bundle), sink=lambda _: None, progress=_nothing)
            _say(verdict(head))
            return 0
        head = install(bundle, Path(parsed.to), key=key, say=_say, progress=_nothing)
    except Refused as error:
        _say(f"install.py: {error}")
        return EXIT_REFUSED
    except KeyboardInterrupt:
        _say("install.py: interrupted; nothing was left behind.")
        return 130
    _say(verdict(head))
    _say(f"edgerag {head.manifest.edgerag} is installed. Run: {Path(parsed.to).absolute() / 'bin' / 'edgerag'}")
    return 0


def read_key(path: Path) -> minisign.PublicKey:
    """Raises Refused."""
    try:
        with path.open("rb") as stream:
            data = stream.read(minisign.LONGEST_FILE_BYTES)
    except OSError as error:
        raise Refused(f"The key {path} cannot be read: {error.strerror}.") from error
    return minisign.public_key(data, str(path))


def verdict(head: contents.Head) -> str:
    """One sentence about what was compared, and what that proves."""
    count = f"All {len(head.manifest.files):,} files are as the manifest says"
    if head.trusted:
        return f"{count}, and the manifest is signed with the key {head.signed_by}."
    if head.signed_by:
        return f"{count}. It says that it is signed with the key {head.signed_by}: --public-key FILE compares that."
    return f"{count}. It is not signed: that it comes from who you think is not shown."


def _say(text: str) -> None:
    printable = text.encode("ascii", "backslashreplace").decode("ascii")
    sys.stderr.write("".join(letter if letter.isprintable() else "?" for letter in printable) + "\n")


def _nothing(_done: int, _whole: int) -> None:
    """No progress is shown."""
