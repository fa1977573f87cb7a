"""How questions about the documents as a collection are worded, language by language: data for aggregate.py."""

# One line for each part of a wording, however long: broken up it could not be read.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Wording:
    """How one language asks about a collection. Regular expressions, alternatives separated by bars.

    ``holders`` are what is counted and says nothing of the content; ``genres`` are kinds of documents, which are looked
    for too. ``mention`` is what they do to be counted; ``there`` that they are there at all.
    """

    how_many: str
    which: str
    holders: str
    genres: str
    mention: str
    there: str
    list_all: str
    how_often: str  # whole patterns, for mentions and occurrences


WORDINGS: Mapping[str, Wording] = {
    "en": Wording(
        how_many=r"how many(?: of (?:the|my|our|these))?(?: different)?|(?:what is |what['’]s )?the (?:total )?number of|count(?: up)?(?: all)?(?: of)?(?: the| my| our)?",
        which=r"(?:in )?(?:which|what)(?: of (?:the|my|our|these))?|list (?:all |every )?(?:the |my |our )?|show (?:me )?(?:all |every )?(?:the |my |our )?|find (?:me )?(?:all |every )(?:the |my |our )?|are there (?:any )?",
        holders=r"documents?|files?|passages?|texts?|places?|paragraphs?|pages?",
        genres=r"e-?mails?|mails?|letters?|invoices?|bills?|receipts?|contracts?|agreements?|reports?|manuals?|articles?|notes?|papers?|minutes|protocols?|presentations?|spreadsheets?",
        mention=r"(?:that |which |do |does |have |that have )*(?:mention(?:s|ed|ing)?|contain(?:s|ing)?|talk(?:s|ing)? (?:about|of)|speak(?:s|ing)? (?:about|of)|refer(?:s|ring)? to|discuss(?:es|ing)?|describ(?:e|es|ing)|deal(?:s|ing)? with|say(?:s|ing)?|use(?:s)? the (?:word|term|phrase)|include(?:s)?(?: the (?:word|term|phrase))?|are about|is about|about|with the (?:word|term|phrase)|where)",
        there=r"(?:are there|do (?:i|we|you) have|are (?:here|indexed|stored)|(?:are )?in (?:the|my|our|this) (?:library|collection|index|archive|folder))",
        list_all=r"(?:please |can you |could you )?(?:list|enumerate|show(?: me)?|give(?: me)?|find(?: me)?) (?:all|every|each)(?! (?:about|(?:the )?(?:steps?|ways|instructions|reasons)))(?: of)?(?: the| my| our)?",
        how_often=r"how (?:often|many times) (?:is|are|was|were|does|do|did) (?P<what>.+?) (?:mentioned|named|occur|appear|come up|cited)|how many (?:mentions|occurrences|instances)(?: of)? (?P<what2>.+)|(?:list|show|find|count) (?:me )?(?:all |every )?(?:the )?(?:mentions?|occurrences?)(?: of)? (?P<what3>.+)|in (?:which|what|how many) (?:documents|files|passages|texts|places) (?:is|are|was|were|does|do) (?P<what5>.+?) (?:mentioned|named|discussed|described|appear|occur|come up)",
    ),
    "de": Wording(
        how_many=r"wie\s?viele?(?: der| meiner| unserer| von den)?(?: verschiedene)?|(?:die )?(?:an)?zahl (?:der|aller)|zähle?(?: mir)?(?: alle)?(?: die)?",
        which=r"(?:in )?welche[nrms]?(?: der| meiner| unserer)?|liste?(?: mir)?(?: alle)?(?: die)?|zeige?(?: mir)?(?: alle)?(?: die)?|nenne?(?: mir)? alle(?: die)?|finde?(?: mir)? alle(?: die)?|gibt es",
        holders=r"dokument(?:e|en|s)?|datei(?:en)?|unterlagen|akten?|passagen?|textstellen?|stellen?|seiten?|texten?|abschnitten?",
        genres=r"e-?mails?|mails?|briefe?n?|rechnung(?:en)?|verträgen?|vertrag|berichte?n?|protokollen?|artikeln?|notizen|handbücher(?:n)?|anleitung(?:en)?|angeboten?|quittung(?:en)?|präsentation(?:en)?",
        mention=r"(?:die |in denen |worin )?(?:erwähn\w*|enthalt\w*|enthält|nenn(?:en|t)|handel(?:n|t) von|beschreib\w*|sprech\w* (?:über|von)|spricht (?:über|von)|befass\w* sich mit|verwend\w*(?: das wort)?|zu|über|mit dem (?:wort|begriff)|kommt|kommen|steht|stehen|geht es um)",
        there=r"(?:gibt es|sind (?:das|da|es|vorhanden)|haben wir|habe ich|in (?:der|meiner|dieser) (?:bibliothek|sammlung|ablage)|im (?:archiv|index|ordner))",
        list_all=r"(?:bitte )?(?:liste?n?|zähle?|zeige?|nenne?|finde?|gib)(?: sie| mir| uns)*(?: bitte)? (?:alle|sämtliche|jede[sn]?)(?! (?:zu|über) )(?: der| die)?",
        how_often=r"wie (?:oft|häufig) (?:wird|werden|wurde|wurden|kommt|kommen|steht) (?P<what>.+?) (?:erwähnt|genannt|vor\b)|wie\s?viele (?:erwähnungen|nennungen|vorkommen) (?:von |gibt es von )?(?P<what2>.+)|in (?:welchen|wie\s?vielen) (?:dokumenten|dateien|unterlagen|akten|texten) (?:wird|werden|kommt|kommen|steht|stehen|geht es um|ist|sind) (?P<what5>.+?)(?: (?:erwähnt|genannt|beschrieben|vor))?",
    ),
    "fr": Wording(
        how_many=r"combien d(?:e |['’])(?:mes |nos )?|(?:le |quel est le )?nombre d(?:e |['’]|es )|compte[rz]?(?: tous| toutes)?(?: les)?",
        which=r"(?:dans )?quel(?:le)?s?|liste[rz]?(?: tous| toutes)?(?: les)?|montre[rz]?(?:-moi)?(?: tous| toutes)?(?: les)?|y a-t-il des",
        holders=r"documents?|fichiers?|passages?|textes?|endroits?|pages?|paragraphes?",
        genres=r"e-?mails?|courriels?|lettres?|factures?|contrats?|rapports?|articles?|notes?|manuels?|reçus?|présentations?",
        mention=r"(?:qui |où |sont )?(?:mentionn\w*|contien\w*|parl\w* d[eu]s?|évoqu\w*|trait\w* d[eu]s?|décri\w*|cit(?:e|ent)|concern\w*|au sujet d[eu]|sur)",
        there=r"(?:y a-t-il|est-ce qu['’]il y a|avons-nous|ai-je|dans (?:la|ma|cette) (?:bibliothèque|collection)|dans (?:le|cet?) (?:dossier|index))",
        list_all=r"(?:liste[rz]?|énumère[rz]?|montre[rz]?(?:-moi)?|donne[rz]?(?:-moi)?|trouve[rz]?(?:-moi)?) (?:tous|toutes)(?: les| mes| nos)?",
        how_often=r"combien de fois (?P<what>.+?) (?:est|sont)(?:-il|-elle|-ils|-elles)? (?:mentionnée?s?|citée?s?)|combien de (?:mentions|occurrences) d[eu'’]s? ?(?P<what2>.+)",
    ),
    "es": Wording(
        how_many=r"cuánt[oa]s(?: de (?:los|las|mis))?|(?:el )?número de|cuenta(?: tod[oa]s)?(?: l[oa]s)?",
        which=r"(?:en )?(?:qué|cuáles)(?: de (?:los|las|mis))?|(?:lista|enumera|muestra|muéstrame)(?: tod[oa]s)?(?: l[oa]s)?|hay",
        holders=r"documentos?|archivos?|ficheros?|pasajes?|textos?|páginas?|párrafos?",
        genres=r"correos?|e-?mails?|cartas?|facturas?|contratos?|informes?|artículos?|notas?|manuales|recibos?",
        mention=r"(?:que |se |donde )*(?:menciona\w*|contien\w*|habla\w* de|trata\w* (?:de|sobre)|refiere\w* a|describ\w*|cita(?:n)?|sobre|acerca de)",
        there=r"(?:hay|tenemos|tengo|existen en (?:la|mi) (?:biblioteca|colección)|en (?:la|mi|esta) (?:biblioteca|colección|carpeta))",
        list_all=r"(?:lista|enumera|muestra|muéstrame|dame|encuentra)(?:r)? tod[oa]s(?: l[oa]s| mis)?",
        how_often=r"cuántas veces (?:se (?:menciona|nombra|cita)n?|aparecen?) (?P<what>.+)|cuántas (?:menciones|apariciones)(?: hay)? de (?P<what2>.+)",
    ),
    "it": Wording(
        how_many=r"quant[ie](?: de[il]| dei miei)?|(?:il )?numero d(?:i|ei|elle)|conta(?: tutti| tutte)?(?: i| le| gli)?",
        which=r"(?:in )?qual[ie]|elenca(?: tutti| tutte)?(?: i| le| gli)?|mostra(?:mi)?(?: tutti| tutte)?(?: i| le| gli)?|ci sono",
        holders=r"document[io]|file|passaggi(?:o)?|test[io]|pagin[ae]|paragraf[io]",
        genres=r"e-?mail|lettere|fatture|contratti|rapporti|relazioni|articoli|note|manuali|ricevute",
        mention=r"(?:che |dove )?(?:menzion\w*|conteng\w*|contien\w*|parla(?:no)? d[ie]\w*|tratta(?:no)? d[ie]\w*|cita(?:no)?|descriv\w*|riguarda(?:no)?|nomina(?:no)?|su)",
        there=r"(?:ci sono|abbiamo|ho|nell[ao] (?:mia )?(?:biblioteca|raccolta|cartella))",
        list_all=r"(?:elenca|mostra(?:mi)?|dammi|trova(?:mi)?) (?:tutti|tutte)(?: i| le| gli)?",
        how_often=r"quante volte (?:è |sono )?(?:menzionat[oaie]|citat[oaie]|nominat[oaie]|compare|compaiono|appare|appaiono) (?P<what>.+)|quante volte (?:viene|vengono) (?:menzionat[oaie]|citat[oaie]) (?P<what2>.+)",
    ),
    "pt": Wording(
        how_many=r"quant[oa]s(?: d[oa]s| dos meus)?|(?:o )?número de|conte?(?: tod[oa]s)?(?: [oa]s)?",
        which=r"(?:em )?(?:que|quais)(?: d[oa]s)?|list[ae]r?(?: tod[oa]s)?(?: [oa]s)?|mostr[ae](?:-me)?(?: tod[oa]s)?(?: [oa]s)?|há",
        holders=r"documentos?|arquivos?|ficheiros?|passagens|textos?|páginas?|parágrafos?",
        genres=r"e-?mails?|cartas?|faturas?|contratos?|relatórios?|artigos?|notas?|manuais|recibos?",
        mention=r"(?:que |se |onde )*(?:menciona\w*|cont[êé]m|falam? (?:de|d[oa]s?|sobre)|tratam? (?:de|d[oa]s?)|referem?(?:-se)? a|descrevem?|citam?|sobre)",
        there=r"(?:há|existem|temos|tenho|n[ao] (?:minha )?(?:biblioteca|coleção|pasta))",
        list_all=r"(?:list[ae]r?|enumer[ae]|mostr[ae](?:-me)?|dê(?:-me)?|encontr[ae]) tod[oa]s(?: [oa]s)?",
        how_often=r"quantas vezes (?:é|são|foi|aparecem?) (?:mencionad[oa]s? |citad[oa]s? )?(?P<what>.+?)(?: é mencionad[oa]| são mencionad[oa]s)?\s*\?",
    ),
    "nl": Wording(
        how_many=r"hoeveel(?: van (?:de|mijn|onze))?|(?:het )?aantal|tel(?: alle)?(?: de)?",
        which=r"(?:in )?welke(?: van (?:de|mijn))?|(?:lijst|toon|geef)(?: me| mij)?(?: alle)?(?: de)?|zijn er",
        holders=r"document(?:en)?|bestand(?:en)?|passages?|teksten|plaatsen|pagina['’]?s|alinea['’]?s",
        genres=r"e-?mails?|mails?|brieven|facturen|contracten|rapporten|verslagen|artikelen|notities|handleidingen|bonnen",
        mention=r"(?:die |waarin )?(?:vermeld\w*|noem(?:en|t)|bevat(?:ten)?|gaan over|gaat over|spreken over|beschrij\w*|verwijz\w* naar|over)",
        there=r"(?:zijn er|hebben we|heb ik|in (?:de|mijn|deze) (?:bibliotheek|verzameling|map))",
        list_all=r"(?:lijst|toon|geef|noem|zoek|som)(?: me| mij)? (?:alle|elke)(?: de)?",
        how_often=r"hoe (?:vaak|dikwijls) (?:wordt|worden|komt|komen) (?P<what>.+?) (?:genoemd|vermeld|voor)|in (?:welke|hoeveel) (?:documenten|bestanden) (?:wordt|worden|komt|komen) (?P<what5>.+?) (?:genoemd|vermeld|voor|beschreven)",
    ),
    "pl": Wording(
        how_many=r"ile|(?:jaka jest )?liczba|policz(?: wszystkie)?",
        which=r"(?:w )?(?:które|których|jakie)|wymień(?: wszystkie)?|pokaż(?: wszystkie)?|czy są",
        holders=r"dokument(?:y|ów|ach)?|plik(?:i|ów|ach)?|fragment(?:y|ów|ach)?|stron(?:y|ach)?|tekst(?:y|ów|ach)?",
        genres=r"e-?maile?i?|list(?:y|ów)|faktur(?:y|ach)?|um(?:owy|ów|owach)|raport(?:y|ów|ach)?|artykuł(?:y|ów|ach)?|notat(?:ki|ek)",
        mention=r"(?:które |które )?(?:wspomina\w*|zawiera\w*|mówi\w* o|dotycz\w*|opisuj\w*|o)",
        there=r"(?:jest|są|mamy|mam|w (?:bibliotece|zbiorze|folderze))",
        list_all=r"(?:wymień|pokaż|podaj|znajdź) wszystkie",
        how_often=r"ile razy (?:wspomnian\w+|wymienion\w+|pojawia się|występuje)(?: jest)? (?P<what>.+)",
    ),
    "ru": Wording(
        how_many=r"сколько|(?:каково )?(?:количество|число)|посчитай(?:те)?(?: все)?|подсчитай(?:те)?(?: все)?",
        which=r"(?:в )?как(?:ие|их|ом)|перечисли(?:те)?(?: все)?|покажи(?:те)?(?: мне)?(?: все)?|есть ли",
        holders=r"документ(?:ы|ов|ах)?|файл(?:ы|ов|ах|а)?|отрывк(?:и|ов|ах)|фрагмент(?:ы|ов|ах)?|текст(?:ы|ов|ах)?|страниц(?:ы|ах)?|мест(?:а|ах)?",
        genres=r"пис(?:ьма|ем|ьмах)|сч(?:ета|етов|етах|ёта)|договор(?:ы|ов|а|ах)|отч[её]т(?:ы|ов|ах)?|стат(?:ьи|ей|ьях)|замет(?:ки|ок)|контракт(?:ы|ов|ах)?|накладн(?:ые|ых)",
        mention=r"(?:в которых |которые )?(?:упомина\w+|упомянут\w*|содерж\w+|говор\w+ о(?:б)?|рассказыва\w+ о(?:б)?|описыва\w+|посвящен\w+|идет речь о|ид[её]т речь о|о(?:б)?|про|со словом)",
        there=r"(?:есть|имеется|у (?:меня|нас)|в (?:библиотеке|коллекции|папке|архиве)|всего)",
        list_all=r"(?:перечисли|покажи|назови|найди|выведи)(?:те)?(?: мне)? все",
        how_often=r"(?:сколько раз|как часто) (?:упомина(?:е|ю)тся|встреча(?:е|ю)тся|упомянут\w*) (?P<what>.+)|сколько упоминаний (?P<what2>.+)",
    ),
    "tr": Wording(
        how_many=r"kaç(?: tane)?",
        which=r"hangi",
        holders=r"belge(?:ler|de|lerde|nin)?|dosya(?:lar|da|larda)?|metin(?:ler|lerde)?|sayfa(?:lar|larda)?|bölüm(?:ler|lerde)?",
        genres=r"e-?postalar(?:da)?|faturalar(?:da)?|sözleşmeler(?:de)?|raporlar(?:da)?",
        mention=r"(?P<before>(?:\S+ ){1,8}?)(?:bahsed\w+|bahsetm\w+|geçme\w+|geçmi\w+|geçiyor|geçer|geçmekte\w*|içer\w+|sözü?\w* ed\w+|anıl\w+|hakkında)",
        there=r"(?:var)",
        list_all=r"(?!x)x",
        how_often=r"(?P<what>.+) kaç (?:kez|kere|defa) (?:geç\w+|anıl\w+|bahsed\w+)|tüm (?P<what2>.+) (?:listele|sırala|göster)\w*",
    ),
}
_CHINESE_HOLDERS = "文档|文件|文档里|资料|段落|页面|文本|檔案|資料"
_CHINESE_GENRES = "邮件|電郵|信件|发票|發票|合同|报告|報告|文章|笔记|论文|手册|协议"
_CHINESE_MENTION = "提到|提及|包含|含有|讲到|谈到|谈及|涉及|说到|写到|出现|关于|講到|談到|包含了|提到了"
_JAPANESE_HOLDERS = "文書|ファイル|書類|ドキュメント|資料|箇所|ページ|テキスト"
_JAPANESE_GENRES = "メール|請求書|契約書|報告書|レポート|記事|論文|手紙|メモ|マニュアル"
_JAPANESE_MENTION = "言及|含(?:む|ま|んで)|触れ|書かれ|述べ|記載|出て(?:くる|きます)|載って|説明"
UNSPACED: tuple[tuple[Literal["count", "list"], str], ...] = (
    (
        "count",
        rf"(?:一共|总共|共)?有?(?:多少|几)[个份篇封张本件]?(?:{_CHINESE_HOLDERS})(?:中|里|里面)?(?:{_CHINESE_MENTION})(?:了|过)?(?P<what>.*)",
    ),
    (
        "count",
        rf"(?:一共|总共|共)?有?(?:多少|几)[个份篇封张本件](?P<genre>{_CHINESE_GENRES})(?:中|里|里面)?(?:{_CHINESE_MENTION})(?:了|过)?(?P<what>.*)",
    ),
    ("count", rf"(?P<what>.*?)(?:在)?(?:(?:{_CHINESE_HOLDERS})(?:中|里))?(?:被)?(?:提到|提及|出现)了?(?:多少|几)次"),
    (
        "count",
        rf"^(?:这里|库里|资料库里|文库里)?(?:一共|总共|共)?有(?:多少|几)[个份篇]?(?:{_CHINESE_HOLDERS})[？?。]?$",
    ),
    (
        "list",
        rf"(?:在)?(?:哪些|哪几[个份篇封]|哪个)(?:{_CHINESE_HOLDERS})(?:中|里|里面)?(?:有)?(?:{_CHINESE_MENTION})(?:了|过)?(?P<what>.*)",
    ),
    (
        "list",
        rf"(?:哪些|哪几[个份篇封])(?P<genre>{_CHINESE_GENRES})(?:中|里|里面)?(?:{_CHINESE_MENTION})(?:了|过)?(?P<what>.*)",
    ),
    (
        "list",
        r"^(?:请)?(?:列出|列举|列舉|找出)(?:所有|全部|一切)(?:的)?(?:(?:提到|包含|含有|关于)(?P<what>.*?)的(?:文档|文件|资料)|(?P<what2>.*))",
    ),
    (
        "count",
        rf"(?P<what>.*?)(?:に(?:ついて)?|を|が)?(?:{_JAPANESE_MENTION})[^、。]{{0,8}}?(?:{_JAPANESE_HOLDERS})(?:は|が)?(?:いくつ|何[件個通つ本])",
    ),
    (
        "count",
        rf"(?:いくつの|何[件個通つ本]の)(?:{_JAPANESE_HOLDERS})(?:が|に|で)(?P<what>.*?)(?:に(?:ついて)?|を|が)?(?:{_JAPANESE_MENTION})",
    ),
    ("count", r"(?P<what>.*?)(?:は|が)(?:全部で)?何[回度](?:言及|登場|出て|触れ)"),
    (
        "list",
        rf"(?:どの|どのような|どんな|何の)(?:{_JAPANESE_HOLDERS})(?:が|に|で)(?P<what>.*?)(?:に(?:ついて)?|を|が)?(?:{_JAPANESE_MENTION})",
    ),
    (
        "list",
        rf"(?P<what>.*?)(?:に(?:ついて)?|を|が)?(?:{_JAPANESE_MENTION})[^、。]{{0,8}}?(?:{_JAPANESE_HOLDERS})(?:を)?(?:すべて|全て|全部)",
    ),
    ("list", r"(?:すべての|全ての|全部の)(?P<what>.*?)を(?:列挙|挙げ|リスト|一覧|示し|教え)"),
)


@dataclass(frozen=True, slots=True)
class Joints:
    """How one language says how words go together. Regular expressions of whole words, alternatives separated by bars.

    ``beyond`` is what no count of documents with words follows: how often, nothing else, save for.
    """

    either: str
    neither: str  # not, no, nor; also the word that only goes along with one of them ("ne")
    without: str  # not, and a verb in one
    also: str
    but: str
    beyond: str
    empty: str = r"(?!x)x"  # says nothing that is not said otherwise


JOINTS: Mapping[str, Joints] = {
    "en": Joints(
        either=r"or",
        neither=r"not|never|no(?!\.)|none of|neither|nor",
        without=r"without|lack(?:s|ing)?|omit(?:s|ting)?|(?:(?:that|which|do|does) )*fails? to (?:mention|contain|include)",
        also=r"and|as well as|plus",
        but=r"but",
        beyond=r"only|solely|exactly|at least|at most|more than|less than|fewer than|once|twice|thrice|(?:\d+|two|three|four|five|ten|many|several) times|except(?: for)?|other than|besides|apart from|instead of|rather than",
        empty=r"either|both|any of|all of|one of",
    ),
    "de": Joints(
        either=r"oder",
        neither=r"nicht|nie|niemals|kein(?:e|en|em|er|es)?|weder",
        without=r"ohne",
        also=r"und|sowie|noch",
        but=r"aber|sondern|jedoch",
        beyond=r"nur|ausschließlich|genau|mindestens|höchstens|mehr als|weniger als|einmal|zweimal|dreimal|mehrmals|\d+ ?mal|außer|statt|bis auf",
        empty=r"entweder|sowohl|als auch|alle|eine[rms]? der",
    ),
    "fr": Joints(
        either=r"ou|soit",
        neither=r"ne|n['’]|pas|jamais|aucune?|ni",
        without=r"sans",
        also=r"et|ainsi que",
        but=r"mais",
        beyond=r"seulement|uniquement|exactement|au moins|au plus|plus de|moins de|\w+ fois|sauf|excepté|hormis|plutôt que|au lieu de|n(?:e |['’])\w+(?: \w+)? qu(?:e|['’])",
    ),
    "es": Joints(
        either=r"o|u",
        neither=r"no|nunca|ni|ning[uú]n[oa]?",
        without=r"sin",
        also=r"y|e|así como",
        but=r"pero|sino",
        beyond=r"s[oó]lo|solamente|únicamente|exactamente|al menos|como mínimo|como máximo|más de|menos de|una vez|\w+ veces|salvo|excepto|en lugar de",
    ),
    "it": Joints(
        either=r"o|od|oppure",
        neither=r"non|mai|né|nessun[oa]?",
        without=r"senza",
        also=r"e|ed|nonché",
        but=r"ma|però|bensì",
        beyond=r"solo|soltanto|solamente|esattamente|almeno|al massimo|più di|meno di|una volta|\w+ volte|tranne|eccetto|salvo|invece di",
    ),
    "pt": Joints(
        either=r"ou",
        neither=r"não|nunca|nem|nenhuma?",
        without=r"sem",
        also=r"e|bem como",
        but=r"mas|porém",
        beyond=r"só|somente|apenas|exatamente|pelo menos|no máximo|mais de|menos de|uma vez|\w+ vezes|exceto|salvo|em vez de",
    ),
    "nl": Joints(
        either=r"of",
        neither=r"niet|nooit|geen",
        without=r"zonder",
        also=r"en|alsook|noch",
        but=r"maar",
        beyond=r"alleen|enkel|precies|minstens|hoogstens|meer dan|minder dan|\w+ keer|behalve|in plaats van",
    ),
    "pl": Joints(
        either=r"lub|albo|czy",
        neither=r"nie|nigdy|ani|żad(?:en|na|ne|nego|nej)",
        without=r"bez",
        also=r"i|oraz",
        but=r"ale|lecz",
        beyond=r"tylko|wyłącznie|dokładnie|co najmniej|przynajmniej|najwyżej|więcej niż|mniej niż|raz|razy|oprócz|poza|zamiast",
    ),
    "ru": Joints(
        either=r"или|либо",
        neither=r"не|ни|никогда|нет",
        without=r"без",
        also=r"и|а также",
        but=r"но|а",
        beyond=r"только|лишь|ровно|как минимум|как максимум|не менее|не более|больше|более|меньше|менее|раз|раза|дважды|кроме|вместо",
    ),
    "tr": Joints(
        either=r"veya|ya da|yahut",
        neither=r"değil",
        without=r"(?!x)x",
        also=r"ve|ile",
        but=r"ama|fakat",
        beyond=r"sadece|yalnızca|yalnız|tam olarak|en az|en fazla|birden fazla|daha fazla|kez|kere|defa|hariç|dışında|olmayan|olmadan|yerine",
    ),
}
# A Turkish verb says "not" in its ending.
TURKISH_NOT = r"\w+(?:m[ae]y[ae]n|m[iıuü]yor|m[ae]z|m[ae]m[iıuü]ş|m[ae]d[iıuü])\w*"
# "Not" stands at the verb and is read there.
UNSPACED_JOINTS = Joints(
    either=r"或者|或是|或|还是|還是|または|又は|もしくは|あるいは",
    neither=r"(?!x)x",
    without=r"(?!x)x",
    also=r"以及|并且|および|及び",
    but=r"(?!x)x",
    beyond=r"只(?=提|包|含|讲|講|谈|談|涉|说|写)|仅|僅|至少|最多|超过|超過|多于|少于|不止|除了|以外|但(?:没|沒|不|未)|しか|だけ|のみ|少なくとも|を除",
)
CHINESE_NOT = rf"(?:并|並)?(?:没有|沒有|没|沒|未|不)(?:被)?(?={_CHINESE_MENTION})"
# Behind a Japanese verb.
JAPANESE_NOT = rf"(?:{_JAPANESE_MENTION})(?:して|されて|れて|て|が|は)?い?(?:ない|ません|なかった|ず)"
JAPANESE_NEGATION = r"ない|ません|なかった"

# What people call kinds of files in any of these languages; file_types.py knows what they mean.
FILE_KINDS = r"pdf|docx?|word|odt|rtf|excel|xlsx?|xlsb|ods|csv|powerpoint|pptx?|odp|html?|markdown|md|txt|epub|e-?book|json|jsonl|yaml|toml|xml|latex|tex|ipynb|jupyter|eml|msg|outlook|e-?mail|mail|text"
# Those that are a name for the document itself.
FILE_NOUNS = r"pdfs?|docx|odts?|rtfs?|xlsx|csvs?|pptx|epubs?|e-?books?|markdowns|ipynbs?"
# Words for a kind of document that may be a kind of file as well, and which.
GENRE_KINDS: tuple[tuple[str, str], ...] = (
    (r"e-?mails?(?:da)?|mails?|e-?maile?i?|correos?|courriels?|e-?posta\w*|邮件|電郵|メール", "mail"),
    (r"spreadsheets?", "spreadsheet"),
    (r"presentations?|pr[äé]sentation\w*", "slides"),
)
UNSPACED_HOLDERS = f"{_CHINESE_HOLDERS}|{_JAPANESE_HOLDERS}"
