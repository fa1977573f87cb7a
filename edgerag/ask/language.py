"""Which writing system and which language a question is in, told without a model.

Good enough to decide whether an embedder can be trusted with a question; not a language detector
for documents. Deterministic, no I/O.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

# Letters of scripts that matter here, by code point. What is in no range counts as "other".
_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "latin"),
    (0x1E00, 0x1EFF, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x1F00, 0x1FFF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0530, 0x058F, "armenian"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"),
    (0x0750, 0x077F, "arabic"),
    (0x08A0, 0x08FF, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x0980, 0x09FF, "bengali"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x0C00, 0x0C7F, "telugu"),
    (0x0E00, 0x0E7F, "thai"),
    (0x0E80, 0x0EFF, "lao"),
    (0x1000, 0x109F, "myanmar"),
    (0x10A0, 0x10FF, "georgian"),
    (0x1100, 0x11FF, "hangul"),
    (0xAC00, 0xD7AF, "hangul"),
    (0x1780, 0x17FF, "khmer"),
    (0x3040, 0x30FF, "kana"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xF900, 0xFAFF, "han"),
    (0x20000, 0x3134F, "han"),
)

_LANGUAGES_OF_SCRIPT: dict[str, tuple[str, ...]] = {
    "greek": ("el",),
    "cyrillic": ("ru", "uk", "bg", "sr", "mk", "be", "kk"),
    "armenian": ("hy",),
    "hebrew": ("he", "yi"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr", "ne"),
    "bengali": ("bn",),
    "tamil": ("ta",),
    "telugu": ("te",),
    "thai": ("th",),
    "lao": ("lo",),
    "myanmar": ("my",),
    "georgian": ("ka",),
    "hangul": ("ko",),
    "khmer": ("km",),
    "kana": ("ja",),
    "han": ("zh", "ja"),
}

# Function words that show a language by themselves. Words that two of these languages share are
# left in both: they then decide nothing.
_FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to in is are was were be been what which who whom whose when where why how does do did "
        "has have had can could should would will with from for on at by an a that this these it its not or as "
        "than there their they i you we my your if into about between during after before many much",
        "de": "der die das den dem des ein eine einen einem einer und ist sind war waren wird wurde wurden werden "
        "was welche welcher welches wer wem wen wann wo warum wieso wie hat haben hatte kann können soll mit von "
        "für auf bei im zum zur als nicht oder aus nach vor zwischen während viele sich es ich man wenn durch über",
        "fr": "le la les un une des du de et est sont était été que quel quelle quels quelles qui quand où pourquoi "
        "comment combien dans avec pour sur par au aux ce cette ces il elle ils elles ne pas ou se son sa ses je "
        "qu est-ce faire peut entre après avant",
        "es": "el la los las un una unos unas del de y es son fue fueron era que qué cuál cuáles quién quiénes "
        "cuándo dónde cómo cuánto cuántos cuántas en con para por su sus se no o al lo como más desde entre hasta "
        "cuando porque está están puede según tiene",
        "it": "il lo la i gli le un uno una di del della dei delle e è sono era che cosa quale quali chi quando dove "
        "perché come quanto quanti quante nel nella con per da dal su si non o al alla ha hanno può tra fra",
        "pt": "o a os as um uma do da dos das de e é são foi que qual quais quem quando onde como quanto quantos "
        "em no na nos nas com para por se não ou ao à mais pelo pela está pode entre seu sua",
        "nl": "de het een en is zijn was waren wat welke wie wanneer waar waarom hoe hoeveel van in op met voor door "
        "aan bij uit naar niet of als er te werd wordt worden heeft hebben kan tussen die dat",
        "ro": "ce care cine când unde cum cât câte câți câtă de la în pe cu din și a al ale ai un o este sunt fost "
        "era au fi nu sau pentru prin că să se după între lui către despre dintre cărui căror pot poate",
        "tr": "ne kim kaç hangi nerede nasıl neden niçin zaman ve bir bu ile için olarak olan mi mı mu mü de da "
        "değil veya kadar hangisidir neydi nelerdir kimdi nasıldır kaçtır kimin neyi sonra önce gibi daha en çok "
        "hangisi nedir kimdir var yok tarafından oldu edildi",
        "vi": "là gì nào ai khi ở đâu tại sao như thế bao nhiêu của và có những được cho trong một các người năm đã "
        "với không từ đến này bị về theo vào ra hay",
        "pl": "co kto kiedy gdzie dlaczego jak ile jaki jaka jakie który która które w na z do i jest są był była "
        "było były nie się o od po przez dla czy lub oraz za przed między",
        "sv": "vad vem när var varför hur många vilken vilket vilka och är en ett den det de i på med av för till "
        "från inte eller som att har hade kan mellan efter om",
        "da": "hvad hvem hvornår hvor hvorfor hvordan mange hvilken hvilket hvilke og er en et den det de i på med "
        "af for til fra ikke eller som at har havde kan mellem efter om",
    }.items()
}

FUNCTION_WORDS: frozenset[str] = frozenset().union(*_FUNCTION_WORDS.values())


def function_words(language: str) -> frozenset[str]:
    """Those of one language; none of one that is not listed here."""
    return _FUNCTION_WORDS.get(language, frozenset())


_WORD = re.compile(r"[^\W\d_]+")
_IDEOGRAPH_WEIGHT = 3  # one ideograph says about as much as three letters


def script_of(character: str) -> str:
    """The writing system of one letter; "other" for scripts not told apart here, "" for no letter."""
    code = ord(character)
    # Vowel signs of Indic scripts and Thai are marks, not letters; they do belong to the script.
    if not character.isalpha() and (code < 0x0900 or not unicodedata.category(character).startswith("M")):
        return ""
    for start, end, script in _RANGES:
        if start <= code <= end:
            return script
    return "other"


def dominant_script(text: str) -> str:
    """The script most of ``text`` is written in; "none" when there is no letter in it."""
    counts: Counter[str] = Counter()
    for character in text:
        script = script_of(character)
        if script:
            counts[script] += _IDEOGRAPH_WEIGHT if script in ("han", "kana", "hangul") else 1
    if not counts:
        return "none"
    if counts["kana"]:  # Japanese mixes both; the kana decide
        counts["kana"] += counts.pop("han", 0)
    return max(sorted(counts), key=lambda script: counts[script])


def guess_language(text: str) -> str:
    """ISO 639-1 code of a text in Latin script, by its function words; "" when they do not tell."""
    words = [word.casefold() for word in _WORD.findall(unicodedata.normalize("NFC", text))]
    hits = {language: sum(word in known for word in words) for language, known in _FUNCTION_WORDS.items()}
    best = max(hits.values(), default=0)
    if best == 0:
        return ""
    leaders = [language for language, count in hits.items() if count == best]
    if len(leaders) == 1:
        return leaders[0]
    if "en" in leaders:
        return "" if _has_accents(text) else "en"
    return leaders[0]


def _has_accents(text: str) -> bool:
    return any(ord(character) > 0x7F and character.isalpha() for character in text)


def knows(languages: Sequence[str], *, script: str, text: str) -> bool | None:
    """Whether an embedder trained for ``languages`` understands ``text``; None when that is unsure."""
    if "*" in languages:
        return True
    if script in ("latin", "none"):
        guess = guess_language(text)
        if guess:
            return guess in languages
        # No function word tells; accents speak against English, which has them in loan words only.
        return False if languages == ("en",) and _has_accents(text) else None
    return any(language in languages for language in _LANGUAGES_OF_SCRIPT.get(script, ()))
