"""Another embedder for a library, as a user does it: with real processes that are killed, and from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import HashingEmbedder, ScriptedGenerator

from edgerag.config import IngestSettings, Settings
from edgerag.errors import EmbedderMismatch
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.types import ReembedDone

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples" / "docs"
DOCUMENTS = 12

# A process that dies of SIGKILL when a function is called for the n-th time, before or after it did its work.
CHILD = """
import importlib, os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from fakes import HashingEmbedder
from test_reembed import SMALL
from edgerag.index import segments
from edgerag.locations import Locations
from edgerag.session import Session

home, where, number, when = Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6]
sys.path.insert(0, sys.argv[2])
module_name, _, path = where.partition(":")
owner = importlib.import_module(module_name)
*parents, name = path.split(".")
for parent in parents:
    owner = getattr(owner, parent)
real, left = getattr(owner, name), [number]

def dying(*arguments, **options):
    left[0] -= 1
    if when == "before" and not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*arguments, **options)
    if when == "after" and not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, dying)
session = Session(SMALL, Locations(home), embedder=lambda: HashingEmbedder(dimension=96, name="wider"))
session._seal_settings = lambda: segments.SealSettings(unsealed_rows=8, graph_rows=10, block_bytes=4096)
list(session.reembed())
"""
SMALL = Settings(ingest=IngestSettings(batch_chunks=3))


def open_session(home: Path, embedder: HashingEmbedder) -> Session:
    return Session(SMALL, Locations(home), embedder=lambda: embedder, generator=lambda: ScriptedGenerator())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(DOCUMENTS):
        (docs / f"{number}.md").write_text(f"# Animal{number}\n\nThe animal{number} sleeps in den{number * 7}.\n")
    with open_session(tmp_path, HashingEmbedder()) as session:
        list(session.ingest([docs]))
    return tmp_path


def first_of(session: Session, number: int) -> str:
    return Path(session.search(f"Where does animal{number} sleep?", limit=1).hits[0].chunk.path).name


@pytest.mark.parametrize(
    ("where", "number", "when", "is_changed"),
    [
        ("edgerag.index.catalogue:put_vectors", 3, "before", False),
        ("edgerag.index.reembedding:Reembedding.put_vectors", 2, "after", False),
        ("edgerag.index.construction:write_segment", 1, "after", False),
        ("edgerag.index.sealing:Sealer._commit", 1, "after", False),
        ("edgerag.index.reembedding:Reembedding._give", 1, "after", False),
        ("edgerag.index.catalogue:adopt_segment", 1, "after", False),
        ("edgerag.index.reembedding:replace_identity", 1, "after", False),
        ("edgerag.index.reembedding:Reembedding.switch", 1, "after", True),
        ("edgerag.index.reembedding:discard", 1, "after", True),
    ],
)
def test_killed_anywhere_the_library_has_its_old_or_its_new_index(
    home: Path, where: str, number: int, when: str, is_changed: bool
) -> None:
    child = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(TESTS), str(home), where, str(number), when]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, env=environ, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    old, new = HashingEmbedder(), HashingEmbedder(dimension=96, name="wider")
    with open_session(home, new if is_changed else old) as session:
        assert first_of(session, 5) == "5.md"
        assert {finding.severity for finding in session.verify_library()} == {"ok"}
    with open_session(home, old if is_changed else new) as session, pytest.raises(EmbedderMismatch):
        session.search("animal5", limit=1)
    with open_session(home, new) as session:
        if not is_changed:
            *_, last = session.reembed()
            assert isinstance(last, ReembedDone)
            assert last.chunks_embedded == len(new.embedded) < DOCUMENTS + 1
            assert not last.interrupted
        list(session.ingest([home / "docs"]))
        assert [first_of(session, n) for n in range(DOCUMENTS)] == [f"{n}.md" for n in range(DOCUMENTS)]
        assert {finding.severity for finding in session.verify_library()} == {"ok"}
        status = session.library_status()
        assert status is not None
        folder = home / "indexes" / "default"
        assert {path.name for path in (folder / "segments").iterdir()} == {one.name for one in status.segments}
        assert not (folder / "reembedding").exists()


# ------------------------------------------------------------ from the command line


def edgerag(*arguments: str, check: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "edgerag", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == check, f"exit {done.returncode}: {done.stderr}"
    return done


@pytest.fixture
def second_embedder(tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home with the real models and a small random one, as GGUF; its path."""
    from safetensors.numpy import save_file

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz0123456789.,"]
    words += [f"##{word}" for word in words[4:40]]
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "max_position_embeddings": 300, "vocab_size": len(words), "type_vocab_size": 2}
    made = tmp_path / "tiny-bert"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"architectures": ["BertModel"], "model_type": "bert", **sizes}))
    (made / "vocab.txt").write_text("\n".join(words) + "\n")
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(words), 32),
        "embeddings.position_embeddings.weight": (300, 32),
        "embeddings.token_type_embeddings.weight": (2, 32),
        "embeddings.LayerNorm.weight": (32,),
        "embeddings.LayerNorm.bias": (32,),
    }
    for name, rows, columns in (
        *((f"attention.self.{part}", 32, 32) for part in ("query", "key", "value")),
        ("attention.output.dense", 32, 32),
        ("intermediate.dense", 64, 32),
        ("output.dense", 32, 64),
    ):
        shapes |= {f"encoder.layer.0.{name}.weight": (rows, columns), f"encoder.layer.0.{name}.bias": (rows,)}
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= {f"encoder.layer.0.{name}.{part}": (32,) for part in ("weight", "bias")}
    random = np.random.default_rng(1)
    save_file(
        {name: random.normal(size=shape).astype(np.float32) * 0.2 for name, shape in shapes.items()},
        made / "model.safetensors",
    )
    own = tmp_path / "home"
    (own / "models").mkdir(parents=True)
    for file in models_folder.iterdir():
        if file.suffix in (".gguf", ".toml"):
            (own / "models" / file.name).symlink_to(file.resolve())
    monkeypatch.setenv("EDGERAG_HOME", str(own))
    edgerag("models", "add", str(made))
    return "tiny-bert"


@pytest.mark.long
def test_the_change_is_noticed_priced_and_made_by_one_command(second_embedder: str) -> None:
    edgerag("ingest", str(EXAMPLES))
    wanted = {"EDGERAG_MODELS_EMBEDDER": second_embedder}
    refused = edgerag("ingest", str(EXAMPLES), check=3, **wanted)
    for part in ("'all-minilm-l6-v2'", "'tiny-bert'", "edgerag library reembed", "passages, about "):
        assert part in refused.stderr
    before = json.loads(edgerag("search", "--json", "Which torque does the pump need?", **wanted).stdout)
    assert before["hits"][0]["scores"]["vector"] is not None, "the old embedder still answers"
    assert any("library reembed" in note for note in before["notes"])
    price = json.loads(edgerag("library", "reembed", "--estimate", "--json", **wanted).stdout)
    assert price["embedder"] == second_embedder
    assert price["chunks_left"] == price["chunks_total"] > 10
    assert 0 < price["room_bytes"] < price["free_bytes"]
    done = edgerag("library", "reembed", "--json", **wanted)
    assert json.loads(done.stdout)["chunks_embedded"] > 0
    for environment in (wanted, {}):  # without a setting the library keeps what it has
        hits = json.loads(edgerag("search", "--json", "Which torque does the pump need?", **environment).stdout)
        assert hits["notes"] == []
        assert hits["hits"][0]["scores"]["vector"] is not None
        edgerag("ingest", str(EXAMPLES), **environment)
    edgerag("library", "verify")
    edgerag("library", "compact")
    edgerag("library", "reembed", check=2, **wanted)
    back = edgerag("library", "reembed", "--embedder", "all-minilm-l6-v2", **wanted)
    assert "models.embedder names 'tiny-bert'" in back.stderr
    assert json.loads(edgerag("status", "--json").stdout)["library"]["embedder"] == "all-minilm-l6-v2"
    assert "nothing to throw away" in edgerag("library", "reembed", "--discard").stderr
