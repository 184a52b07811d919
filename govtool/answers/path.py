"""The answer of ``path``: the shortest ways from one column to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.evidence import evidence_object, step_object
from govtool.model.kinds import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from govtool.query.path import Hop, PathResult, Way


@dataclass(frozen=True, slots=True)
class PathAnswer(GraphAnswer):
    """The ways from one column to another, the shortest first, hop by hop."""

    schema: ClassVar[str] = "path/1"
    fields: ClassVar[tuple[str, ...]] = ("way", "hop", "source", "target", "kinds", "via", "evidence")
    types: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("way", "hop"), "integer"),
        **dict.fromkeys(("kinds", "via", "evidence"), "texts"),
    }

    result: PathResult

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways."""
        return self.result.ways

    def is_unclear(self) -> bool:
        """Return whether every way has an opaque step, or there is no way but a statement that was not understood."""
        if self.result.ways:
            return all(
                any(step.kind is EdgeKind.OPAQUE for hop in way.hops for step in hop.steps) for way in self.result.ways
            )
        return self.result.more or self.version.unclear > 0

    def body(self) -> Mapping[str, object]:
        """The keys after the header, as docs/schemas/path-1.json has them."""
        result = self.result
        return {
            "from": result.source,
            "to": result.target,
            **({"from_subjects": list(result.sources)} if len(result.sources) > 1 else {}),
            **({"to_subjects": list(result.targets)} if len(result.targets) > 1 else {}),
            "ways": list(self.items()),
            "more": result.more,
            "coverage": self.version.coverage.counts(),
            "diagnostics": [],
        }

    def items(self) -> Iterator[dict[str, object]]:
        """The JSON value of each way."""
        return (_way_object(way) for way in self.result.ways)

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a hop; ways and hops are numbered from 1."""
        for number, way in enumerate(self.result.ways, 1):
            for position, hop in enumerate(way.hops, 1):
                places = tuple(item.place for item in hop.evidence)
                yield number, position, hop.source, hop.target, kinds_of(hop), labels_of(hop), places


def kinds_of(hop: Hop) -> tuple[str, ...]:
    """The kinds of the edges of a hop, each once."""
    return tuple(dict.fromkeys(step.kind.label for step in hop.steps if step.kind is not None))


def labels_of(hop: Hop) -> tuple[str, ...]:
    """The edges of a hop in a few words each: ``copy``, ``lower()``; each once."""
    return tuple(dict.fromkeys(step.label for step in hop.steps))


def _way_object(way: Way) -> dict[str, object]:
    return {
        "path": list(way.nodes),
        "hops": way.length,
        "edges": [
            {
                "source": hop.source,
                "target": hop.target,
                "temporary": hop.elided,
                "steps": [step_object(step) for step in hop.steps],
                "evidence": [evidence_object(item) for item in hop.evidence],
            }
            for hop in way.hops
        ],
    }
