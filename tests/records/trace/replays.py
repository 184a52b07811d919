"""The comparison of replays with the reference: a random plan over random data, without some of its rows.

python tests/records/trace/replays.py 2000 [first seed] [--files]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import duckdb
from differential import Case, normal_rows
from reference.algebra import bag

from govtool.errors import EngineError
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import LocalRows
from govtool.records.replay.changes import Exclusion
from govtool.records.replay.compare import replay
from govtool.records.sql.dialect import NotExact
from govtool.records.trace.forward import input_key


@dataclass
class Replays:
    """What a run of cases came to."""

    cases: int = 0
    narrowed: int = 0
    different: int = 0
    skipped: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Replays) -> None:
        for name in ("cases", "narrowed", "different", "skipped", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def check(seed: int, folder: Path | None = None) -> Replays:
    """Replay one plan without some rows of one relation."""
    case = Case(seed, folder)
    try:
        return _checked(case)
    except (duckdb.NotImplementedException, NotExact, EngineError):
        return Replays(cases=1, skipped=1)
    finally:
        case.tables.close()


def _checked(case: Case) -> Replays:
    report = Replays(cases=1)
    names = [name for name, rows in case.data.items() if rows and name in case.sql]
    if not names:
        return Replays(cases=1, skipped=1)
    name = case.rng.choice(names)
    places = case.rng.sample(range(len(case.data[name])), case.rng.randint(1, min(2, len(case.data[name]))))
    lineage = Lineage.of(from_sql(case.sql, case.tables.catalog), case.duck)
    record = lineage.ids.attribute("record", t.LONG)
    packed = tuple((case.tables.record(name, place),) for place in places)
    kept = case.duck.keep(LocalRows(0, (record,), packed))
    if not any(name == leaf.dataset for leaf in lineage.leaves() if hasattr(leaf, "dataset")):
        return Replays(cases=1, skipped=1)
    answer = replay(lineage, [Exclusion(name, None, ((input_key(case.tables.catalog[name]), kept),))])
    rest = {
        each: [row for n, row in enumerate(rows) if each != name or n not in places] for each, rows in case.data.items()
    }
    before, after = (Counter(normal_rows(bag(case.plan, data))) for data in (case.data, rest))
    found = before - Counter(normal_rows(answer.gone)) - Counter(normal_rows(row.before for row in answer.changed))
    found += Counter(normal_rows(answer.new)) + Counter(normal_rows(row.after for row in answer.changed))
    lost = len(answer.gone) + len(answer.changed) - len(answer.new) - len(answer.changed)
    if found != after or sum(before.values()) - lost != sum(after.values()):
        report.wrong.append(f"{case.seed} without {name} {places}: {found} instead of {after}: {case.sql}")
    report.narrowed += answer.groups is not None
    report.different += bool(answer.gone or answer.changed or answer.new)
    return report


def run(seeds: range, folder: Path | None = None) -> Replays:
    """Compare the replays of some seeds."""
    total = Replays()
    for seed in seeds:
        total.add(check(seed, folder))
    return total


def main(arguments: list[str]) -> int:
    """Run many cases; print what is wrong, and the totals."""
    numbers = [int(text) for text in arguments if not text.startswith("-")]
    start = numbers[1] if len(numbers) > 1 else 0
    total = Replays()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(start, start + numbers[0]):
            try:
                total.add(check(seed, Path(folder) if "--files" in arguments else None))
            except Exception as error:
                total.add(Replays(cases=1, wrong=[f"{seed}: {type(error).__name__}: {error}"]))
    print(*total.wrong, sep="\n")
    print(f"{total.cases} cases, {total.narrowed} narrowed, {total.different} with other rows, {total.skipped} skipped")
    return bool(total.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
