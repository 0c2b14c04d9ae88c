"""Every history of a small election, and what must hold in each.

Hearing is no step of its own: before it speaks, a device has heard any part of the history that is closed over what its
words rest on, and at least its own feed. So every loss, delay and order of arrival is among the searched, and a crash
that forgets all that was heard and not written. A part of a history that is so closed is a history, too, which some
observer holds; so what holds from each history to each that has one word more holds between any two observers.

Of what a writer had heard only the least that allowed the word is kept: to have heard more keeps others from nothing.
Attesters of one kind are alike, so of histories that differ in names alone one is looked at.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.halo.finality.finality import NOTHING, Case, Feed, History, Stage, Word

Options = tuple[dict[Word, tuple[tuple[int, ...], ...]], ...]  # for each feed: the next words, and the least to hear
Names = tuple[tuple[int, ...], tuple[int, ...]]  # new names of feeds and devices


class Violation(AssertionError):
    """A history in which something does not hold that must."""

    def __init__(self, reason: str, history: History) -> None:
        words = (f"{feed}: {word}" for feed, words in enumerate(history) for word in words)
        super().__init__("\n".join((reason, *words)))
        self.reason = reason
        self.words = sum(map(len, history))


@dataclass
class Report:
    """What was looked at."""

    case: Case
    histories: int = 0
    whole: bool = False  # whether there are no more
    steps: int = 0
    endings: int = 0  # schedules that were played to their end
    final: set[tuple[bytes, ...]] = field(default_factory=set)

    def __str__(self) -> str:
        count = f"{'all' if self.whole else 'the first'} {self.histories} histories"
        return f"{self.case}: {count}, {self.steps} steps, {self.endings} endings, {len(self.final)} outcomes"


@dataclass(frozen=True)
class Look:
    final: tuple[bytes, ...]
    votes: tuple[tuple[bytes, ...], ...]
    conflict: str
    options: Options


class Search:
    """Looks at every history of a case, the short ones first."""

    def __init__(self, case: Case, *, ending_every: int = 1, limit: int = 10**9, outcomes: bool = False) -> None:
        self.stage = Stage(case)
        self.report = Report(case)
        self._every = ending_every
        self._limit = limit
        self._outcomes = outcomes  # whether to look at nothing but what is final
        self._looks: dict[History, Look] = {}
        self.histories: set[History] = set()
        self._names = list(self._renamings())
        self._known: dict[History, tuple[History, Names]] = {}
        self._said: dict[History, Options] = {}
        self._renamed: list[dict[Word, Word]] = [{} for _ in self._names]

    def run(self) -> Report:
        first = self.stage.empty()
        seen, fresh = self.histories, [first]
        seen.add(first)
        self._visit(first)
        while fresh and len(seen) < self._limit:
            following: list[History] = []
            for history in fresh:
                before = self._look(history).final
                for longer in self._steps(history):
                    self.report.steps += 1
                    known, _ = self._canonical(longer)
                    after = self._look(known).final
                    if after[: len(before)] != before:
                        raise Violation("what was final is so no more", longer)
                    if known not in seen:
                        seen.add(known)
                        following.append(known)
                        self._visit(known)
            fresh = following
        self.report.histories, self.report.whole = len(seen), not fresh
        return self.report

    def _steps(self, history: History) -> Iterator[History]:
        for feed, words in enumerate(self._look(history).options):
            for word, seens in words.items():
                for seen in seens:
                    if self._mirrored(history, word):
                        continue
                    yield (*history[:feed], (*history[feed], word._replace(seen=seen)), *history[feed + 1 :])

    def _mirrored(self, history: History, word: Word) -> bool:
        """Two snapshots of which nothing tells apart are alike: an honest generator's first is the first."""
        case = self.stage.case
        alike = not (case.shrinks or case.restored or case.liars or case.outsider)
        return alike and word.kind == "declare" and word.term == 0 and word.number == 1 and word.value == 1

    # -- what can be said after a history

    def _look(self, history: History) -> Look:
        found = self._looks.get(history)
        if found is None:
            chain = self.stage.chain(history)
            parts = list(self._parts(history))
            options = []
            for feed in range(len(history)):
                known: dict[Word, set[tuple[int, ...]]] = defaultdict(set)
                for at, part in parts:
                    if at != feed:
                        for word, seens in self._options(part)[feed].items():
                            known[word].update(seens)
                for word in self.stage.says(history, chain, feed):
                    if word not in known:
                        known[word] = {tuple(map(len, history))}
                options.append({word: _least(seens) for word, seens in known.items()})
            final = tuple(epoch.snapshot for epoch in chain.final)
            found = self._looks[history] = Look(final, chain.votes, chain.conflict, tuple(options))
        return found

    def _options(self, history: History) -> Options:
        said = self._said.get(history)
        if said is not None:
            return said
        known, names = self._canonical(history)
        found = self._look(known).options
        if known == history:
            return found
        feeds, devices = names
        back = (_inverse(feeds), _inverse(devices))
        said = self._said[history] = tuple(
            {
                _rename(word, back): tuple(tuple(seen[feeds[at]] for at in range(len(feeds))) for seen in seens)
                for word, seens in found[feeds[feed]].items()
            }
            for feed in range(len(feeds))
        )
        return said

    @staticmethod
    def _parts(history: History) -> Iterator[tuple[int, History]]:
        """Without the last word of a feed, where no other rests on it."""
        for feed, words in enumerate(history):
            rests = any(
                word.seen[feed] >= len(words) for at, other in enumerate(history) if at != feed for word in other
            )
            if words and not rests:
                yield feed, (*history[:feed], words[:-1], *history[feed + 1 :])

    # -- names

    def _renamings(self) -> Iterator[Names]:
        stage = self.stage
        apart = {stage.generator, stage.lost, stage.attesters[-1] if stage.case.shrinks else NOTHING}
        alike = [at for at in stage.honest if at not in apart]
        groups = [
            [at for at in alike if at in stage.candidates],
            [at for at in alike if at not in stage.candidates],
        ]
        for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
            names = list(range(len(stage.devices)))
            for group, order in zip(groups, orders, strict=True):
                for old, new in zip(group, order, strict=True):
                    names[old] = new
            feeds = [names[at] if at < len(stage.honest) else at for at in range(len(stage.feeds))]
            yield tuple(feeds), tuple(names)

    def _canonical(self, history: History) -> tuple[History, Names]:
        """Of the histories that differ in names alone the least, and the names that lead there."""
        found = self._known.get(history)
        if found is None:
            images = ((self._image(history, at), names) for at, names in enumerate(self._names))
            found = self._known[history] = min(images)
        return found

    def _image(self, history: History, at: int) -> History:
        names, known = self._names[at], self._renamed[at]
        found: list[Feed] = [()] * len(history)
        for feed, words in enumerate(history):
            for word in words:
                if word not in known:
                    known[word] = _rename(word, names)
            found[names[0][feed]] = tuple(map(known.__getitem__, words))
        return tuple(found)

    # -- what must hold

    def _visit(self, history: History) -> None:
        look = self._look(history)
        if look.conflict:
            raise Violation(look.conflict, history)
        self.report.final.add(look.final)
        if self._outcomes:
            return
        for feed, words in enumerate(history):
            if not self.stage.is_rogue(feed):
                _check_honest(history, feed)
                self._check_witness(words, look, feed, history)
        self._check_counted(history, look)
        if len(self._looks) % self._every == 0:
            self._check_endings(history)

    def _check_witness(self, words: Feed, look: Look, feed: int, history: History) -> None:
        """Who attests what is final, too late to be needed, is believed."""
        for word in words:
            if word.kind == "witness":
                device, at = self.stage.devices[self.stage.owners[feed]], word.number - 1
                told = self.stage.values[look.final[at]] if at < len(look.final) else NOTHING
                if told == word.value and device not in look.votes[at]:
                    raise Violation("the word of one who came late does not count", history)

    def _votes(self, history: History) -> dict[tuple[int, int], set[int]]:
        """Who has said, of each genesis, what makes it final: counted from the words alone."""
        stage, wanted = self.stage, 2 if self.stage.case.liars else 1
        said: dict[tuple[int, int], list[int]] = defaultdict(list)
        for feed, words in enumerate(history):
            promised: dict[int, int] = defaultdict(int)
            for at, word in enumerate(words):
                if word.kind == "endorse":
                    promised[word.number] = max(promised[word.number], word.term)
                elif word.kind in ("declare", "attest") and word.term >= promised[word.number]:
                    said[(feed, at) if word.kind == "declare" else word.genesis].append(stage.owners[feed])
        return {genesis: {one for one in votes if votes.count(one) >= wanted} for genesis, votes in said.items()}

    def _check_counted(self, history: History, look: Look) -> None:
        stage, case = self.stage, self.stage.case
        won: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for (feed, at), voters in self._votes(history).items():
            genesis = history[feed][at]
            members = stage.members(history, genesis.number)
            count = len(members)
            if len(voters.intersection(members)) >= (count * 2 // 3 + 1 if case.liars else count // 2 + 1):
                won[genesis.number].add((genesis.term, genesis.value))
        for number, choices in won.items():
            for word in itertools.chain(*history):
                behind = any(word.term > term and word.value != value for term, value in choices)
                if word.kind == "declare" and word.number == number and behind:
                    raise Violation("a new term does not extend what a quorum has attested", history)
        if not case.liars:
            counted = [{value for _, value in won[number]} for number in sorted(won)]
            told = [{stage.values[snapshot]} for snapshot in look.final]
            if counted != told:
                raise Violation(f"the words make final {counted}, the chain says {told}", history)

    # -- whether it can still end

    def _check_endings(self, history: History) -> None:
        """Whichever quorum of honest attesters is left comes to an end; if the generator has two histories, all do."""
        chain = self.stage.chain(history)
        if chain.open.number > len(self.stage.case.terms):
            return
        members = [at for at in self.stage.honest if self.stage.devices[at] in chain.open.config.attesters]
        count = len(members) if self.stage.case.outsider else chain.open.config.quorum
        for alive in itertools.combinations([at for at in members if at != self.stage.lost], count):
            self.report.endings += 1
            if not self._ends(history, alive, len(chain.final)):
                raise Violation(f"attesters {alive} come to no end", history)

    def _ends(self, history: History, alive: Sequence[int], final: int) -> bool:
        history = self._attest_all(history, alive)
        chain = self.stage.chain(history)
        if len(chain.final) > final:
            return True
        number = chain.open.number
        term = 1 + max((word.term for word in itertools.chain(*history) if word.number == number), default=0)
        whom = alive[-1]
        for at in alive:
            history = self._say(history, at, self.stage.endorses(chain, self.stage.devices[at], term, whom))
        chain = self.stage.chain(history)
        history = self._say(history, whom, self.stage.declares(history, chain, self.stage.devices[whom], term))
        return len(self.stage.chain(self._attest_all(history, alive)).final) > final

    def _attest_all(self, history: History, alive: Sequence[int]) -> History:
        for _ in range(2 if self.stage.case.liars else 1):
            for at in alive:
                chain = self.stage.chain(history)
                history = self._say(history, at, self.stage.attests(history, chain, self.stage.devices[at]))
        return history

    @staticmethod
    def _say(history: History, feed: int, words: Iterator[Word]) -> History:
        seen = tuple(map(len, history))
        for word in itertools.islice(words, 1):
            history = (*history[:feed], (*history[feed], word._replace(seen=seen)), *history[feed + 1 :])
        return history


def _check_honest(history: History, feed: int) -> None:
    """One attestation for each (term, number), and none below what was endorsed; one endorsement for each term."""
    attested: dict[tuple[int, int], tuple[int, int]] = {}
    promised: dict[int, int] = defaultdict(int)
    for at, word in enumerate(history[feed]):
        if word.kind == "endorse":
            if word.term <= promised[word.number]:
                raise Violation("an honest device has endorsed twice in a term, or backwards", history)
            promised[word.number] = word.term
        elif word.kind in ("declare", "attest"):
            genesis = (feed, at) if word.kind == "declare" else word.genesis
            if attested.setdefault((word.number, word.term), genesis) != genesis:
                raise Violation("an honest device has attested two geneses of one term", history)
            if word.term < promised[word.number]:
                raise Violation("an honest device has attested something below a term that it endorsed", history)


def _least(seens: set[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Those that hold no other."""
    return tuple(
        sorted(
            seen
            for seen in seens
            if not any(other != seen and all(a <= b for a, b in zip(other, seen, strict=True)) for other in seens)
        )
    )


def _inverse(names: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(names.index(at) for at in range(len(names)))


def _rename(word: Word, names: Names) -> Word:
    feeds, devices = names
    kind, number, term, value, after, whom, (feed, at), accepted, seen = word
    renamed = [0] * len(seen)
    for old, length in enumerate(seen):
        renamed[feeds[old]] = length
    whom = devices[whom] if whom != NOTHING else NOTHING
    feed = feeds[feed] if feed != NOTHING else NOTHING
    return Word(kind, number, term, value, after, whom, (feed, at), accepted, tuple(renamed))
