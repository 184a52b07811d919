"""Invocations that need not be evaluated again: same module, same rows in, same rows out.

A replay without some rows evaluates only what these rows reach, and stops early where a relation turns out unchanged.
It holds for modules whose outputs depend on nothing but their inputs and state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from govtool.app.workflow_runs.calls import InvocationResult

if TYPE_CHECKING:
    from govtool.model.workflow_run import BoundaryRelation
    from govtool.workflow.modules.definition import Module

Relations = Mapping[str, "BoundaryRelation"]


class InvocationCache:
    """Results of invocations, by module and by the content of what it received."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self._digests: dict[tuple[object, ...], str] = {}
        self._results: dict[tuple[object, ...], InvocationResult] = {}

    def find(
        self, module: Module, inputs: Relations, state: Mapping[str, BoundaryRelation | None], wanted: tuple[str, ...]
    ) -> InvocationResult | None:
        """The result of an equal invocation that made all of the wanted outputs; None if there was none."""
        found = self._results.get(self._key(module, inputs, state))
        if found is None or not set(wanted) <= found.outputs.keys():
            self.misses += 1
            return None
        self.hits += 1
        return found._replace(outputs={name: found.outputs[name] for name in wanted})

    def keep(
        self,
        module: Module,
        inputs: Relations,
        state: Mapping[str, BoundaryRelation | None],
        made: InvocationResult,
    ) -> None:
        """Remember a result."""
        key = self._key(module, inputs, state)
        known = self._results.get(key, made)
        self._results[key] = made._replace(outputs={**known.outputs, **made.outputs})

    def _key(
        self, module: Module, inputs: Relations, state: Mapping[str, BoundaryRelation | None]
    ) -> tuple[object, ...]:
        return (
            module,
            *((name, self.digest(each)) for name, each in inputs.items()),
            *((name, "" if each is None else self.digest(each)) for name, each in state.items()),
        )

    def digest(self, relation: BoundaryRelation) -> str:
        """A digest of a relation's rows; of its files where rows cannot be read."""
        from govtool.app.datasets.row_digest import digest_rows

        key = (relation.path, relation.files)
        if key not in self._digests:
            root = Path(relation.path)
            files = [Path(unquote(urlparse(file.uri).path)) for file in relation.files]
            rows = digest_rows(files, root)
            self._digests[key] = rows if rows is not None else repr(key)
        return self._digests[key]
