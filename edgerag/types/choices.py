"""What a setting can be, where it is one of a few words."""

from __future__ import annotations

from typing import Literal

GenerationMode = Literal["model", "instant"]  # what answers: a chat model, or the documents' own sentences
# How computed passages are used again: only where they stand as they were computed, anywhere, or as tuning found.
KvMode = Literal["exact", "spliced", "auto"]
TuneMode = Literal["idle", "off"]
EmbedBackend = Literal["auto", "llama.cpp", "torch"]  # what embeds passages; "auto": the fastest here
OcrMode = Literal["auto", "off", "force"]  # what OCR reads: pages without text, none, all
VectorType = Literal["f16", "f32"]  # how a segment file stores its vectors
# A model that answers, one that gives vectors, one that reads a question and a passage together and judges.
ModelKind = Literal["chat", "embedder", "reranker"]
# What reads the best candidates once more, question and passage together: nothing, a reranker, or the chat model, which
# says how likely the question is behind the passage, or whether the passage answers it.
SecondLookBy = Literal["off", "reranker", "likelihood", "yes_no"]
# What to do when the context of the chat model does not fit into the free memory.
WhenTight = Literal["shrink", "refuse"]
ThemeName = Literal["dark", "light", "high-contrast", "no-colour"]  # how the terminal UI is painted
DocumentView = Literal["text", "picture"]  # how a source is opened: its text, or the page as it looks
# What shows the page as it looks: Kitty's protocol where the terminal says it knows it, that in any case, or blocks.
PageGraphics = Literal["auto", "kitty", "sixel", "iterm", "blocks"]
# How SQLite keeps transactions: in a log beside the file, or, on a disk that machines share, in a rollback journal.
JournalMode = Literal["WAL", "TRUNCATE"]
