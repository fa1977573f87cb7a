"""Words that carry no meaning in a question, for each of the languages whose questions were measured.

Short on purpose: a word that BM25 would give weight must not stand here. They are dropped from
queries only, never from the index.
"""

from __future__ import annotations

_LISTS = {
    "en": (
        "a an the and or of to in on at by for from with as is are was were be been being do does did has have had"
        " can could may might will would shall should must it its this that these those there their they he she his"
        " her him we our us you your i me my what which who whom whose when where why how not no if than then so such"
        " about into over under between during also any some all s t"
    ),
    "de": (
        "der die das den dem des ein eine einen einem einer eines und oder aber in im an am auf zu zum zur von vom mit"
        " bei beim nach aus über unter für um durch als wie ist sind war waren wird werden wurde wurden hat haben hatte"
        " hatten kann können es er sie wir ihr ich du sich nicht kein keine was wer wen wem wessen wann wo warum wieso"
        " welche welcher welches welchen welchem wieviel viele dass ob auch noch nur dieser diese dieses"
    ),
    "fr": (
        "le la les l un une des du de d et ou mais à au aux en dans sur sous par pour avec sans est sont était étaient"
        " être a ont avait ce cet cette ces il elle ils elles on nous vous je tu se s ne pas n que qu qui quoi dont où"
        " quand comment pourquoi quel quelle quels quelles son sa ses leur leurs combien"
    ),
    "es": (
        "el la los las lo un una unos unas y e o u de del a al en con por para sin sobre entre es son era eran ser fue"
        " fueron ha han había se su sus que qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuántos cuántas"
        " cuánta no si este esta estos estas ese esa como porque"
    ),
    "it": (
        "il lo la i gli le l un uno una e o di del dello della dei degli delle d a al allo alla ai agli alle da dal"
        " dalla in nel nella nei con su sul sulla per tra fra è sono era erano essere ha hanno aveva si che chi cosa"
        " quale qual quali quando dove come perché quanto quanti quante non suo sua questo questa"
    ),
    "pt": (
        "o a os as um uma uns umas e ou de do da dos das em no na nos nas por pelo pela para com sem sobre é são era"
        " eram ser foi foram tem têm tinha se seu sua seus suas que quem qual quais quando onde como porque quanto"
        " quantos quantas não este esta isso"
    ),
    "ru": (
        "и в во на с со к ко о об от до из за по при для у не ни но а или же ли бы что кто кого кому чем чего как"
        " какой какая какое какие каких каким какую когда где куда почему сколько который которая которое которые"
        " это этот эта эти этого он она оно они его её ее их был была было были есть быть то так"
    ),
    "nl": (
        "de het een en of maar in op aan te van voor met bij naar uit over onder om door als is zijn was waren wordt"
        " worden werd werden heeft hebben had kan kunnen er hij zij ze wij we ik je zich niet geen wat wie welke welk"
        " wanneer waar waarom hoe hoeveel dat die deze dit ook"
    ),
    "vi": (
        "là gì nào ai khi ở đâu tại sao như thế bao nhiêu của và có những được cho trong một các với không từ đến này"
        " bị về theo vào ra hay đã thì mà nó họ"
    ),
    "hi": (
        "के का की को से में पर और है हैं था थे थी क्या कौन किस किसने किसे कब कहाँ कहां क्यों कैसे कितने कितना कितनी सा सी"
        " ने एक यह वह इस उस लिए कर किया गया गई गए जो भी तो ही नहीं हो होता होती होते द्वारा"
    ),
}
STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}

# The same for scripts without spaces, where they stand inside a run of characters.
_PHRASES = (
    "为什么 什么 哪些 哪个 哪里 哪 谁 多少 怎么 怎样 如何 何时 几 為什麼 什麼 哪個 哪裡 誰 怎麼 怎樣 何時 "
    "何ですか ですか ますか でしたか ましたか どのような どのように どこ いつ なぜ "
    "อะไรบ้าง อะไร ใคร ที่ไหน เมื่อไหร่ เมื่อไร เมื่อใด อย่างไร ทำไม เพราะเหตุใด เท่าไหร่ เท่าไร เท่าใด "
    "ຫຍັງ ໃຜ អ្វី អ្នកណា ဘာ ဘယ်သူ"
)
STOP_PHRASES = tuple(_PHRASES.split())


def stop_words_of(words: list[str]) -> frozenset[str]:
    """The stop words of the language that ``words`` are most likely in.

    One list at a time, because each language's function words are content words of another ("war",
    "die", "mit"). A language other than English needs two different hits: one may be a name.
    """
    distinct = set(words)
    best, hits = frozenset[str](), 0
    for language, listed in STOP_WORDS.items():
        found = len(distinct & listed)
        if found > hits and (found >= 2 or language == "en"):
            best, hits = listed, found
    return best
