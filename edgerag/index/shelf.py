"""Several libraries asked as one: what asking needs of a library, over all of them.

The scores of each leg are made comparable before they are merged, so that a passage has the place that it would have
if all documents lay in one library: cosines are as they are, and BM25 is computed anew with the rarity of words and the
length of passages in all of the libraries together (within a library of pumps "pump" says little, beside others much).
Ids of the libraries lie in ranges of their own. A library made with another embedder is searched by words only; one
that cannot be opened or read is left out of the question and named. Reads only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from edgerag.errors import LibraryDamaged, LibraryError, LibraryMissing, UsageError
from edgerag.index.keywords import TermCounts
from edgerag.index.library import Library
from edgerag.index.word_rules import Rules
from edgerag.types import (
    OWN_ID_BITS,
    AskedTerm,
    CancelCheck,
    EmbedderIdentity,
    Filter,
    KeywordScan,
    LatentEvidence,
    LegHit,
    ParsedDocument,
    PassageWords,
    PieceCount,
    SearchWork,
    StoredChunk,
    WordEvidence,
    WordQuery,
    own_id,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

T = TypeVar("T")

_KINDS = ("paths", "tags", "types", "languages")  # of entries of a filter, in its own words


@dataclass(slots=True)
class _Place:
    """One library by its place on the shelf; ``library`` is None while it is left out."""

    number: int
    name: str
    open: Callable[[], Library]
    library: Library | None = None

    def shelved(self, identity: int) -> int:
        """An id of this library as one of the shelf's."""
        if not 0 <= identity < 1 << OWN_ID_BITS:
            raise LibraryDamaged(f"{identity} is no id of a library.", remedy="Restore the library from a copy.")
        return self.number << OWN_ID_BITS | identity

    def own(self, ids: Iterable[int]) -> list[int]:
        """Those of the shelf's ids that are this library's, as it has them."""
        return [own_id(identity) for identity in ids if identity >> OWN_ID_BITS == self.number]

    def hits(self, found: Iterable[LegHit]) -> list[LegHit]:
        return [LegHit(self.shelved(hit.chunk_id), hit.score) for hit in found]


class Shelf:
    """Libraries by name, in the order in which they were named. One thread at a time, any thread."""

    def __init__(
        self, openers: Mapping[str, Callable[[], Library]], *, in_use: Callable[[], EmbedderIdentity | None]
    ) -> None:
        """Opens nothing yet: see :meth:`begin`. ``in_use`` gives the embedder that will embed the questions."""
        self._places = [_Place(number, name, open_) for number, (name, open_) in enumerate(openers.items())]
        self._in_use = in_use
        self._identity: EmbedderIdentity | None = None
        self._left_out: list[str] = []
        self._counted: tuple[str | None, dict[int, TermCounts]] = (None, {})
        self._rules: tuple[Rules, ...] = ()  # of all libraries together, as of what was counted

    def begin(self) -> None:
        """A question begins: what was left out of the one before is tried again.

        Raises the LibraryError of the first library when none of them can be opened.
        """
        self._left_out.clear()
        self._counted = (None, {})
        errors = []
        for place in self._places:
            if place.library is None:
                try:
                    place.library = place.open()
                except LibraryError as error:
                    errors.append(error)
                    self._note(place, error)
        libraries = [place.library for place in self._places if place.library is not None]
        if not libraries:
            raise errors[0]
        in_use = self._in_use()
        identities = [library.identity for library in libraries]
        alike = (each for each in identities if in_use is not None and _same(each, in_use))
        self._identity = next(alike, identities[0])
        self._note_strangers()

    def _note_strangers(self) -> None:
        for place in self._places:
            if place.library is not None and not self._is_embedded_alike(place.library):
                self._left_out.append(
                    f"Library {place.name!r} was made with the embedder {place.library.identity.name!r}, "
                    "which is not in use: it was searched by words only."
                )

    @property
    def left_out(self) -> tuple[str, ...]:
        """What could not be asked since :meth:`begin`, or not as it should, in sentences that name the library."""
        return tuple(self._left_out)

    def look_at_rest(self) -> None:
        """As of a library: each that is open."""
        for place in self._places:
            if place.library is not None:
                place.library.look_at_rest()

    def damage_note(self) -> str:
        """As of a library: of all of them."""
        notes = (place.library.damage_note() for place in self._places if place.library is not None)
        return " ".join(filter(None, notes))

    def close(self) -> None:
        for place in self._places:
            if place.library is not None:
                place.library.close()
                place.library = None

    # ------------------------------------------------------------ as a library

    @property
    def identity(self) -> EmbedderIdentity:
        """Of the embedder in use, if one of the libraries was made with it; else that of the first."""
        assert self._identity is not None, "begin() comes first"
        return self._identity

    def query_terms(self, query: str) -> tuple[str, ...]:
        """As of a library: the same in each."""
        (_, terms), *_ = self._each(partial(Library.query_terms, query=query))
        return terms

    def is_empty(self) -> bool:
        return all(empty for _, empty in self._each(Library.is_empty))

    def chunk_count(self) -> int:
        return sum(count for _, count in self._each(Library.chunk_count))

    def pending_count(self) -> int:
        """Chunks without a vector that the embedder in use can find."""

        def pending(library: Library) -> int:
            return library.pending_count() if self._is_embedded_alike(library) else library.chunk_count()

        return sum(count for _, count in self._each(pending))

    def analysed_before_count(self) -> int:
        return sum(count for _, count in self._each(Library.analysed_before_count))

    def check_filter(self, where: Filter) -> Filter:
        """``where`` as the searches take it; libraries in which nothing matches give no hits.

        Raises UsageError for what none of the libraries has, in the words of each, and for ids of documents, which
        each library numbers for itself.
        """
        if where.document_ids:
            raise UsageError(
                f"#{where.document_ids[0]} names a document of one library, and several are asked.",
                remedy="Give its path, or ask one library (--library NAME).",
            )
        checked: dict[str, tuple[str, ...]] = {}
        for kind in _KINDS:
            entries = [self._checked_entry(kind, entry) for entry in getattr(where, kind)]
            checked[kind] = tuple(dict.fromkeys(entries))
        known = _with(where, checked)
        self._any_accepts(lambda library: _reduced(library, known))
        return known

    def _checked_entry(self, kind: str, entry: str) -> str:
        spelled: tuple[str, ...] = getattr(
            self._any_accepts(lambda library: library.check_filter(_only(kind, entry))), kind
        )
        return spelled[0]

    def _any_accepts(self, check: Callable[[Library], Filter]) -> Filter:
        """What the first library says that raises no UsageError; raises what all say, if all do."""
        refused: list[tuple[_Place, UsageError]] = []

        def tried(library: Library) -> Filter | UsageError:
            try:
                return check(library)
            except UsageError as error:
                return error

        for place, answer in self._each(tried):
            if isinstance(answer, Filter):
                return answer
            refused.append((place, answer))
        if len({str(error) for _, error in refused}) == 1:
            raise refused[0][1]
        raise UsageError(" ".join(f"{place.name}: {error}" for place, error in refused))

    def search_keywords(self, query: str, *, limit: int, where: Filter | None = None) -> list[LegHit]:
        """The best chunks of all libraries by the BM25 that they would have in one; equal scores by id."""
        counts, rules = self._counts(query), self._rules
        together = TermCounts.together(counts.values())
        legs = []
        search = partial(Library.search_keywords, query=query, limit=limit, where=where, rules=rules)
        for place, hits in self._each(search):
            rescored = partial(
                Library.keyword_scores,
                query=query,
                chunk_ids=[hit.chunk_id for hit in hits],
                own=counts[place.number],
                together=together,
                rules=rules,
            )
            for _, scores in self._each(rescored, [place]):
                legs.append(place.hits(LegHit(chunk_id, score) for chunk_id, score in scores.items()))
        return merged(legs, limit=limit)

    def search_vectors(
        self,
        vector: Vectors,
        *,
        limit: int,
        ef_search: int,
        where: Filter | None = None,
        out_of_time: CancelCheck | None = None,
        work: SearchWork | None = None,
    ) -> list[LegHit]:
        """The nearest chunks by cosine of the libraries that were made with the embedder in use; equal scores by id."""

        def search(library: Library) -> list[LegHit]:
            if not self._is_embedded_alike(library):
                return []
            return library.search_vectors(
                vector, limit=limit, ef_search=ef_search, where=where, out_of_time=out_of_time, work=work
            )

        return merged((place.hits(hits) for place, hits in self._each(search)), limit=limit)

    def term_weights(self, query: str) -> dict[str, float]:
        """As of a library, with the idf in all of them together."""
        together = TermCounts.together(self._counts(query).values())
        weigh = partial(Library.term_weights, query=query, counts=together, rules=self._rules)
        (_, weights), *_ = self._each(weigh, self._open()[:1])
        return weights

    def scan_keywords(self, words: WordQuery, *, document_limit: int, where: Filter | None = None) -> KeywordScan:
        """As of a library, counted in all of them."""
        scans = self._each(partial(Library.scan_keywords, words=words, document_limit=document_limit, where=where))
        named = [
            dataclasses.replace(
                match, document_id=place.shelved(match.document_id), chunk_id=place.shelved(match.chunk_id)
            )
            for place, scan in scans
            for match in scan.documents
        ]
        named.sort(key=lambda match: (-match.passage_count, match.path, match.document_id))
        return KeywordScan(
            pieces=tuple(
                PieceCount(
                    counts[0].piece,
                    document_count=sum(count.document_count for count in counts),
                    passage_count=sum(count.passage_count for count in counts),
                )
                for counts in zip(*(scan.pieces for _, scan in scans), strict=True)
            ),
            document_total=sum(scan.document_total for _, scan in scans),
            passage_total=sum(scan.passage_total for _, scan in scans),
            document_count=sum(scan.document_count for _, scan in scans),
            passage_count=sum(scan.passage_count for _, scan in scans),
            joint_document_count=sum(scan.joint_document_count for _, scan in scans),
            documents=tuple(named[:document_limit]),
            words=scans[0][1].words,
        )

    def vectors_of(self, chunk_ids: Sequence[int]) -> dict[int, Vectors]:
        """As of a library, of those made with the embedder in use."""
        found: dict[int, Vectors] = {}
        for place in self._open():
            if place.library is None or not self._is_embedded_alike(place.library):
                continue
            for _, vectors in self._each(partial(Library.vectors_of, chunk_ids=place.own(chunk_ids)), [place]):
                found.update((place.shelved(chunk_id), vector) for chunk_id, vector in vectors.items())
        return found

    def mean_vector(self) -> tuple[Vectors, int]:
        """As of a library: of those made with the embedder in use, each by its number of vectors."""
        means = [
            (mean, count)
            for place in self._open()
            if place.library is not None and self._is_embedded_alike(place.library)
            for _, (mean, count) in self._each(Library.mean_vector, [place])
        ]
        total = sum(count for _, count in means)
        together = np.zeros(self.identity.dimension, dtype="<f4")
        for mean, count in means:
            together += mean * np.float32(count / max(1, total))
        return together, total

    def word_evidence(self, query: str, chunk_ids: Sequence[int]) -> WordEvidence:
        """As of a library, weighed by the rarity of words in all of them."""
        together = TermCounts.together(self._counts(query).values())
        terms: dict[AskedTerm, None] = {}
        passages: dict[int, PassageWords] = {}
        for place in self._open():
            look = partial(
                Library.word_evidence,
                query=query,
                chunk_ids=place.own(chunk_ids),
                counts=together,
                rules=self._rules,
            )
            for _, found in self._each(look, [place]):
                terms.update(dict.fromkeys(found.terms))
                passages.update((place.shelved(chunk_id), words) for chunk_id, words in found.passages.items())
        return WordEvidence(tuple(terms), passages, mean_words=together.words / max(1, together.chunks))

    def latent_evidence(self, words: WordEvidence, chunk_ids: Sequence[int]) -> LatentEvidence | None:
        """As of a library, each chunk in the latent space of its own; None where no library has one."""
        cosines = np.zeros(len(chunk_ids), dtype=np.float32)
        alike = np.zeros((len(chunk_ids), len(chunk_ids)), dtype=np.float32)
        known = False
        for place in self._open():
            rows = [row for row, chunk_id in enumerate(chunk_ids) if place.own([chunk_id])]
            if not rows:
                continue
            ids = place.own(chunk_ids)
            passages = {own: words.passages[place.shelved(own)] for own in ids}
            look = partial(Library.latent_evidence, words=replace(words, passages=passages), chunk_ids=ids)
            for _, found in self._each(look, [place]):
                if found is not None:
                    known = True
                    cosines[rows] = found.cosines
                    alike[np.ix_(rows, rows)] = found.alike
        return LatentEvidence(cosines, alike) if known else None

    def is_current(self) -> bool:
        """Whether each library is still made with the embedder that it was opened with."""
        return all(current for _, current in self._each(Library.is_current))

    def chunks(self, chunk_ids: Sequence[int]) -> list[StoredChunk]:
        """In the order given, each naming its library; ids that no longer exist, or not now, are left out."""
        found: dict[int, StoredChunk] = {}
        for place in self._open():
            for _, stored in self._each(partial(Library.chunks, chunk_ids=place.own(chunk_ids)), [place]):
                for chunk in stored:
                    shelved = dataclasses.replace(
                        chunk,
                        id=place.shelved(chunk.id),
                        document_id=place.shelved(chunk.document_id),
                        library=place.name,
                    )
                    found[shelved.id] = shelved
        return [found[chunk_id] for chunk_id in chunk_ids if chunk_id in found]

    def text_around(self, chunk_id: int, characters: int) -> tuple[str, str]:
        """See Library.text_around; "" where its library is not there now."""
        for place in self._open():
            for own in place.own([chunk_id]):
                for _, around in self._each(partial(Library.text_around, chunk_id=own, characters=characters), [place]):
                    return around
        return "", ""

    def parsed_document(self, document_id: int) -> ParsedDocument:
        """Raises UsageError if there is no such document, or its library is not there now."""
        for place in self._open():
            for own in place.own([document_id]):
                for _, document in self._each(partial(Library.parsed_document, document_id=own), [place]):
                    return document
        raise LibraryMissing("The library of this document cannot be read now.")

    # ------------------------------------------------------------ each of them

    def _open(self) -> list[_Place]:
        return [place for place in self._places if place.library is not None]

    def _each(self, ask: Callable[[Library], T], places: Sequence[_Place] | None = None) -> list[tuple[_Place, T]]:
        """What each library says. One that cannot be read is left out from here on.

        Raises its LibraryError when it was the last.
        """
        answers = []
        for place in self._open() if places is None else places:
            if place.library is None:
                continue
            try:
                answers.append((place, ask(place.library)))
            except LibraryError as error:
                self._leave_out(place, error)
        return answers

    def _leave_out(self, place: _Place, error: LibraryError) -> None:
        if place.library is not None:
            place.library.close()
            place.library = None
        self._note(place, error)
        if not self._open():
            raise error

    def _note(self, place: _Place, error: LibraryError) -> None:
        self._left_out.append(f"Library {place.name!r} was left out: {error}")

    def _is_embedded_alike(self, library: Library) -> bool:
        return _same(library.identity, self.identity)

    def _counts(self, query: str) -> dict[int, TermCounts]:
        """By the number of the place; those of one question are counted once."""
        if self._counted[0] != query:
            self._rules = tuple(dict.fromkeys(rule for _, rules in self._each(Library.word_rules) for rule in rules))
            counts = self._each(partial(Library.term_counts, query=query, rules=self._rules))
            self._counted = (query, {place.number: count for place, count in counts})
        return self._counted[1]


def merged(legs: Iterable[Sequence[LegHit]], *, limit: int) -> list[LegHit]:
    """The hits of one leg from several libraries as one list, best first; equal scores by id.

    The one place that relies on scores of different libraries being comparable.
    """

    def order(hit: LegHit) -> tuple[float, int]:
        return (-hit.score, hit.chunk_id)

    return list(islice(merge(*(sorted(leg, key=order) for leg in legs), key=order), max(0, limit)))


def _same(one: EmbedderIdentity, other: EmbedderIdentity) -> bool:
    return one.is_same_as(other)


def _only(kind: str, entry: str) -> Filter:
    match kind:
        case "paths":
            return Filter(paths=(entry,))
        case "tags":
            return Filter(tags=(entry,))
        case "types":
            return Filter(types=(entry,))
        case _:
            return Filter(languages=(entry,))


def _reduced(library: Library, where: Filter) -> Filter:
    """``where`` without the entries that this library does not know. Raises UsageError if it leaves no documents."""
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in _KINDS:
        entries: tuple[str, ...] = getattr(where, kind)
        refusal: UsageError | None = None
        known = []
        for entry in entries:
            try:
                library.check_filter(_only(kind, entry))
                known.append(entry)
            except UsageError as error:
                refusal = error
        if refusal is not None and not known:
            raise refusal
        kinds[kind] = tuple(known)
    return library.check_filter(_with(where, kinds))


def _with(where: Filter, kinds: Mapping[str, tuple[str, ...]]) -> Filter:
    return dataclasses.replace(
        where, paths=kinds["paths"], tags=kinds["tags"], types=kinds["types"], languages=kinds["languages"]
    )
