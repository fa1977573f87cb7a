"""The records that pass between the stages, and the seams where parts are exchanged.

Everything here is frozen; a stage takes one record and gives the next. Offsets are in characters
(Python string indices) of the stored document text, half open; pages and lines count from 1.

A module of records is loaded when one of them is first asked for: to make all of them takes longer than everything else
that ``edgerag --help`` or the process of a parser loads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_DEFINED = {
    "answers": (
        "Answer",
        "AnswerDelta",
        "AnswerDone",
        "AnswerSentence",
        "AskEvent",
        "CUT",
        "HitsFound",
        "InstantAnswer",
        "InstantSentence",
        "PlanMade",
        "PromptReady",
        "StageTime",
        "StopReason",
        "Support",
        "ThoughtDelta",
        "TokenCounts",
        "Turn",
        "Unfinished",
    ),
    "arrays": ("Vectors",),
    "choices": (
        "DocumentView",
        "EmbedBackend",
        "GenerationMode",
        "JournalMode",
        "KvMode",
        "ModelKind",
        "OcrMode",
        "PageGraphics",
        "SecondLookBy",
        "ThemeName",
        "TuneMode",
        "VectorType",
        "WhenTight",
    ),
    "documents": (
        "Chunk",
        "Document",
        "Heading",
        "LeftOut",
        "MEMBER_MARK",
        "OWN_ID_BITS",
        "Page",
        "PageUnit",
        "ParsedDocument",
        "StoredChunk",
        "UNKNOWN_LANGUAGE",
        "own_id",
        "PICTURED",
        "page_unit",
        "text_share",
    ),
    "endpoints": ("LoopbackEndpoint",),
    "ingesting": (
        "FileDone",
        "FileReport",
        "FilesDiscovered",
        "IngestDone",
        "IngestEvent",
        "IngestProgress",
        "Outcome",
        "WatchEvent",
        "WatchNote",
    ),
    "latency": (
        "Calibration",
        "Forecast",
        "Observation",
        "Profile",
        "Weights",
    ),
    "pictures": (
        "MOST_BOXES",
        "MOST_PIXELS",
        "PagePicture",
        "PageWanted",
        "PixelBox",
    ),
    "prompting": (
        "EncodedChat",
        "Generated",
        "Message",
        "Passage",
        "PassageSpan",
        "Prefill",
        "PrefillBatch",
        "Prompt",
        "Sampling",
        "StateRestore",
        "StateSave",
        "TokenTiming",
    ),
    "seams": (
        "CancelCheck",
        "ChunkTokens",
        "Embedder",
        "EmbedderIdentity",
        "Generator",
        "Judgement",
        "Library",
        "ModelFile",
        "PassageCost",
        "Reranker",
        "TokenStore",
        "Weighing",
    ),
    "searching": (
        "AskedTerm",
        "DocumentMatch",
        "Filter",
        "Hit",
        "HitLeftOut",
        "KeywordScan",
        "LatentEvidence",
        "LeftOutWhy",
        "LegHit",
        "PassageWords",
        "PieceCount",
        "Plan",
        "QuestionKind",
        "Scores",
        "SearchResult",
        "SearchWork",
        "SelectionReport",
        "Source",
        "WordEvidence",
        "WordQuery",
    ),
    "state": (
        "BlockHeat",
        "BringingUp",
        "BringingUpStage",
        "BringingUpWatch",
        "Finding",
        "KvChanges",
        "KvSink",
        "LibraryStatus",
        "LockedLibrary",
        "MergeProgress",
        "MergeReport",
        "ReembedDone",
        "ReembedEvent",
        "ReembedPrice",
        "ReembedProgress",
        "SegmentBlocks",
        "SegmentStatus",
        "Suggestion",
    ),
    "threads": (
        "Exchange",
        "ExchangeState",
        "FilterText",
        "FoundSource",
        "NotKept",
        "SourceState",
        "Thread",
        "ThreadHead",
        "ThreadMatch",
    ),
    "tracing": (
        "Fact",
        "HitOutcome",
        "PromptBudget",
        "PromptPart",
        "PromptPartKind",
        "SecondLookReport",
        "StageSpan",
        "TokenTime",
        "Trace",
        "TracedHit",
        "VectorLeg",
    ),
}
_MODULE_OF = {name: module for module, names in _DEFINED.items() for name in names}
__all__ = list(_MODULE_OF)

if TYPE_CHECKING:
    from edgerag.types.answers import *
    from edgerag.types.arrays import *
    from edgerag.types.choices import *
    from edgerag.types.documents import *
    from edgerag.types.endpoints import *
    from edgerag.types.ingesting import *
    from edgerag.types.latency import *
    from edgerag.types.pictures import *
    from edgerag.types.prompting import *
    from edgerag.types.seams import *
    from edgerag.types.searching import *
    from edgerag.types.state import *
    from edgerag.types.threads import *
    from edgerag.types.tracing import *
else:

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value  # asked for once
        return value
