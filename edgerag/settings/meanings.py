"""What each setting means: the one place where it is said. The terminal UI shows it, `edgerag config` prints it, and
the table in docs/cli.md is made of it (`python tools/settings_table.py`; a test compares them).

Text with backticks as in Markdown, and nothing else of Markdown. The first sentence should say what a person who looks
for the setting wants to know: in lists it is all that there is room for.
"""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "library.name": "library in use",
    "library.also": "libraries that are asked together with it; in an environment variable they stand between commas",
    "library.key_file": (
        "the key file of an encrypted library that has one; a passphrase is asked for in the terminal"
    ),
    "library.vectors": (
        'how vectors are stored in the index from now on: `"f16"`, or `"f32"`, which takes twice the room and keeps '
        "every digit; older ones change when `library compact` rewrites them, and digits that are gone stay gone"
    ),
    "memory.budget": (
        'resident pages of the index at most: a size, or a share of the memory that is free at the start (`"10%"`)'
    ),
    "models.chat": "chat model: a name from `models list`, or a file; empty takes the manifest's default",
    "models.embedder": (
        "embedder: a name from `models list`, or a file; empty takes the manifest's default. A library keeps the "
        "embedder that it has until `library reembed`"
    ),
    "models.reranker": "a reranker for `retrieval.second_look`; empty takes the first that is here",
    "machine.threads": "threads; 0 is one per physical core within the quota",
    "machine.tune": (
        "whether the terminal UI tunes the chat model on first use, for a minute in all, while nobody asks anything; "
        '`"off"`: only `models tune` does'
    ),
    "chunks.target_tokens": "size that chunks are filled to",
    "chunks.heading_tokens": "room for title and headings in what is embedded",
    "ingest.parse_deadline_s": "seconds that one file may take to parse",
    "ingest.parse_memory": "memory that a parser may take",
    "ingest.max_file_size": "larger files are skipped, but for those that are read in parts",
    "ingest.max_text_size": (
        "the same for text, logs, source code, CSV and JSON Lines above 16 MB, and JSON, YAML, TOML and XML above "
        "50 MB: they are read in parts, `FILE!/part 0001` and so on, in a few megabytes of memory; at most 20 GB"
    ),
    "ingest.batch_chunks": "chunks embedded and committed together",
    "ingest.embed_with": (
        'what embeds passages: `"llama.cpp"`, `"torch"` (where it is installed: '
        "`pip install 'edgerag[sentence-transformers]'`), or the faster of them, which is tried for some seconds after "
        "the first 300 passages and remembered in `models/embedding.json`"
    ),
    "ingest.ocr": (
        "where Tesseract is on the machine: `auto` reads pages and pictures without text, `force` every page, `off` "
        "none"
    ),
    "ingest.ocr_languages": 'languages as Tesseract names them, `"deu+eng"`; empty takes what is installed',
    "ingest.hidden": "whether files and folders whose names begin with a dot are read",
    "ingest.junk": "whether what programs make for themselves is read: `node_modules`, caches, lock files",
    "ingest.include": (
        "patterns of the files that are read, as of `--include`; in an environment variable they stand between commas"
    ),
    "ingest.exclude": (
        "patterns of what is left out, as of `--exclude`; in an environment variable they stand between commas"
    ),
    "ingest.nice": (
        "priority of `edgerag ingest` and of every parser, 0 to 19, as of `nice`; above 0 they also come last at the "
        "disk"
    ),
    "ingest.max_cpu": "percent of all cores that an ingest keeps busy at most, on average",
    "ingest.polite": (
        "whether an ingest waits while other programs keep more than half of the cores busy, or the battery is below "
        "20 %; after five minutes it works for one in any case"
    ),
    "retrieval.source_count": (
        "most sources of an answer, however short they are; how many a question gets depends on it "
        "(docs/performance.md: how many sources)"
    ),
    "retrieval.candidate_count": "hits asked of each leg",
    "retrieval.ef_search": "width of the HNSW search",
    "retrieval.rrf_k": "constant of reciprocal rank fusion",
    "retrieval.found_probability": (
        "from which probability on a passage is taken to be about the question; below it for all of them the answer "
        'is "This is not in these documents." with the nearest passages'
    ),
    "retrieval.vector_deadline_ms": (
        "how long the vector leg of a search may take once its model is loaded, the embedding of the question "
        "included; after that the hits by words serve, and a note says so. 0: as long as it needs"
    ),
    "retrieval.second_look": (
        "who reads the best passages once more, each together with the question, before they are put in order: "
        '`"reranker"`, a cross-encoder that you added (`models add`); `"likelihood"`, the chat model, by how likely '
        'the question is behind the passage; `"yes_no"`, the chat model, asked whether the passage answers; `"off"`, '
        "nobody (docs/performance.md: a second look)"
    ),
    "retrieval.second_look_ms": (
        "how long that may take once the model is loaded; as many passages as fit are read, best first, and a note "
        "says how many. 0: as long as it needs, and the hits never depend on how fast the machine is"
    ),
    "retrieval.second_look_count": "most passages that are read once more, 1 to 50",
    "retrieval.second_look_weight": (
        "what its word counts for beside the order before, 0 (nothing) to 100; where it is not set 1 for `reranker`, "
        "0.5 for `likelihood`, 0.1 for `yes_no`"
    ),
    "generation.mode": (
        'what answers: a chat model, or `"instant"`, the best sentences of the documents, with no chat model loaded '
        "(`--no-llm`)"
    ),
    "generation.context_tokens": "context of the chat model",
    "generation.when_tight": (
        'when the context does not fit into the free memory: `"shrink"` makes it smaller (in steps of 256 tokens, not '
        'below 1024) and says so, `"refuse"` is an error that says what would fit'
    ),
    "generation.answer_tokens": "longest answer",
    "generation.reading_s": (
        "how long the chat model may read before the first word of an answer, where its speed here is known (`models "
        "tune`, or from the second question on): then sources are left out from the last, and shortened to their best "
        "sentences, and a note says so. What was read before takes no time. 0: as long as it needs"
    ),
    "generation.target_s": (
        "how long a whole answer may take, in 95 of 100 cases, once `bench ask --calibrate` has found what sources and "
        "second looks take here: then it gets no more of them than fit, and a note says so; where `generation.kv` is "
        "`auto`, passages are exact if there is time for it. 0: as long as it needs"
    ),
    "generation.temperature": (
        "how freely the next token is chosen, 0 is greedy; not set: as the model's file asks (`general.sampling.*`), "
        "else 0"
    ),
    "generation.top_k": "only the likeliest so many tokens are drawn from; not set: as the file asks, else 0 (all)",
    "generation.top_p": (
        "only the likeliest tokens that together reach this probability are drawn from; not set: as the file asks, "
        "else 0.95"
    ),
    "generation.min_p": (
        "tokens less likely than this share of the likeliest are not drawn; not set: as the file asks, else 0"
    ),
    "generation.repeat_penalty": (
        "how much a token loses that stood in the last 64; 1 is nothing; not set: as the file asks, else 1.1"
    ),
    "generation.seed": "of the sampling, at temperatures above 0",
    "generation.kv": (
        'how passages that were computed before come into the prompt: `"exact"`, only where they stand as they were '
        'computed; `"spliced"`, wherever they stand, which is an approximation; `"auto"`, spliced if '
        "`models tune --kv` found that this model answers as well"
    ),
    "generation.kv_memory": "room for computed passages in memory; 0 keeps none",
    "generation.kv_disk": "room for computed passages beside the library; 0 keeps none",
    "offline.loopback_ports": (
        "ports of this machine itself to which the program may talk, at 127.0.0.1 or ::1; every other connection is "
        "refused by the program and by the kernel (`doctor --offline-proof` shows it)"
    ),
    "offline.local_sockets": (
        "whether local (AF_UNIX) sockets may be made; with `false` no child of the program can ask a resolver of the "
        "machine, such as systemd-resolved, to look up a name for it"
    ),
    "ui.theme": (
        "colours of the terminal UI: `dark`, `light`, `high-contrast`, or `no-colour`, which `NO_COLOR` and "
        "`--no-color` ask for"
    ),
    "ui.document_view": (
        "how the next source is opened: its `text`, or the page as it looks (`picture`, of PDFs); the key v in it "
        "changes and keeps this"
    ),
    "ui.page_graphics": (
        "what shows the picture of a page: with `auto` what the terminal is known to show, by what it says of itself; "
        "in any case `kitty` (also in tmux, with `allow-passthrough on`), `sixel` (as in xterm) or `iterm`; or "
        "`blocks` (half-block characters), which every terminal shows"
    ),
    "trace.keep": (
        "of how many answers, and of how many ingests, the last traces are kept in the home (docs/tracing.md): "
        "times and counts, no words; 0 keeps none"
    ),
    "trace.content": (
        "whether the words of question, answer and prompt, and the paths of files, are kept with traces, as of "
        "`--trace-content`"
    ),
    "trace.otlp": (
        "where traces are sent, too: a collector on this machine, as `http://127.0.0.1:4318`, `http://[::1]:4318` or "
        "`unix:/PATH`; another machine and any name are refused, empty sends nothing"
    ),
    "metrics.file": (
        "a file that is written after each answer and each ingest, in the text format of Prometheus; what it counts is "
        "what this process did"
    ),
    "metrics.port": "port of 127.0.0.1 at which the same can be read while the program runs; 0: none",
}
