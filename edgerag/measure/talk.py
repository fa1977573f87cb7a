"""A process that measures one thing and is told what to do, line by line in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Self, TextIO

from edgerag.errors import EdgeragError

_MARK = "edgerag-measured:"  # what libraries print is passed over


class Talk:
    """Starts a module that calls :func:`serve`, and asks it. A context manager: the process ends with the block."""

    def __init__(self, module: str) -> None:
        # Its standard error is ours: what it says when it fails is for the user.
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: str, /, *arguments: Any, **named: Any) -> Any:
        """What the method ``request`` gives. Raises EdgeragError when the process ends or the method fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": request, "with": arguments, "and": named}) + "\n")
            self._process.stdin.flush()
            line = next((line for line in self._process.stdout if line.startswith(_MARK)), "")
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise EdgeragError(f"The measured process ended with code {code} at {request!r}.")
        answer = json.loads(line.removeprefix(_MARK))
        if "error" in answer:
            raise EdgeragError(f"Measuring failed at {request!r}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(measured: object, *, requests: TextIO, answers: TextIO) -> None:
    """Calls the methods of ``measured`` that are asked for, until ``requests`` end."""
    for line in requests:
        request = json.loads(line)
        try:
            answer = {"result": getattr(measured, request["do"])(*request["with"], **request["and"])}
        except EdgeragError as error:
            answer = {"error": str(error)}
        answers.write(f"\n{_MARK}{json.dumps(answer)}\n")
        answers.flush()
