"""Models and the machine: which there are, how fast they are, what is amiss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from edgerag.errors import EdgeragError
from edgerag.session.browsing import Browsing
from edgerag.session.encrypting import Encrypting
from edgerag.session.wiring import never
from edgerag.types import (
    CancelCheck,
    Finding,
    ModelFile,
    Suggestion,
)

if TYPE_CHECKING:
    from edgerag.engine.measured_speed import Recommendation
    from edgerag.engine.tuning.record import Measurement, Tuning


class Models(Browsing, Encrypting):
    """What looks after models."""

    def verify_models(self, names: Sequence[str] = ()) -> list[Finding]:
        """Reads every named model (all, if none is named) to its end and loads it again."""
        return self.catalog.verify(names)

    def provide_models(self, names: Sequence[str] = (), *, report: Callable[[str], None]) -> list[ModelFile]:
        """The named models of the manifest, or its defaults: which may use a network, through pip.
        ``report`` is told each step. Raises EdgeragError."""
        from edgerag.engine.pull import pull

        return pull(self.catalog, names, report=report)

    def recommend_models(self, *, report: Callable[[str], None]) -> Recommendation:
        """Which models this machine runs fast enough, by a measurement of a moment. Raises EdgeragError."""
        from edgerag.engine.measured_speed import recommend_here
        from edgerag.machine.topology import read_topology

        return recommend_here(
            self.models(),
            threads=self.settings.machine.threads or read_topology().thread_count,
            context_tokens=self.settings.generation.context_tokens,
            report=report,
        )

    def add_model(self, path: Path) -> ModelFile:
        """Takes in a GGUF file, or a sentence-transformers folder. Raises EdgeragError."""
        return self.catalog.add(path)

    def tune_model(
        self, name: str, *, cancelled: CancelCheck = never, report: Callable[[Measurement], None] = lambda _: None
    ) -> Tuning:
        """Measures what runs this chat model fastest here, for a minute at most; what is found is kept. Where the model
        in use is to run otherwise now, the next question loads it anew. Raises EdgeragError."""
        from edgerag.engine.tuning.record import Tunings
        from edgerag.engine.tuning.tune import current, tune

        model, tunings = self.catalog.find("chat", name), Tunings(self.catalog.folder)
        before = current(model, tunings)
        with self._tuning.at_work() if self._tunes else nullcontext():
            tuning = tune(
                model,
                tunings,
                context_tokens=self.settings.generation.context_tokens,
                cancelled=cancelled,
                report=report,
            )
        if name == self.chat_model_name() and (before is None or before.choice != tuning.choice):
            with self._asking.held():
                self._give_generator_back()
        return tuning

    def diagnose(self) -> list[Finding]:
        """Everything that helps or hinders on this machine, each with its remedy."""
        from edgerag import advice, doctor

        return [
            advice.load_finding(),
            *doctor.machine_findings(self.settings.machine.threads),
            advice.disk_finding(self.locations.home),
            *advice.shared_findings(self.locations.home),
            *doctor.engine_findings(self.catalog.folder),
            *doctor.model_findings(self.catalog, self.settings.models),
            *advice.tuning_findings(self.catalog, self.settings),
            doctor.offline_finding(),
            doctor.index_finding(),
            doctor.budget_finding(self.settings.memory, self._residency().budget_bytes, self._residency().limitation),
            *self._library_findings(),
        ]

    def _library_findings(self) -> list[Finding]:
        from edgerag import doctor

        try:
            locked = self.locked_library()
        except EdgeragError as error:  # its key file is damaged
            return [Finding("library", "error", error.message, error.remedy)]
        if locked is not None:
            return [*doctor.encryption_findings(), doctor.locked_finding(locked)]
        return doctor.library_findings(self.library_status, self._check_embedder_of_library)

    def suggestions(self) -> tuple[Suggestion, ...]:
        """Rows of the tuning guide that fit this machine and these settings."""
        from edgerag.advice import suggestions

        return suggestions(self.catalog, self.settings)
