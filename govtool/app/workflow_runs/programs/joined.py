"""A recorded program together with the other runs that exchange files with it, as one program.

Runs are joined by the files that they recorded: place, size and time of writing. Where a file was written again in
between, or a write did not record its files, the program begins at that file, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from govtool.app.records.exchange import FileExchange
from govtool.app.records.tables import run_order
from govtool.app.workflow_runs.programs.actions import ProgramAction, RecordedProgram
from govtool.app.workflow_runs.programs.driver_code import UNKNOWN
from govtool.app.workflow_runs.programs.driver_rows import written_by_code
from govtool.app.workflow_runs.programs.layout import (
    has_hidden_inputs,
    inputs_as_listed,
    other_files,
    written_files,
)
from govtool.model.run import Run
from govtool.records.execute.inputs import relations
from govtool.records.execute.places import place_of
from govtool.records.plan.nodes import Plan, Relation

PlanOf = Callable[[ProgramAction], tuple[Plan | None, str]]


@dataclass(frozen=True, slots=True)
class JoinedProgram:
    """A program with the runs that exchange files with it.

    Attributes:
        program: Its actions and theirs, writers before readers.
        others: The applications of the others.
        notes: Inputs at which it begins although a recorded run wrote to their place.
    """

    program: RecordedProgram
    others: tuple[str, ...]
    notes: tuple[str, ...]


def joined_program(program: RecordedProgram, programs: Sequence[RecordedProgram], plan_of: PlanOf) -> JoinedProgram:
    """A program with the writes of other runs that its files were made of, and those that were made of its files.

    What was made of them is there with all that it was made of, so that a deletion reaches it on every way. So is what
    one of the programs wrote that hangs on rows which it collected of them.

    Args:
        program: The program.
        programs: All recorded programs.
        plan_of: As for ``lay_out``.
    """
    return _Join(program, programs, plan_of).whole()


class _Join:
    def __init__(self, program: RecordedProgram, programs: Sequence[RecordedProgram], plan_of: PlanOf) -> None:
        self._program = program
        self._plan_of = plan_of
        ordered = sorted(programs, key=lambda each: (each.started, each.application))
        self._actions = {action.run.id: action for each in ordered for action in each.actions}
        self._actions.update((action.run.id, action) for action in program.actions)
        self._writes = written_by_code(self._runs_of, Path.cwd())
        self._exchange = FileExchange()
        for name, action in self._actions.items():
            reads = [place_of(file) for leaf in self._leaves(action) for file in leaf.files]
            self._exchange.add(name, reads, map(place_of, (*written_files(action), *other_files(action))))

    def _runs_of(self, application: str) -> list[Run]:
        return [each.run for each in self._actions.values() if each.application == application]

    def whole(self) -> JoinedProgram:
        """Everything."""
        own = {action.run.id for action in self._program.actions}
        after, found, earlier = self._exchange.after(own), set[str](), {""}
        while found != earlier:
            earlier = found
            found = self._exchange.before(self._whole(found | after))
            after = self._exchange.after(self._hanging(found))
        order = self._exchange.ordered([name for name in self._actions if name in found])
        actions = [self._labelled(self._actions[name]) for name in order]
        others = dict.fromkeys(each.application for each in actions if each.run.id not in own)
        return JoinedProgram(
            replace(self._program, actions=tuple(actions)), tuple(others), tuple(dict.fromkeys(self._notes(order)))
        )

    def _leaves(self, action: ProgramAction) -> list[Relation]:
        plan, _ = self._plan_of(action)
        return relations(plan.root) if plan is not None else list(inputs_as_listed(action))

    def _whole(self, found: set[str]) -> set[str]:
        """Some actions, and all of those runs in which one of them read what its plan does not name."""
        hidden = {
            each.application
            for each in map(self._actions.__getitem__, found)
            if has_hidden_inputs(each, self._plan_of(each)[0])
        }
        return found | {name for name, each in self._actions.items() if each.application in hidden}

    def _hanging(self, found: set[str]) -> set[str]:
        """Writes of programs that hang, as their code shows, on rows that queries among some actions collected."""
        queries = [each for each in map(self._actions.__getitem__, found) if not each.output]
        first = {
            each.application: min(run_order(one.run.id) for one in queries if one.application == each.application)
            for each in queries
        }
        return {
            name
            for name, each in self._actions.items()
            if each.output and each.application in first and first[each.application] < run_order(name)
            if self._writes(each.application) is not UNKNOWN and self._writes(each.application).has(each.output)
        }

    def _labelled(self, action: ProgramAction) -> ProgramAction:
        """An action of another run under a number that is its own beside those of this run."""
        if action.application == self._program.application:
            return action
        return replace(action, label=f"{action.application}:{action.number}".replace("/", ":"))

    # ---- where it begins --------------------------------------------------------------------------------------------

    def _notes(self, order: Sequence[str]) -> Iterator[str]:
        """Inputs that no write is known to have left as they were read, although one wrote to their place."""
        unlisted = self._unlisted()
        for name in order:
            for leaf in self._leaves(self._actions[name]):
                writer, why = self._broken(leaf, unlisted, name)
                if writer:
                    yield f"{leaf.dataset} is an input: {writer} wrote it, but {why}"

    def _broken(self, leaf: Relation, unlisted: Mapping[str, str], reader: str) -> tuple[str, str]:
        """The run that wrote what a leaf read, and why they are not joined; empty where there is no such run."""
        known = self._exchange
        outside = [place for place in map(place_of, leaf.files) if place not in known.writers]
        again = next((known.paths[place[0]] for place in outside if place[0] in known.paths), reader)
        if again != reader:
            return again, "it was written again before it was read"
        if outside and unlisted.get(leaf.dataset, reader) != reader:
            return unlisted[leaf.dataset], "its files were not recorded"
        return "", ""

    def _unlisted(self) -> dict[str, str]:
        """Writes whose files are not known, by dataset."""
        return {
            action.output: name
            for name, action in self._actions.items()
            if action.output and not self._exchange.writes[name]
        }
