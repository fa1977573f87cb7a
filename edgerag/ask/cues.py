"""Words by which a question shows what it wants, by language: data, and how they are looked up.

Kept apart from the rules that use them (kind.py, follow_up.py), so that a language is added in one place.
What is in no list counts for nothing: a question in a language that is not here is an ordinary question.
"""

# One line for each language, however long: broken up it could not be read.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from edgerag.ask.language import dominant_script, guess_language

_LANGUAGE_OF_SCRIPT = {
    "cyrillic": "ru",
    "han": "zh",
    "kana": "ja",
    "hangul": "ko",
    "greek": "el",
    "arabic": "ar",
    "thai": "th",
}
# Scripts and languages whose words are not told apart by spaces: their patterns need no word boundary.
UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th"})

# At the very beginning: what goes on where the conversation was.
LEADS: Mapping[str, str] = {
    "en": r"and|but|or|so|then|also|what about|how about|what else|anything else|same for|the same for",
    "de": r"und|aber|oder|also|dann|auch|(?:und )?(?:wie (?:steht|sieht|ist) (?:es|das)(?: aus)? (?:mit|bei)|was ist mit(?= \w+(?: \w+)?\s*\?*$))|was noch|sonst noch",
    "fr": r"et|mais|ou|donc|alors|aussi|qu['’]en est-il|quid d[eu]|quoi d['’]autre",
    "es": r"y|e|pero|o|entonces|también|(?:y )?qué (?:hay de|tal|pasa con)|qué más",
    "it": r"e|ed|ma|o|oppure|allora|anche|che (?:ne dici di|mi dici di)|che altro",
    "pt": r"e|mas|ou|então|também|(?:e )?quanto a|que tal|o que mais",
    "nl": r"en|maar|of|dus|dan|ook|hoe zit het met|hoe zit dat|wat is er met|wat nog",
    "pl": r"a|i|ale|lub|albo|więc|też|(?:a )?co z|co jeszcze",
    "ru": r"а|и|но|или|тогда|также|(?:а )?(?:как|что) насч[её]т|что ещ[её]",
    "tr": r"ve|peki|peki ya|ama|ya|o zaman|ayrıca|başka ne",
    "ro": r"și|dar|sau|atunci|ce zici de|ce altceva",
    "sv": r"och|men|eller|då|hur är det med|vad mer",
    "da": r"og|men|eller|så|hvad med|hvad mere",
    "vi": r"và|còn|vậy|thế còn|nhưng",
    "el": r"και|αλλά|ή|τότε|τι γίνεται με",
    "ko": r"그럼|그리고|그러면|그런데|또",
    "ar": r"وماذا عن|ماذا عن|لكن|ثم|أو",
    "zh": r"那么|那|还有|然后|另外|以及|而且|但是|可是|至于|還有",
    "ja": r"では|じゃあ|じゃ|それで|それでは|そして|また|でも|しかし|あと|ほかに|他には",
    "th": r"แล้ว|และ|แต่",
}

# What points to something said before. Words that mostly do something else ("that", "es", "lo", "en") are left out,
# or stand here with what makes them point.
PRONOUNS: Mapping[str, str] = {
    "en": (
        r"he|she|they|him|her|his|hers|its|their|theirs|them|this|these|those|the (?:same|latter|former|other)(?! \w+ of)"
        r"|it(?! (?:takes?|took|possible|necessary|true|legal|allowed|safe|important|better|likely|worth|determined|decided|means? (?:to|for|that|when|if))\b)"
        r"|(?:is|are|was|does|did|do|about|of|for|with|after|before|like|than|why|how) that(?! the)"
        r"|(?:the|that|this|which|other) (?:\w+ )?ones?|from there|over there|in there|back then"
    ),
    "de": (
        r"er|sie|ihn|ihm|ihr|ihre[rmns]?|seine[rmns]?|dessen|deren|diese[rmns]?|jene[rmns]?|dafür|davon(?!,)|damit(?!,)|dabei|daran(?!,)"
        r"|darauf|daraus|dazu|darin|dort|dies|(?:der|die|das|dem|den) (?:erste|zweite|dritte|letzte|andere|große|kleine)[nr]?$"
        r"|(?:ist|war|hat|kann|wird|muss|heißt|kostet|wiegt|macht) es"
    ),
    "fr": r"il(?! y a| faut| existe)|elle|ils|elles|lui|leurs?|cela|ça|celui|celle|ceux|celles|son|sa|ses",
    "es": r"él|ella|ellos|ellas|su|sus|esto|eso|ese|esa|esos|esas|este|esta|estos|estas|allí|ahí",
    "it": r"lui|lei|loro|essi|esse|suo|sua|suoi|sue|questo|questa|questi|queste|quello|quella|quelli|quelle|lì",
    "pt": r"ele|ela|eles|elas|seu|sua|seus|suas|isso|isto|este|esta|esse|essa|dele|dela|deles|delas|lá",
    "nl": r"hij|zij|ze|hem|haar|hun|dit|deze|daar|ervan|ermee|erbij|daarvan|daarvoor|daarmee|ervoor",
    "pl": r"on|ona|ono|oni|one|jego|jej|ich|go|nim|nią|nimi|ten|ta|te|tego|tej|tych|tym|tam",
    "ru": r"он|она|оно|они|его|её|ее|их|ему|ей|им|ним|ней|них|нём|нем|этот|эта|это|эти|этого|этой|этих|этом|там|туда",
    "tr": r"o|onun|ona|onu|onlar|onların|onlara|bu|bunun|bunu|buna|bunlar|bunların|şu|orada|orası",
    "ro": r"el|ea|ele|lor|său|săi|sale|acesta|aceasta|acestea|aceștia|acestui|acestei|acolo",
    "sv": r"han|hon|hans|hennes|dess|deras|dem|denna|detta|dessa|där",
    "da": r"han|hun|hans|hendes|dens|dets|deres|dem|denne|dette|disse",
    "vi": r"nó|họ|ông ấy|bà ấy|anh ấy|cô ấy|cái đó|điều đó|điều này|người đó|người này",
    "el": r"αυτός|αυτή|αυτό|αυτοί|αυτές|αυτά|εκεί",
    "ko": r"그것\w*|그는|그녀\w*|그들\w*|이것\w*|거기\w*|그의",
    "ar": r"ذلك|هذا|هذه|تلك|هناك",
    "zh": (
        r"他们|她们|它们|他(?![国乡人])|她|它|这(?!样的话)|那(?:个|些|种|样|位|件|里|款|部|项)|(?<!应)该(?![如怎做用])"
        r"|(?<![尤极土耳])其(?![他它实中余])|上述|前者|后者|第[一二三四五]个(?=呢|[？?]?$)"
    ),
    "ja": r"それ|これ|あれ|その|この|あの|そこ|彼女|彼(?!岸)|同(?:社|氏|国)|そちら|前者|後者",
    "th": r"เขา|เธอ|มัน|นั้น|นี้",
}

# Those that stand before a noun of their own ("these settlers"), which a longer question needs no other for.
DETERMINERS = frozenset(
    [
        "this",
        "these",
        "those",
        "diese",
        "dieser",
        "dieses",
        "diesem",
        "diesen",
        "jene",
        "jener",
        "ce",
        "cette",
        "ces",
        "este",
        "esta",
        "estos",
        "estas",
        "ese",
        "esa",
        "esos",
        "esas",
        "questo",
        "questa",
        "questi",
        "queste",
        "quello",
        "quella",
        "essa",
        "isso",
        "esse",
        "dit",
        "deze",
        "ten",
        "ta",
        "te",
        "tego",
        "tej",
        "tych",
        "tym",
        "этот",
        "эта",
        "эти",
        "этого",
        "этой",
        "этих",
        "этом",
        "bu",
        "şu",
        "o",
        "denna",
        "detta",
        "dessa",
        "denne",
        "dette",
        "disse",
        "αυτός",
        "αυτή",
        "αυτό",
        "αυτοί",
        "αυτές",
        "αυτά",
        "هذا",
        "هذه",
        "تلك",
        "ذلك",
        "上述",
        "その",
        "この",
        "あの",
        "此",
    ]
)
_DETERMINER_SIGNS = "这那该"
# Where English pronouns stand for nothing in their own clause: "… did it …", "… of it".
_OUTWARD = re.compile(
    r"\b(?:did|does|do|was|is|were|are|has|have|had|can|will|could|would|of|in|to|on|at|for|with|by|from|about|into)\s+$",
    re.IGNORECASE,
)
_OUTWARD_PRONOUNS = frozenset(("it", "he", "she", "they", "him", "them"))
_CLAUSE_END = re.compile(r"[,;]|\b(?:and|or|if|when|before|after|while)\b", re.IGNORECASE)

# What may be possessed by something named later: "¿Cuándo abrió sus puertas la Bolsa de Varsovia?".
POSSESSIVES = frozenset(
    [
        "its",
        "his",
        "their",
        "ihr",
        "ihre",
        "ihrer",
        "ihrem",
        "ihren",
        "seine",
        "seiner",
        "seinem",
        "seinen",
        "son",
        "sa",
        "ses",
        "leur",
        "leurs",
        "su",
        "sus",
        "suo",
        "sua",
        "suoi",
        "sue",
        "seu",
        "seus",
        "suas",
        "haar",
        "hun",
        "jego",
        "jej",
        "ich",
        "его",
        "её",
        "ее",
        "их",
        "său",
        "săi",
        "sale",
    ]
)

# A fragment begins with one of these and asks with nothing else: "In Germany?", "Seit wann?".
PREPOSITIONS: Mapping[str, str] = {
    "en": "for in on at with without by from to since until of between under over after before during",
    "de": "für in im bei mit ohne von aus seit bis nach vor zu ab auf",
    "fr": "pour en dans avec sans de depuis chez sur après avant",
    "es": "para en con sin de desde hasta por sobre",
    "it": "per in con senza di da dal fino su",
    "pt": "para em com sem de desde até por no na",
    "nl": "voor in met zonder van sinds tot bij op na",
    "pl": "dla w z bez od do na po u",
    "ru": "для в во с со без от до на у после",
    "ro": "pentru în cu fără de la din pe până",
    "sv": "för i på med utan av från till sedan",
    "da": "for i på med uden af fra til siden",
}

_INTERROGATIVES = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|was|wer|wem|wen|wessen|welche[rnms]?|wann|wo|warum|wie|wohin|woher"
    r"|que|quel(?:le)?s?|qui|quand|où|pourquoi|comment|combien|quoi|qué|quién(?:es)?|cuál(?:es)?|cuándo|dónde|cómo|cuánt[oa]s?"
    r"|cosa|chi|qual[ei]?|quando|dove|perché|come|quant[oaie]s?|quem|quais|onde|wat|wie|welke?|wanneer|waar|waarom|hoe"
    r"|co|kto|kogo|kim|czym|kiedy|gdzie|dlaczego|jak|ile|jaki\w*|któr\w+|что|кто|кого|кем|чем|когда|где|почему|как\w*|сколько"
    r"|ce|cine|când|unde|cum|cât\w*|care|vad|vem|när|var|hur|vilke[nt]|hvad|hvem|hvornår|hvor|hvilke[nt]?)\b",
    re.IGNORECASE,
)

# Languages that leave the subject out: a question of one content word there speaks of what was spoken of.
SUBJECTLESS = frozenset({"es", "it", "pt", "pl", "ro", "tr", "zh", "ja", "ko"})
# ... unless it asks what something is.
_DEFINITIONS = re.compile(
    r"\b(?:qué (?:es|son|era|fue)|quiénes? (?:es|son|era|fue)|cos['’]è|cosa è|che cos['’]è|chi è|chi era|(?:o )?que é|quem é|quem foi|co to|kim jest"
    r"|kto to|(?:ce|cine) (?:nu )?(?:este|sunt|era|erau|a fost))\b|\b(?:nedir|kimdir)\b|什么是|谁是|是谁|是什么|とは|って何",
    re.IGNORECASE,
)
# Thus a question of few words goes on: 他呢？, 値段は？
TRAILING = re.compile(r"呢[？?]?$|(?<![でに])は[？?]?$|(?:는요|은요)[?？]?$")

# A new subject, said in so many words; what stands behind the mark is the question.
_SHIFT = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|well|and|now|so|nun|jetzt|maintenant|ahora|agora|ora|nu|teraz|теперь|şimdi)[,\s]+)*"
    r"(?:(?:to |for )?something (?:completely |totally |entirely |quite )?(?:else|different)"
    r"|(?:a )?(?:different|new|another|other|unrelated) (?:question|topic|subject)|change of (?:topic|subject)"
    r"|(?:let['’]s )?change the (?:topic|subject)|by the way|on another note"
    r"|(?:et)?was (?:ganz |völlig )?anderes|(?:eine )?(?:andere|neue) frage|(?:ein )?(?:anderes|neues) thema|themenwechsel|übrigens"
    r"|autre chose|(?:une )?autre question|changeons de sujet|au fait"
    r"|otra cosa|otra pregunta|cambiando de tema|(?:un')?altra (?:cosa|domanda)|cambiando argomento"
    r"|outra (?:coisa|pergunta)|mudando de assunto|iets anders|(?:een )?andere vraag"
    r"|coś innego|inne pytanie|zmieniając temat|другой вопрос|о другом|смени(?:м|в) тему|кстати"
    r"|başka bir (?:soru|konu|şey)|konu değişikliği|altceva|altă întrebare|annan fråga|något annat|andet spørgsmål|noget andet"
    r"|换个话题|換個話題|另一个问题|另外一个问题|顺便问一下|別の質問|話は変わりますが|ところで)"
    r"[ \t]*[:：,，.。;；!！—–、-]+\s*(?=\w|\W*\w)",
    re.IGNORECASE,
)

# A question that wants more than one place: comparisons, overviews, everything there is.
_BROAD = re.compile(
    r"\b(?:compar(?:e|es|ed|ing|ison|isons|ative)|contrast(?:s|ed|ing)?|overview|summar(?:y|ise|ize|ies|ising|izing)|differences?"
    r"|differ|similarities|all about|everything (?:about|on)|pros and cons|advantages and disadvantages|versus|vs|outline"
    r"|main (?:points|topics|ideas)|tell me about|what (?:types|kinds|sorts) of"
    r"|vergleich\w*|überblick|übersicht|zusammenfass\w*|fasse? .{0,60}\bzusammen|unterschiede?n?|unterscheide[nt]|alles über"
    r"|vor- und nachteile|gemeinsamkeiten"
    r"|compare[rz]|comparaison|aperçu|résum\w+|différences?|tout sur|avantages et inconvénients"
    r"|comparar?|compara\w*|comparación|resumen|resum\w+|diferencias?|todo sobre|ventajas y desventajas|visión general"
    r"|confront\w+|panoramica|riassum\w+|riepilogo|differenz[ae]|tutto su|vantaggi e svantaggi"
    r"|comparação|resumo|visão geral|diferenças?|tudo sobre|vantagens e desvantagens"
    r"|vergelijk\w*|overzicht|samenvat\w*|verschil(?:len)?|alles over|voor- en nadelen"
    r"|porówna\w+|przegląd|podsumow\w+|streszcz\w+|różnic[aey]?|wszystko o|wady i zalety"
    r"|сравн\w+|обзор|резюм\w+|обобщ\w+|разниц[аеуы]|различи\w+|отлича\w+|вс[её] о|плюсы и минусы"
    r"|karşılaştır\w*|genel bakış|özet\w*|farklar?ı?\w*|hakkında her şey|artıları ve eksileri"
    r"|compară|comparați\w+|rezum\w+|diferențel?e?|totul despre|jämför\w*|översikt|sammanfatt\w*|skillnad\w*|allt om"
    r"|sammenlign\w*|oversigt|forskelle?n?|alt om|so sánh|tổng quan|tóm tắt|khác nhau|khác biệt)\b"
    r"|比较|比較|对比|對比|概述|概览|总结|總結|综述|区别|區別|差别|不同之处|异同|优缺点|関係全般|違い|要約|概要|まとめ|長所と短所|一覧"
    r"|비교|개요|요약|차이|قارن|مقارنة|ملخص|نظرة عامة|الفرق|تفاوت|तुलना|अंतर|सारांश|เปรียบเทียบ|สรุป|ภาพรวม|ความแตกต่าง"
    r"|σύγκρι\w+|συγκρίν\w+|επισκόπηση|περίληψη|διαφορ(?:ά|ές)",
    re.IGNORECASE,
)


def languages_of(*texts: str) -> tuple[str, ...]:
    """The languages that the texts may be in, each once; none when nothing tells."""
    found: dict[str, None] = {}
    for text in texts:
        script = dominant_script(text)
        language = guess_language(text) if script == "latin" else _LANGUAGE_OF_SCRIPT.get(script, "")
        if language:
            found[language] = None
    return tuple(found)


def lead_of(question: str, languages: Iterable[str]) -> re.Match[str] | None:
    """The words at the beginning by which the question goes on where the conversation was."""
    return _first(_pattern(language, "lead").match(question) for language in languages if language in LEADS)


def pronouns_of(question: str, languages: Iterable[str]) -> list[re.Match[str]]:
    """The words that point to something else, in order."""
    found = [m for language in languages if language in PRONOUNS for m in _pattern(language, "p").finditer(question)]
    return sorted(found, key=lambda match: match.start())


def points_outward(before: str, pronoun: str) -> bool:
    """Whether a pronoun behind ``before`` stands for nothing but a name in its own clause."""
    return (
        pronoun.casefold() in _OUTWARD_PRONOUNS
        and _OUTWARD.search(before + " ") is not None
        and _CLAUSE_END.search(before) is None
    )


def is_determiner(pronoun: str) -> bool:
    return pronoun.casefold() in DETERMINERS or pronoun[0] in _DETERMINER_SIGNS


def is_fragment(question: str, languages: Iterable[str]) -> bool:
    """Whether it begins with a preposition and asks with no question word."""
    if _INTERROGATIVES.search(question):
        return False
    first = re.search(r"[^\W\d_]+", question)
    return first is not None and is_preposition(first[0], languages)


def is_preposition(word: str, languages: Iterable[str]) -> bool:
    return any(word.casefold() in PREPOSITIONS.get(language, "").split() for language in languages)


def without_shift(question: str) -> str:
    """The question without the words that announce a new subject; as it is where none do."""
    return _SHIFT.sub("", question, count=1)


def wants_definition(question: str) -> bool:
    return _DEFINITIONS.search(question) is not None


def is_broad(question: str) -> bool:
    """Whether it asks for a comparison, an overview or everything there is."""
    return _BROAD.search(question) is not None


@cache
def _pattern(language: str, which: str) -> re.Pattern[str]:
    words = LEADS[language] if which == "lead" else PRONOUNS[language]
    # German "Sie" is a person addressed; only the small one points.
    flags = re.NOFLAG if (language, which) == ("de", "p") else re.IGNORECASE
    if language in UNSPACED_LANGUAGES:
        return re.compile(rf"\W*(?:{words})" if which == "lead" else words, flags)
    if which == "lead":
        return re.compile(rf"\W*(?:{words})(?!\w)(?!['’]\w)", flags)
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", flags)


def _first(matches: Iterable[re.Match[str] | None]) -> re.Match[str] | None:
    return next((match for match in matches if match is not None), None)
