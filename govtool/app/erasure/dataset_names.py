"""The names by which a subject's datasets are meant: their own, ends of them, relations of workflows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.records.dataset_names import is_called
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.app.erasure.chain import RecordedChain
    from govtool.app.erasure.relations import WorkflowRelation

_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class DatasetNames:
    """Names of datasets of recorded runs.

    Attributes:
        known: The datasets that are read or written, inputs first.
        made: Those that are written, and a run that wrote each.
        relations: Relations of workflows.
    """

    known: tuple[str, ...]
    made: Mapping[str, str]
    relations: Sequence[WorkflowRelation] = ()

    @classmethod
    def of(cls, chain: RecordedChain, relations: Sequence[WorkflowRelation]) -> DatasetNames:
        """Those of some runs."""
        return cls(tuple(chain.datasets()), chain.made(), relations)

    def resolved(self, text: str) -> tuple[list[str], str]:
        """The datasets and the column of a text, ``DATASET.COLUMN``.

        Raises:
            UsageError: It has no column (``usage.subject``).
            UnknownNameError: No run read or wrote the dataset.
            AmbiguousNameError: Several are called so.
        """
        name, column = _split(text)
        if not (name and column):
            raise UsageError(f"{text!r} is not DATASET.COLUMN", code="usage.subject", hint="--subject crm.users.id=42")
        return self.called(name), column

    def called(self, name: str) -> list[str]:
        """The dataset of a name, or those of a relation of a workflow.

        Raises:
            UnknownNameError: No run read or wrote it.
            AmbiguousNameError: Several are called so.
        """
        found = self._find(name)
        if len(found) == 1 or any(set(found) <= set(each.datasets) for each in self.relations if found):
            return found
        if found:
            raise AmbiguousNameError(
                f"{name!r} may be {len(found)} datasets",
                code="usage.ambiguous-dataset",
                nearest=tuple(found[:_CANDIDATES]),
                hint="give the option once for each that is meant, by its whole name",
            )
        ends = {each.rpartition("/")[2]: each for each in self.known}
        ends |= {each.name: each.name for each in self.relations}
        near = difflib.get_close_matches(name, [*ends, *self.known], 3, 0.4)
        raise UnknownNameError(
            f"the runs neither read nor wrote {name!r}",
            code="usage.unknown-dataset",
            nearest=tuple(near) or tuple(self.known[:3]),
            hint="--all-runs covers other runs that exchange files with this one",
        )

    def short(self, dataset: str) -> str:
        """The shortest text that names a dataset: its relation, if that has several; else an end that no other has."""
        for relation in self.relations:
            several = list(relation.datasets)
            if len(several) > 1 and dataset in several and self._find(relation.name) == several:
                return relation.name
        parts = dataset.split("/")
        ends = ("/".join(parts[at:]) for at in reversed(range(len(parts))))
        return next((end for end in ends if end and self._ending(end) == [dataset]), dataset)

    def _ending(self, name: str) -> list[str]:
        return [each for each in self.known if is_called(each, name)]

    def _find(self, name: str) -> list[str]:
        """The datasets that may be meant: of a workflow that passes on what is called as an input, the input."""
        found = self._ending(name)
        if name in found:
            return [name]
        own = list(dict.fromkeys(each for of in self.relations if of.name == name for each in of.datasets))
        if not own:
            return found
        others = [each for each in found if each not in own and each not in self.made]
        return [*own, *others] if found else own


def _split(text: str) -> tuple[str, str]:
    """A name before and after its last dot that is not quoted; quotes of the column are removed."""
    quoted, at = False, -1
    for place, ch in enumerate(text):
        if ch in '"`':
            quoted = not quoted
        elif ch == "." and not quoted:
            at = place
    name, column = (text[:at], text[at + 1 :]) if at > 0 else ("", text)
    return name, column.strip('"`')
