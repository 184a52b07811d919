"""Rules about where data gets to: flow, opaque, purpose. One search with different questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from govtool.model.kinds import VALUE_FLOW
from govtool.policy.classes.dataset_facts import Truth
from govtool.policy.classes.masking import strength_of
from govtool.policy.classes.propagate import Propagation
from govtool.policy.classes.provenance_paths import Array, Arrival, TaintState, leading_to, ways
from govtool.policy.classes.taints import Mode, Seeds, Taint, possible_group
from govtool.policy.classes.unknown_columns import is_call
from govtool.policy.files.model import Rule
from govtool.policy.files.policy_set import PlacedPart
from govtool.policy.files.terms import NONE
from govtool.policy.rules.finding import ANYWHERE, Finding, RuleVerdict
from govtool.policy.rules.reasons import explain, remedy, unseen
from govtool.query.evidence import step
from govtool.query.selection.patterns import Patterns
from govtool.wording import count


@dataclass(frozen=True, slots=True)
class Question:
    """A rule's question to the graph."""

    rule: PlacedPart[Rule]
    classes: tuple[str, ...]
    sinks: Mapping[int, Truth]
    """Datasets where data must not be; ``UNKNOWN``: where it may be that it must not be."""
    modes: Mapping[Mode, RuleVerdict]
    """The meaning of each mode in which data arrives; modes that are left out do not matter."""
    groups: Mapping[int, Truth]
    """Sources that count (see ``Taint.group``): for certain, or maybe."""
    lacking: str = ""
    """The missing knowledge where a sink is ``UNKNOWN``."""
    supply: str = ""
    """The remedy for that."""
    unstated: str = ""
    """Set where no dataset has the fact that the rule asks for, so that nothing can be judged: the reason."""


class Approvals:
    """The columns that a rule's approvals cover on a day."""

    def __init__(self, rule: Rule, today: date, root: str) -> None:
        live = [a for u in rule.unless for a in u.approved if a.expires is None or a.expires >= today]
        self.names = Patterns((p for a in live for p in a.columns), root)

    def cover(self, column: str) -> bool:
        """Return whether a column is approved."""
        return bool(self.names) and self.names.match(column)


def taints_of(spread: Propagation, rule: Rule, classes: Iterable[str], groups: Iterable[int]) -> list[Taint]:
    """The taints that a rule on some classes speaks of.

    Data is of the class that it had at its source, and of the one that a declassifier made of it; it is out of reach
    of a rule once it has passed a declassifier that the rule accepts.
    """
    wanted = tuple(classes)
    among = {one for group in groups for one in (group, possible_group(group))}
    return [
        t
        for t in spread.taints
        if t.group in among
        and not (t.passed & rule.accepted)
        and any(spread.lattice.is_a(c, wanted) for c in {t.name, *spread.lowered(t)})
    ]


def judge(
    spread: Propagation, question: Question, seeds: Sequence[Seeds], possible: Sequence[Seeds], today: date
) -> list[Finding]:
    """Find where data of some classes gets to where it must not, with the way for each source and sink.

    Args:
        spread: The fixpoint.
        question: What is asked.
        seeds: Per group of sources the columns that have classes by themselves.
        possible: Per group of sources the columns that are not known and may be of classes.
        today: For approvals.
    """
    approved = Approvals(question.rule.value, today, spread.index.paths_root)
    search = _Search(spread, question, seeds, possible, approved)
    return search.undecided() if question.unstated else search.run()


def _reported(findings: Collection[Finding]) -> list[Finding]:
    """The findings, without unknown ones of columns that violate the rule or are unknown already."""
    closed = {each.column for each in findings if each.verdict is RuleVerdict.VIOLATED}
    found = []
    for each in findings:
        if each.verdict is RuleVerdict.UNKNOWN:
            if each.column in closed:
                continue
            closed.add(each.column)
        found.append(each)
    return found


class _Search:
    """The steps of one search."""

    def __init__(
        self,
        spread: Propagation,
        question: Question,
        seeds: Sequence[Seeds],
        possible: Sequence[Seeds],
        ok: Approvals,
    ) -> None:
        self.spread = spread
        self.index = spread.index
        self.question = question
        self.rule = question.rule.value
        self.seeds = {group: seeds[group] for group in question.groups}
        self.possible = {possible_group(group): possible[group] for group in question.groups}
        self.approved = ok
        self.taints = frozenset(taints_of(spread, self.rule, question.classes, question.groups))

    def run(self) -> list[Finding]:
        """Every pair of source and sink; for what is unknown, every sink with one source."""
        sinks = self._sinks()
        if not sinks:
            return []
        useful = leading_to(self.index, sinks)
        found: dict[tuple[str, str], Finding] = {}
        covered: set[int] = set()
        starts = [(g, n) for g, own in self.seeds.items() for n in own.nodes[useful[own.nodes]].tolist()]
        starts = [(g, n) for g, n in starts if self._at_start(g, n)]
        roots = [(g, n) for g, n in starts if not self._arrives(g, n)]
        for group, node in roots:
            self._walk(group, node, sinks, useful, found, covered)
        # Sources that only reach each other in a circle have no first one: the first by name will do.
        for group, node in starts:
            if set(sinks) <= covered:
                break
            if (group, node) not in roots and node not in covered:
                self._walk(group, node, {n for n in sinks if n not in covered}, useful, found, covered)
        self._walk_unseen({n for n in sinks if n not in covered}, useful, found, covered)
        return _reported(found.values())

    def undecided(self) -> list[Finding]:
        """One finding for all that cannot be judged; none where nothing would have been."""
        sinks = self._sinks()
        if not sinks:
            return []
        datasets = {self.index.node_dataset[node] for node in sinks}
        unknown = f"{count(len(sinks), 'column')} ({count(len(datasets), 'dataset')})"
        return [
            Finding(
                rule=self.rule.id,
                title=self.rule.title,
                severity=self.rule.severity,
                verdict=RuleVerdict.UNKNOWN,
                source="",
                column=ANYWHERE,
                classes=tuple(sorted({taint.name for taint in self.taints if self._reaches(taint)})),
                state=Mode.UNKNOWN.name.lower(),
                why=f"{self.question.unstated}: not known of {unknown}",
                fix=self.question.supply,
                place=self.question.rule.place,
            )
        ]

    def _reaches(self, taint: Taint) -> bool:
        """Return whether data of a class is anywhere in a way that the rule asks for."""
        return any(len(self.spread.having(mode, (taint,))) for mode in self.question.modes)

    def _walk_unseen(
        self, sinks: set[int], useful: Array, found: dict[tuple[str, str], Finding], covered: set[int]
    ) -> None:
        """Walk what only unknown columns may bring; first from those that have it from no others."""
        starts = [(g, n) for g, own in self.possible.items() for n in own.nodes[useful[own.nodes]].tolist()]
        for group, node in sorted((g, n) for g, n in starts if self._at_start(g, n)):
            if not self._handed_on(group, node) and not sinks <= covered:
                self._walk(group, node, sinks - covered, useful, found, covered)
        for group, node in starts:  # circles
            if not sinks <= covered and self._at_start(group, node):
                self._walk(group, node, sinks - covered, useful, found, covered)

    def _handed_on(self, group: int, node: int) -> bool:
        """Return whether columns that are not known may have all their classes from others, of another dataset."""
        taints = [state.taint for state in self._at_start(group, node)]
        index, spread = self.index, self.spread
        return all(
            any(
                index.edge_source[e] != node
                and spread.has(index.edge_source[e], Mode.UNKNOWN, t)
                and not t.stopped_by(spread.possible.stops.get(e, ()))
                for e in index.in_edges(node)
            )
            for t in taints
        )

    def _sinks(self) -> set[int]:
        index = self.index
        found: set[int] = set()
        for mode in self.question.modes:
            nodes = self.spread.having(mode, self.taints).tolist()
            found.update(n for n in nodes if index.node_dataset[n] in self.question.sinks)
        calls = {d for d in self.spread.possible.opaque if is_call(index.dataset_name(d))}  # no places, but sources
        return {n for n in found if index.node_dataset[n] not in calls and not self.approved.cover(index.name(n))}

    def _at_start(self, group: int, node: int) -> list[TaintState]:
        own, mode = (self.possible, Mode.UNKNOWN) if group < 0 else (self.seeds, Mode.VALUE)
        taints = (Taint(name, group, frozenset()) for name in own[group][node])
        return [TaintState(node, mode, t) for t in taints if t in self.spread.place and self._relevant(t)]

    def _relevant(self, taint: Taint) -> bool:
        """Return whether data of a class may become what the rule speaks of."""
        return any(t.name == taint.name and t.group == taint.group for t in self.taints)

    def _arrives(self, group: int, node: int) -> bool:
        """Return whether a source gets what it is asked for from another column."""
        spread, index = self.spread, self.index
        family = [t for t in self.taints if t.group == group]
        for edge in index.in_edges(node):
            if index.kind(edge) not in VALUE_FLOW:
                continue
            source = index.edge_source[edge]
            around = (source, *index.containers(source), *index.fields(source))
            for taint in spread.taints:
                if taint.group != group or spread.after(taint, edge) not in family:
                    continue
                if any(other != node and spread.has(other, Mode.VALUE, taint) for other in around):
                    return True
        return False

    def _walk(
        self,
        group: int,
        node: int,
        sinks: Iterable[int],
        useful: Array,
        found: dict[tuple[str, str], Finding],
        covered: set[int],
    ) -> None:
        modes = self.question.modes
        arrivals = ways(
            self.spread,
            self._at_start(group, node),
            frozenset(sinks),
            lambda state: state.mode in modes and state.taint in self.taints,
            useful,
            lambda taint: bool(self._unsure(taint)),
        )
        for arrival in arrivals:
            covered.add(arrival.state.node)
            finding = self._finding(group, node, arrival)
            key = (finding.source, finding.column)
            if key not in found or finding.verdict < found[key].verdict:
                found[key] = finding

    def _unsure(self, taint: Taint) -> frozenset[str]:
        """The declassifiers that would satisfy the rule, had the data passed them, which is not known."""
        ends = {d.name for d in self.spread.transfers.declassify if d.to == NONE}
        return taint.unsure & (self.rule.accepted | ends)

    def _finding(self, group: int, start_node: int, arrival: Arrival) -> Finding:
        node, mode, taint = arrival.state
        question, index = self.question, self.index
        verdict = question.modes[mode]
        known = possible_group(group) if taint.is_possible else group
        certain = min(question.sinks[index.node_dataset[node]], question.groups[known])
        why = explain(self.spread, self.rule, arrival)
        fix = self.rule.fix or remedy(self.spread.transfers.declassify, self.rule, taint.name, self.spread)
        opaque = False
        if taint.is_possible:
            verdict = RuleVerdict.UNKNOWN
            start = index.edge_source[arrival.edges[0]] if arrival.edges else node
            opaque = index.node_dataset[start] in self.spread.possible.opaque
            why, remedied = unseen(index, start, taint.name, opaque)
            fix = self.rule.fix or remedied
        unsure = self._unsure(taint) if mode is Mode.VALUE else frozenset()
        if unsure:
            verdict = RuleVerdict.UNKNOWN
        if certain is not Truth.YES:
            verdict = RuleVerdict.UNKNOWN
            why, fix = (why, fix) if opaque else (question.lacking, question.supply)
        steps = tuple(step(index, edge) for edge in arrival.edges)
        return Finding(
            rule=self.rule.id,
            title=self.rule.title,
            severity=self.rule.severity,
            verdict=verdict,
            source=index.name(start_node),
            column=index.name(node),
            classes=self._classes(group, start_node, arrival.state),
            state=state_text(mode, taint, unsure),
            steps=steps,
            why=why,
            fix=fix,
            place=question.rule.place,
            strength=strength_of(index, arrival.edges),
            measured=_measured(self.spread, arrival.edges),
        )

    def _classes(self, group: int, start: int, state: TaintState) -> tuple[str, ...]:
        """The class that arrives, and the others of the source that arrive in the same way."""
        names = {state.taint.name}
        own = self.seeds[group].get(start, ()) if group in self.seeds else ()
        others = [t for t in self.taints if t.name in own and t.group == group and t.passed == state.taint.passed]
        names.update(t.name for t in others if self.spread.has(state.node, state.mode, t))
        return tuple(sorted(names))


def _measured(spread: Propagation, edges: Sequence[int]) -> int | None:
    """Members of the smallest measured group on a way, at the most."""
    sizes = [one.group.at_most for (edge, _), one in spread.transfers.measured.items() if edge in edges]
    return min((size for size in sizes if size is not None), default=None)


def state_text(mode: Mode, taint: Taint, unsure: frozenset[str] = frozenset()) -> str:
    """``value``, ``influence`` or ``unknown``, and what it has passed, or may have: ``value via keyed-hash``."""
    label = mode.name.lower()
    passed = [*sorted(taint.passed), *(f"{name}?" for name in sorted(unsure))]
    return f"{label} via {', '.join(passed)}" if passed else label
