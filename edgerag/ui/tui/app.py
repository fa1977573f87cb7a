"""The application: one session, the screens over it, and what they share.

What runs longer than a key press runs in threads (work.py, SessionScreen.start) and reports back by
messages. The ingest and the facts of the status line belong here, because several screens show them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.signal import Signal

from edgerag.errors import EdgeragError
from edgerag.hold import Hold
from edgerag.session import Session
from edgerag.settings.effective import Effective, Setting, SettingsSources, find_setting
from edgerag.settings.keep import overridden_note
from edgerag.telemetry.frames import TimedAnswer
from edgerag.types import Answer, DocumentView, IngestEvent
from edgerag.ui.plain import plain
from edgerag.ui.tui import palette
from edgerag.ui.tui.collecting import Collecting
from edgerag.ui.tui.facts import Facts
from edgerag.ui.tui.hangup import leave_with_the_terminal
from edgerag.ui.tui.ingest_view import IngestView
from edgerag.ui.tui.inspecting import MOST_TIMED, timed
from edgerag.ui.tui.keymap_file import Keymap
from edgerag.ui.tui.keys import Keyed
from edgerag.ui.tui.keys_first import KeysFirst
from edgerag.ui.tui.keys_in_order import KeysInOrder
from edgerag.ui.tui.library_view import LibraryView
from edgerag.ui.tui.preferences import Preferences
from edgerag.ui.tui.problem import Problem, ProblemLog
from edgerag.ui.tui.screens.ask import AskScreen
from edgerag.ui.tui.screens.base import SessionScreen
from edgerag.ui.tui.screens.confirm import ConfirmDialog
from edgerag.ui.tui.screens.ingest import AddDocumentsDialog, IngestDialog, ended_sentence
from edgerag.ui.tui.themes import THEMES, WITHOUT_COLOUR
from edgerag.ui.tui.work import Run, RunEnded, RunEvent, RunFailed, consume

if TYPE_CHECKING:
    from edgerag.engine.catalog import CatalogEntry
    from edgerag.ui.tui.picture_paint import PicturePaint

_LOOK_EVERY_S = 2.0
_SHOW_PROGRESS_EVERY_S = 0.1


def run(session: Session, sources: SettingsSources) -> int:
    """Runs the terminal UI until the user leaves it; gives the exit code. ``sources``: where its settings are from."""
    app = EdgeragApp(session, sources)
    session.tune_when_idle()
    leave_with_the_terminal(app.give_back)
    app.run()
    return app.return_code or 0


class EdgeragApp(Keyed, App[None]):
    """The terminal UI of one session."""

    TITLE = "edgerag"
    KEYS_TITLE = "Everywhere"
    CSS_PATH = "app.tcss"
    # In what is lower or narrower than any picture of the tests, edges and what can be asked for give way (app.tcss).
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-high")]  # noqa: RUF012 - as Textual declares it
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-wide")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "Keys", key_display="F1", tooltip="All keys"),
        Binding("f2", "add_documents", "Add", tooltip="Add documents"),
        Binding("f3", "library", "Library", tooltip="List, remove documents"),
        Binding("f4", "doctor", "Check", tooltip="Check this machine"),
        Binding("f5", "blocks", "Index", tooltip="Blocks of the index in memory"),
        Binding("f6", "machine", "Machine", show=False, priority=True, tooltip="Cores, memory, and what they do"),
        Binding("f7", "models", "Models", show=False, priority=True, tooltip="List, switch, tune, verify models"),
        Binding("f8", "settings", "Settings", show=False, tooltip="Look at and change settings"),
        Binding("f9", "keymap", "Keys", show=False, tooltip="Look at and change keys"),
        Binding("ctrl+q", "quit", "Quit", priority=True),
    ]

    def __init__(self, session: Session, sources: SettingsSources | None = None) -> None:
        """``sources``: where the session's settings are from; None: its settings file alone."""
        super().__init__()
        if "TEXTUAL_ANIMATIONS" not in os.environ:
            # A page that glides is painted twenty times: on the processor that the model needs, and over the network.
            self.animation_level = "none"
        self.session = session
        self.problem_log = ProblemLog()
        self.preferences = Preferences(session, sources or SettingsSources(session.locations.config_file))
        self.facts = Facts(
            library_name=session.settings.library.name,
            also=session.settings.library.also,
            answers=session.settings.generation.mode,
        )
        self.facts_changed: Signal[Facts] = Signal(self, "facts")
        self.keymap: Mapping[str, str] = {}  # the keys that the user has changed, by the names of bindings
        self.ingest_view = IngestView()
        self.ingest_changed: Signal[IngestView] = Signal(self, "ingest")
        self._ingest_run: Run | None = None
        self._ingest_hold = Hold()  # of the ingest that runs
        self._ingest_to_show = False
        self._ingest_ended_unseen = False
        self._last_folder = "~/"
        self._runs: set[Run] = set()
        self.timed_answers: deque[TimedAnswer] = deque(maxlen=MOST_TIMED)  # the last ones
        self._looking = False
        self._look_wanted = False
        self._looked_problem = ""
        self._guided = False
        self._collecting = Collecting()
        self.keys_first = KeysFirst()
        self.keys_in_order = KeysInOrder(self, super().on_event)
        self._picture_paint: PicturePaint | None = None  # once there is a picture that is written over cells
        self.library_view = LibraryView()
        self._document_view: DocumentView | None = None  # where it was changed while a document was open

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        # These two keys belong to text areas as well and go before them; but no key goes past a dialog.
        return action not in ("machine", "models") or not self.screen.is_modal

    def get_key_display(self, binding: Binding) -> str:
        shown_key = super().get_key_display(binding)
        return shown_key if len(shown_key) == 1 or shown_key.startswith("^") else shown_key.capitalize()

    def get_default_screen(self) -> Screen[None]:
        return AskScreen()

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.app_resume_signal.subscribe(self, lambda _: self._picture_is_lost())
        self._paint()
        self.take_keymap(self.preferences.keymap_file.load())
        self._collecting.begin()
        self.run_worker(self._warm())
        self.look_again()
        self.set_interval(_LOOK_EVERY_S, self._look_now_and_then)
        self.set_interval(_SHOW_PROGRESS_EVERY_S, self._show_progress)

    def on_unmount(self) -> None:
        self._stop_runs()

    def _stop_runs(self) -> None:
        # Python waits for the threads before it exits: they are told to stop.
        for work in tuple(self._runs):
            work.stop()
        self.session.upgrading.stop()
        self._collecting.end()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self._collecting.touch()
        if isinstance(event, events.Key):
            self.keys_first.touch()
        if isinstance(event, (events.InputEvent, events.Paste)) and not event.is_forwarded:
            await self.keys_in_order.take(event)
        else:
            await super().on_event(event)

    def give_back(self) -> None:
        """Stops what is at work and closes what is open, when nobody is there any more; from any thread."""
        self._stop_runs()
        self.session.close()

    async def _warm(self) -> None:
        try:
            await asyncio.to_thread(self.session.warm)
        except Exception as error:  # noqa: BLE001 - nobody awaits this: whatever happened is shown to the user
            self.show_problem(Problem.of(error))

    # ------------------------------------------------------------ shared by the screens

    def show_problem(self, problem: Problem) -> None:
        self.problem_log.note(problem)
        self.notify(plain(str(problem)), title="Problem", severity="error", timeout=10, markup=False)

    def track(self, work: Run) -> None:
        """``work`` is stopped when the app ends."""
        self._runs.add(work)

    def forget(self, work: Run) -> None:
        self._runs.discard(work)

    def open_screen(self, screen: Screen[Any]) -> None:
        """Puts ``screen`` over the ask screen, in place of another that lies there."""
        if type(self.screen) is type(screen):
            return
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(screen)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand("Add documents", "Read a file or a folder into the library", self.action_add_documents)
        if self.ingest_view.can_be_paused:
            verb = "Go on" if self.ingest_view.paused else "Pause"
            yield SystemCommand(f"{verb} reading documents", "The ones that are being read", self.action_pause_ingest)
        yield SystemCommand("Library", "The documents, and removing them", self.action_library)
        yield SystemCommand("Check", "Machine, engine, models, library", self.action_doctor)
        yield SystemCommand("Machine", "Cores, memory, NUMA, and who uses them", self.action_machine)
        yield SystemCommand("Models", "List, switch, tune, verify, recommend", self.action_models)
        yield SystemCommand("First steps", "A model, documents, a question", self.action_guide)
        yield SystemCommand("Plots", "The figures of an evaluation or a bench as charts", self.action_plots)
        yield SystemCommand("Log", "What went wrong since the start, with its times", self.action_log)
        yield SystemCommand("Keys", "Every key, and changing it", self.action_keymap)
        yield SystemCommand("Help", "What the keys do on this screen", self.action_help)
        yield SystemCommand("Quit", "Leave the program", self.action_quit)
        yield SystemCommand("Picture of the screen", "Saves it as an SVG file", self.deliver_screenshot)
        yield from palette.screen_commands(self, screen)
        yield from palette.theme_commands(self)
        yield from palette.model_commands(self)
        yield from palette.setting_commands(self)
        yield SystemCommand("Settings", "Every setting, its value and its origin", self.action_settings)
        yield SystemCommand("Index", "The blocks of the index and their heat", self.action_blocks)
        if isinstance(screen, AskScreen):
            yield from screen.commands()

    # ------------------------------------------------------------ settings

    async def change_setting(self, setting: Setting, text: str | None) -> Effective:
        """Keeps another value (None: the default) and goes on with it. Raises UsageError, StorageFull."""
        after = await asyncio.to_thread(self.preferences.change, setting, text)
        if setting.name == "ui.document_view":
            self._document_view = None
        self._paint()
        self._set_facts(answers=self.session.settings.generation.mode)
        self.look_again()
        return after

    async def set_and_say(self, setting: Setting, text: str) -> None:
        """As :meth:`change_setting`, from anywhere: how it went is a notification."""
        try:
            after = await self.change_setting(setting, text)
        except EdgeragError as error:
            self.show_problem(Problem.of(error))
            return
        if after.is_overridden:
            note = overridden_note(setting, after.origin, after.where, after.value)
            self.notify(plain(note), severity="warning", markup=False)

    def take_keymap(self, keymap: Keymap) -> None:
        """From now on these keys hold; what was wrong with them is said."""
        self.keymap = keymap.keys
        self.set_keymap(keymap.keys)
        for trouble in keymap.troubles:
            self.notify(plain(trouble), title="Keys", severity="warning", timeout=10, markup=False)

    @property
    def document_view(self) -> DocumentView:
        """How the next source is opened."""
        return self._document_view or self.session.settings.ui.document_view

    def keep_document_view(self, view: DocumentView) -> None:
        """The next source is opened so, in this run and in later ones."""
        self._document_view = view
        self.run_worker(self._keep(find_setting("ui.document_view"), view))

    async def _keep(self, setting: Setting, text: str) -> None:
        try:
            await asyncio.to_thread(self.preferences.keep, setting, text)
        except EdgeragError as error:
            self.show_problem(Problem.of(error))

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """The screen as SVG; a page that the terminal shows as a picture stands in it in half blocks."""
        view = self.screen.page_view if isinstance(self.screen, SessionScreen) else None
        with view.in_characters() if view is not None else nullcontext():
            return super().export_screenshot(title=title, simplify=simplify)

    def write_to_terminal(self, escape: str) -> None:
        """An escape sequence that is none of a paint."""
        if self._driver is not None:
            self._driver.write(escape)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self._with_picture(screen, renderable))

    def _with_picture(self, screen: Screen[Any], renderable: RenderableType | None) -> RenderableType | None:
        view = screen.page_view if isinstance(screen, SessionScreen) else None
        placed = view.placed() if view is not None else None
        paint = self._picture_paint
        if renderable is None or (placed is None and (paint is None or not paint.holds)):
            return renderable
        from edgerag.ui.tui.picture_paint import PicturePaint, WithPicture

        if not isinstance(renderable, (LayoutUpdate, ChopsUpdate)):
            return renderable
        update, all_text = renderable, screen._compositor.render_full_update
        if paint is None:
            paint = self._picture_paint = PicturePaint(
                time.monotonic, paint_again_in=lambda seconds: self.set_timer(seconds, self._paint_picture_again)
            )
        return WithPicture(update, lambda console: paint.written(update, placed, console, all_text))

    def _paint_picture_again(self) -> None:
        if isinstance(self.screen, SessionScreen) and self.screen.page_view is not None:
            self.screen.page_view.refresh()

    def _picture_is_lost(self) -> None:
        """The terminal has been used by others, or has another size."""
        if self._picture_paint is not None and self._picture_paint.holds:
            self._picture_paint.forget()
            self.screen.refresh()

    def on_resize(self) -> None:
        self._picture_is_lost()
        if isinstance(self.screen, SessionScreen):
            self.screen.terminal_resized()

    def _paint(self) -> None:
        """In the colours of the theme that is set."""
        name = self.session.settings.ui.theme
        self.no_color = name == "no-colour"
        others = [each for each in self._filters if not isinstance(each, (NoColor, Monochrome))]
        self._filters = [*others, WITHOUT_COLOUR] if self.no_color else others
        self.theme = name
        self.refresh_css(animate=False)

    # ------------------------------------------------------------ facts

    def answered(self, answer: Answer) -> None:
        """An answer is done: its timings go into the status line."""
        self._set_facts(last_answer=answer)
        if (found := timed(answer)) is not None:
            self.timed_answers.append(found)
        self.look_again()

    def look_again(self) -> None:
        """Looks at model, library and memory; soon, if a look is under way."""
        if self._looking:
            self._look_wanted = True
            return
        self._looking = True
        self.run_worker(self._look())

    async def _look(self) -> None:
        try:
            while True:
                self._look_wanted = False
                model = await asyncio.to_thread(self.session.chat_model_name)
                models = await asyncio.to_thread(self.session.models)
                library = await asyncio.to_thread(self.session.library_status)
                resident_bytes = await asyncio.to_thread(self.session.resident_bytes)
                self._set_facts(
                    known=True, model=model, chat_models=_chat(models), library=library, resident_bytes=resident_bytes
                )
                self._looked_problem = ""
                self._guide_once()
                if not self._look_wanted:
                    return
        except Exception as error:  # noqa: BLE001 - nobody awaits this: whatever happened is shown to the user
            problem = Problem.of(error)
            if str(problem) != self._looked_problem:  # looked at every second: what stays as it is is said once
                self.show_problem(problem)
            self._looked_problem = str(problem)
        finally:
            self._looking = False

    def _guide_once(self) -> None:
        """Opens the first steps where nothing is there to ask and nothing to ask with, and nobody has begun to type."""
        if self._guided:
            return
        self._guided = True
        facts = self.facts
        if not facts.has_documents and not facts.model and facts.answers == "model" and len(self.screen_stack) == 1:
            self.action_guide()

    def _look_now_and_then(self) -> None:
        if self._runs:
            self._collecting.touch()
        self._collecting.look()
        if self.ingest_view.running or not self.facts.ready:
            self.look_again()
        elif not self._looking:
            self.run_worker(self._look_at_memory())

    async def _look_at_memory(self) -> None:
        self._set_facts(resident_bytes=await asyncio.to_thread(self.session.resident_bytes))

    def _set_facts(self, **changes: Any) -> None:
        self.facts = replace(self.facts, **changes)
        self.facts_changed.publish(self.facts)

    # ------------------------------------------------------------ ingest

    def action_add_documents(self) -> None:
        """Asks what to add; while documents are read, or when that ended unseen, shows how it goes."""
        if self.ingest_view.running or self._ingest_ended_unseen:
            self._ingest_ended_unseen = False
            self.clear_notifications()
            self.push_screen(IngestDialog())
        else:
            self.push_screen(AddDocumentsDialog(self._last_folder), self._begin_ingest)

    def _begin_ingest(self, paths: list[Path] | None) -> None:
        if paths is None:
            return
        self._last_folder = f"{paths[0].parent}/"
        self._ingest(paths)
        self.push_screen(IngestDialog())

    def ingest_again(self) -> None:
        """Reads what was asked for last once more: what failed, and what a stop has left."""
        if self.ingest_view.is_unfinished:
            self._ingest(list(self.ingest_view.paths))

    def _ingest(self, paths: list[Path]) -> None:
        work = self._ingest_run = Run()
        hold = self._ingest_hold = Hold()
        self.track(work)
        self._set_ingest(IngestView(running=True, paths=tuple(paths)))
        self.run_worker(lambda: consume(self, work, lambda: self._ingest_events(paths, work, hold)), thread=True)

    def _ingest_events(self, paths: list[Path], work: Run, hold: Hold) -> Iterator[IngestEvent]:
        """In the worker's thread."""
        return self.session.ingest(paths, cancelled=work.stopped, hold=hold)

    def action_pause_ingest(self) -> None:
        """Holds the running ingest, or lets it go on."""
        if not self.ingest_view.can_be_paused:
            return
        paused = not self.ingest_view.paused
        if paused:
            self._ingest_hold.begin()
        else:
            self._ingest_hold.end()
        self._set_ingest(replace(self.ingest_view, paused=paused))

    def stop_ingest(self) -> None:
        """Asks the running ingest to end; what is read so far stays."""
        if self._ingest_run is not None:
            self._ingest_run.stop()
            self._set_ingest(replace(self.ingest_view, stopping=True))

    def on_run_event(self, message: RunEvent) -> None:
        if message.run is self._ingest_run:
            # Folded at once, shown by the timer: a folder of unchanged files gives thousands a second.
            self.ingest_view = self.ingest_view.after(message.event)
            self._ingest_to_show = True

    def on_run_failed(self, message: RunFailed) -> None:
        if message.run is self._ingest_run:
            self.problem_log.note(message.problem)
            self.ingest_view = replace(self.ingest_view, problem=message.problem)

    def on_run_ended(self, message: RunEnded) -> None:
        self.forget(message.run)
        if message.run is not self._ingest_run:
            return
        self._ingest_run = None
        self._set_ingest(replace(self.ingest_view, running=False, stopping=False, paused=False))
        self.look_again()
        if not isinstance(self.screen, IngestDialog):
            self._ingest_ended_unseen = True
            done, problem = self.ingest_view.done, self.ingest_view.problem
            if problem is not None:
                self.show_problem(problem)
            elif done is not None:
                failed = done.count("failed") > 0
                self.notify(ended_sentence(done), severity="warning" if failed else "information", markup=False)

    def _set_ingest(self, view: IngestView) -> None:
        self.ingest_view = view
        self._ingest_to_show = False
        self.ingest_changed.publish(view)

    def _show_progress(self) -> None:
        if self._ingest_to_show:
            self._set_ingest(self.ingest_view)
        if (upgrade := self.session.upgrading.now) != self.facts.upgrade:
            self._set_facts(upgrade=upgrade)

    # ------------------------------------------------------------ keys

    def action_help(self) -> None:
        from edgerag.ui.tui.screens.help import HelpDialog

        self.push_screen(HelpDialog(self.screen))

    def action_library(self) -> None:
        from edgerag.ui.tui.screens.library import LibraryScreen

        self.open_screen(LibraryScreen())

    def action_blocks(self) -> None:
        from edgerag.ui.tui.screens.blocks import BlocksScreen

        self.open_screen(BlocksScreen())

    def action_doctor(self) -> None:
        from edgerag.ui.tui.screens.doctor import DoctorScreen

        self.open_screen(DoctorScreen())

    def action_log(self) -> None:
        from edgerag.ui.tui.screens.log import LogScreen

        self.open_screen(LogScreen())

    def action_guide(self) -> None:
        from edgerag.ui.tui.screens.guide import GuideScreen

        self.open_screen(GuideScreen())

    def action_plots(self) -> None:
        from edgerag.ui.tui.screens.plots import PlotsScreen

        self.open_screen(PlotsScreen())

    def action_machine(self) -> None:
        from edgerag.ui.tui.screens.machine import MachineScreen

        self.open_screen(MachineScreen())

    def action_models(self) -> None:
        from edgerag.ui.tui.screens.models import ModelsScreen

        self.open_screen(ModelsScreen())

    def action_keymap(self) -> None:
        from edgerag.ui.tui.screens.keymap import KeymapScreen

        self.open_screen(KeymapScreen())

    def action_settings(self, search: str = "") -> None:
        from edgerag.ui.tui.screens.settings import SettingsScreen

        if isinstance(self.screen, SettingsScreen):
            self.screen.look_for(search)
        else:
            self.open_screen(SettingsScreen(search))

    async def action_quit(self) -> None:
        """Leaves; asks first while documents are being read (pressed again, it does not ask)."""
        if self.ingest_view.running and not isinstance(self.screen, ConfirmDialog):
            question = (
                "Documents are being read. Quit now?\nWhat is read so far is kept; the next run goes on from there."
            )
            self.push_screen(ConfirmDialog(Content(question), agree="Quit"), self._quit_if)
        else:
            self._leave()

    def _quit_if(self, agreed: bool | None) -> None:
        if agreed:
            self._leave()

    def _leave(self) -> None:
        # The passages that are at work go into the library first: on a slow machine that takes its time.
        self.exit(message="Keeping what is read so far …" if self.ingest_view.running else None)


def _chat(models: Iterable[CatalogEntry]) -> tuple[str, ...]:
    return tuple(entry.name for entry in models if entry.kind == "chat" and entry.state == "ready")
