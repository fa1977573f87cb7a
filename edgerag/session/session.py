"""One user at work with one library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.config import MetricsSettings, Settings, TraceSettings
from edgerag.session.asking import Asking
from edgerag.session.ingesting import Ingesting
from edgerag.session.keeping import Keeping
from edgerag.session.models import Models
from edgerag.session.picturing import Picturing
from edgerag.settings.effective import RELOADING, felt_now

if TYPE_CHECKING:
    from edgerag.measure.eval.stages import Subject


class Session(Asking, Ingesting, Keeping, Models, Picturing):
    """One user at work with one library.

    ``embedder``, ``generator`` and ``reranker`` replace the models named in the settings (tests and embedding the
    program elsewhere); they are made at most once.
    """

    def adopt(self, settings: Settings) -> None:
        """From the next question and the next ingest on these settings hold; waits until an answer that is being
        written is done. A chat model that they open otherwise is given back, and loaded when it is next needed.

        What is opened once (``Setting.holds`` is "after a restart") stays as it was opened.
        """
        with self._asking.held():
            before, self.settings = self.settings, felt_now(self.settings, settings)
            self.__dict__.pop("_changeover", None)
            names = {f"{section}.{key}" for section, key in _differences(before, self.settings)}
            if names & RELOADING:
                self._give_generator_back()
            if "models.chat" in names and self._tunes:
                self._tuning.close()  # of the other model
                self.__dict__.pop("_tuning", None)
                self._tuning.wait()

    def over(self, folder: Path) -> Session:
        """A session of its own over the library in ``folder``, with these settings, models and keys."""
        session = Session(
            replace(
                self.settings,
                library=replace(self.settings.library, name=str(folder)),
                trace=TraceSettings(keep=0),  # what is measured is nobody's question
                metrics=MetricsSettings(),
            ),
            self.locations,
            embedder=None if self._own_models else self._embedder,
            generator=None if self._own_models else self._generator,
            reranker=None if self._own_models else self._reranker,
            ask_passphrase=self._ask_passphrase,
        )
        session._keys = self._keys  # what can be read once is read
        return session

    @contextmanager
    def subject(self) -> Iterator[Subject]:
        """The parts of the ask flow over this library, to be looked at stage by stage. Raises EdgeragError."""
        from edgerag.measure.eval.stages import Subject

        with self._browsing.use() as library:
            self._begin(library)
            self._states().begin()
            self._tokens().begin()
            yield Subject(
                library=library,
                embedder=self._embedder,
                generator=self._generator,
                # What is found must not depend on how busy the machine is.
                retrieval=replace(self.settings.retrieval, vector_deadline_ms=0, second_look_ms=0),
                generation=self.settings.generation,
                second_look=self._second_look(),
            )


def _differences(before: Settings, after: Settings) -> Iterator[tuple[str, str]]:
    """Section and key of what is not the same in both."""
    for section in fields(Settings):
        old, new = getattr(before, section.name), getattr(after, section.name)
        yield from ((section.name, key.name) for key in fields(old) if getattr(old, key.name) != getattr(new, key.name))
