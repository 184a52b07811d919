"""Every deletion from small runs, an operator at a time: graph and rows of the run, compared with DuckDB without the records.

Conditions and keys are computed ones, so that a deletion decides what is equal; each query is one module, two, or two
with state between them, or one whose plan is not known.

python tests/workflow/modules/operator_deletions.py [--graph] [name…]
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path[:0] = [str(each) for each in (here.parents[1], here, here.parent / "graph", here.parent / "annotate")]

from random_workflows import contradictions
from sql_modules import SqlModules

from govtool.app.workflow_runs import deletion as run_deletion
from govtool.app.workflow_runs.opened import OpenedRun
from govtool.workflow.deletion import delete
from govtool.workflow.modules.run_rows import output_deletions

COUNTS = "SELECT g, count(*) c FROM r GROUP BY g"
FIRST = "SELECT g, x FROM r ORDER BY x DESC, g LIMIT 1"
QUERIES = {
    "EXCEPT a count": "SELECT x FROM s EXCEPT SELECT count(*) FROM r GROUP BY g",
    "EXCEPT a total": "SELECT x FROM s EXCEPT SELECT count(*) FROM r",
    "counts EXCEPT": "SELECT count(*) c FROM r GROUP BY g EXCEPT SELECT x FROM s",
    "counts EXCEPT counts": "SELECT count(*) c FROM r GROUP BY g EXCEPT SELECT count(*) FROM s GROUP BY g",
    "EXCEPT ALL a count": "SELECT x FROM s EXCEPT ALL SELECT count(*) FROM r GROUP BY g",
    "counts EXCEPT ALL": "SELECT count(*) c FROM r GROUP BY g EXCEPT ALL SELECT x FROM s",
    "INTERSECT": "SELECT x FROM s INTERSECT SELECT count(*) FROM r GROUP BY g",
    "counts INTERSECT": "SELECT count(*) c FROM r GROUP BY g INTERSECT SELECT x FROM s",
    "INTERSECT ALL": "SELECT x FROM s INTERSECT ALL SELECT count(*) FROM r GROUP BY g",
    "NOT IN": "SELECT x FROM s WHERE x NOT IN (SELECT count(*) FROM r GROUP BY g)",
    "NOT IN a NULL": "SELECT x FROM s WHERE x NOT IN (SELECT sum(x) FROM r WHERE x > 1)",
    "count NOT IN": f"SELECT c FROM ({COUNTS}) t WHERE c NOT IN (SELECT x FROM s)",
    "IN": "SELECT x FROM s WHERE x IN (SELECT count(*) FROM r GROUP BY g)",
    "anti join": f"SELECT s.g, s.x FROM s LEFT ANTI JOIN ({COUNTS}) t ON s.x = t.c",
    "NOT EXISTS": "SELECT g, x FROM s WHERE NOT EXISTS (SELECT g FROM r WHERE r.g = s.g GROUP BY g HAVING count(*) > 1)",
    "left join": f"SELECT s.g, s.x, t.g AS h FROM s LEFT JOIN ({COUNTS}) t ON s.x = t.c",
    "full join": f"SELECT s.g, t.g AS h, t.c FROM s FULL JOIN ({COUNTS}) t ON s.x = t.c",
    "join": f"SELECT s.g, s.x, t.g AS h FROM s JOIN ({COUNTS}) t ON s.x = t.c",
    "DISTINCT": f"SELECT DISTINCT c FROM ({COUNTS}) t",
    "GROUP BY": f"SELECT c, count(*) n FROM ({COUNTS}) t GROUP BY c",
    "GROUP BY a total": "SELECT c, count(*) n FROM (SELECT count(*) c FROM r) t GROUP BY c",
    "sums by counts": f"SELECT c, sum(c) n, max(g) m FROM ({COUNTS}) t GROUP BY c",
    "filter": f"SELECT g FROM ({COUNTS}) t WHERE c = 1",
    "filter of a total": "SELECT c FROM (SELECT count(*) c FROM r) t WHERE c < 3",
    "HAVING": "SELECT g, sum(x) y FROM r GROUP BY g HAVING count(*) <= 1",
    "scalar subquery": "SELECT g, x FROM s WHERE x = (SELECT count(*) FROM r)",
    "UNION": "SELECT x FROM s UNION SELECT count(*) FROM r GROUP BY g",
    "UNION of a total": "SELECT x FROM s UNION SELECT count(*) FROM r",
    "CASE": f"SELECT g, CASE WHEN c > 1 THEN 'many' ELSE 'one' END k FROM ({COUNTS}) t",
    "COALESCE": "SELECT coalesce(sum(x), 0) c FROM r WHERE x > 1",
    "count of groups": "SELECT count(*) n FROM (SELECT g FROM r GROUP BY g HAVING count(*) > 1) t",
    "sum of a total": "SELECT sum(c) n FROM (SELECT count(*) c FROM r) t",
    "COUNT DISTINCT": f"SELECT count(DISTINCT c) n FROM ({COUNTS}) t",
    "UNION of a constant": "SELECT g, x FROM s UNION SELECT 'a', 1",
    "constant EXCEPT": "SELECT 1 AS a EXCEPT SELECT x FROM s",
    "EXCEPT ALL a constant": "SELECT x FROM s EXCEPT ALL SELECT 1 AS a",
    "INTERSECT a constant": "SELECT x FROM s INTERSECT SELECT 1 AS a",
    "groups of constants": "SELECT x, count(*) n FROM (SELECT x FROM s UNION ALL SELECT 1 UNION ALL SELECT 1) t GROUP BY x",
    "constants left join": "SELECT t.a, s.g FROM (SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 5) t LEFT JOIN s ON s.x = t.a",
    "partition by a count": f"SELECT g, count(*) OVER (PARTITION BY c) n FROM ({COUNTS}) t",
    "order by a count": f"SELECT g, rank() OVER (ORDER BY c DESC, g) n FROM ({COUNTS}) t",
    "running sum": "SELECT g, sum(x) OVER (PARTITION BY g ORDER BY x) n FROM r",
    "rank over HAVING": "SELECT g, rank() OVER (ORDER BY g) n FROM (SELECT g FROM r GROUP BY g HAVING count(*) <= 1) t",
    "sum over HAVING": (
        "SELECT g, sum(m) OVER () n FROM (SELECT g, max(x) m FROM r GROUP BY g HAVING count(*) <= 1) t"
    ),
    "rank over a left join": (
        "SELECT g, x, row_number() OVER (ORDER BY g, x) n FROM "
        "(SELECT s.g, r.x FROM s LEFT JOIN r ON s.g = r.g AND s.x = r.x) t"
    ),
    "limit": "SELECT g, x FROM r ORDER BY x DESC, g LIMIT 2",
    "DISTINCT over a limit": "SELECT DISTINCT g FROM (SELECT g, x FROM r ORDER BY x DESC, g LIMIT 2) t",
    "limit by a count": f"SELECT g FROM ({COUNTS}) t ORDER BY c DESC, g LIMIT 1",
    "offset": "SELECT g, x FROM r ORDER BY x, g LIMIT 2 OFFSET 1",
    "sum over a limit": "SELECT count(*) n, sum(x) y FROM (SELECT x FROM r ORDER BY x DESC, g LIMIT 2) t",
    "EXCEPT a limit": f"SELECT g FROM s EXCEPT SELECT g FROM ({FIRST}) t",
    "NOT IN a limit": f"SELECT g FROM s WHERE g NOT IN (SELECT g FROM ({FIRST}) t)",
    "anti join with a limit": f"SELECT s.g FROM s LEFT ANTI JOIN ({FIRST}) t ON s.g = t.g",
    "left join with a limit": f"SELECT s.g, t.x FROM s LEFT JOIN ({FIRST}) t ON s.g = t.g",
    "IN a limit": f"SELECT s.g FROM s WHERE s.g IN (SELECT g FROM ({FIRST}) t)",
    "limit UNION": f"SELECT g FROM ({FIRST}) t UNION SELECT g FROM s",
    "EXCEPT a rank": "SELECT g FROM s EXCEPT SELECT g FROM (SELECT g, rank() OVER (ORDER BY x DESC) k FROM r) t WHERE k = 1",
    "NOT IN ranks": "SELECT x FROM s WHERE x NOT IN (SELECT rank() OVER (ORDER BY x DESC) FROM r)",
    "HAVING UNION": "SELECT g FROM r GROUP BY g HAVING count(*) > 1 UNION SELECT g FROM s",
    "groups of counts UNION": (
        f"SELECT g, c FROM (SELECT c, max(g) g FROM ({COUNTS}) t GROUP BY c) u UNION SELECT g, x FROM s"
    ),
}
CHAINS = {
    "EXCEPT counts": [COUNTS, "SELECT x FROM s EXCEPT SELECT c FROM {0}"],
    "NOT IN counts": [COUNTS, "SELECT x FROM s WHERE x NOT IN (SELECT c FROM {0})"],
    "EXCEPT the first": [FIRST, "SELECT g FROM s EXCEPT SELECT g FROM {0}"],
    "anti join with the first": [FIRST, "SELECT s.g FROM s LEFT ANTI JOIN {0} t ON s.g = t.g"],
    "EXCEPT distinct counts": [COUNTS, "SELECT DISTINCT c FROM {0}", "SELECT x FROM s EXCEPT SELECT c FROM {1}"],
    "NOT IN groups of counts": [
        f"SELECT c, count(*) n FROM ({COUNTS}) t GROUP BY c",
        "SELECT x FROM s WHERE x NOT IN (SELECT n FROM {0})",
    ],
    "EXCEPT HAVING": [
        "SELECT g FROM r GROUP BY g HAVING count(*) <= 1",
        "SELECT g FROM s EXCEPT SELECT g FROM {0}",
    ],
    "left join with HAVING": [
        "SELECT g, count(*) c FROM r GROUP BY g HAVING count(*) <= 1",
        "SELECT s.g, t.c FROM s LEFT JOIN {0} t ON s.g = t.g",
    ],
    "EXCEPT nothing yet": [
        "SELECT g, count(*) c FROM r GROUP BY g HAVING count(*) > 2",
        "SELECT g FROM s EXCEPT SELECT g FROM {0}",
    ],
    "count of nothing": ["SELECT g, x FROM r WHERE x > 9", "SELECT count(*) n FROM {0}"],
    "EXCEPT a total": ["SELECT count(*) c FROM r", "SELECT x FROM s EXCEPT SELECT c FROM {0}"],
    "count of all": ["SELECT g, x FROM r", "SELECT count(*) n FROM {0}", "SELECT x FROM s EXCEPT SELECT n FROM {1}"],
    "NOT IN ranks": [
        "SELECT g, rank() OVER (ORDER BY x DESC, g) k FROM r",
        "SELECT x FROM s WHERE x NOT IN (SELECT k FROM {0} WHERE g <> 'c')",
    ],
    "EXCEPT ranks": [
        "SELECT g, count(*) c FROM r GROUP BY g HAVING count(*) <= 1",
        "SELECT g, row_number() OVER (ORDER BY g) k FROM {0}",
        "SELECT x FROM s EXCEPT SELECT k FROM {1}",
    ],
    "EXCEPT two unions": [
        f"SELECT DISTINCT c FROM ({COUNTS}) t",
        "SELECT DISTINCT c FROM (SELECT sum(x) c FROM s GROUP BY g) t",
        "SELECT c FROM {0} UNION SELECT c FROM {1}",
        "SELECT x FROM r EXCEPT SELECT c FROM {2}",
    ],
}
RECORDS = (
    {"r": [("a", 1), ("b", 1), ("b", 2), ("c", 3)], "s": [("a", 1), ("b", 2), ("c", 9)]},
    {"r": [("a", 1), ("a", 1), ("b", None), (None, 2)], "s": [("a", 2), ("b", 1), (None, 1)]},
    {"r": [("a", 2), ("b", 2)], "s": [("a", 1), ("a", 1), ("b", 0)]},
)


def cases() -> Iterator[tuple[str, dict[str, str], frozenset[str]]]:
    """Names, the queries of modules, and which plans are not known."""
    for name, text in QUERIES.items():
        yield name, {"out": text}, frozenset()
    for name, texts in CHAINS.items():
        for kind in ("made", "state", "opaque"):
            names = [*(f"{kind}{at}" for at in range(len(texts) - 1)), "out"]
            queries = {own: text.format(*names) for own, text in zip(names, texts, strict=True)}
            yield f"{name}, {kind}", queries, frozenset({"opaque0"} if kind == "opaque" else ())


def problems(run: SqlModules, of_run: bool = True) -> tuple[list[str], Counter[str]]:
    """What is said otherwise than DuckDB gives, over all deletions, and how many rows have each status."""
    found = run.graph()
    graph, tokens = found.graph, run.tokens
    nodes = {token: [int(each) for each in own] for token, own in graph.with_tokens(tokens).items()}
    sets = [gone for n in range(1, len(tokens) + 1) for gone in itertools.combinations(tokens, n)]
    request = run_deletion.RunDeletionRequest([list(each) for each in sets], "propagate")
    answers = run_deletion.delete_in_run(OpenedRun(run.run, run), request) if of_run else []
    wrong: list[str] = []
    statuses: Counter[str] = Counter()
    for at, gone in enumerate(sets):
        after = run.without(gone)
        deleted = delete(graph, [node for token in gone for node in nodes[token]])
        forms = {"graph": output_deletions(graph, found.outputs, deleted)}
        if answers:
            forms["run"] = answers[at].relations
        for form, relations in forms.items():
            for name, own in relations.items():
                rows = [row for _, row in own.rows]
                statuses.update(f"{form} {row.status}" for row in rows)
                what = f"{form} without {gone}, {name}"
                wrong += contradictions(what, rows, own.gains, own.gains_possible, after[name], tuple)
    return wrong, statuses


def main(wanted: list[str]) -> int:
    """Print what is wrong, and the share of unknown rows of each case."""
    count = 0
    of_run = "--graph" not in wanted  # the rows of the run take most of the time
    wanted = [each for each in wanted if each != "--graph"]
    for name, queries, opaque in cases():
        if wanted and not any(name.startswith(each) for each in wanted):
            continue
        total: Counter[str] = Counter()
        for records in RECORDS:
            with tempfile.TemporaryDirectory() as folder:
                wrong, statuses = problems(SqlModules(Path(folder), records, queries, opaque), of_run)
            total += statuses
            count += len(wrong)
            print(*(f"WRONG {name}: {each}" for each in wrong[:3]), sep="\n", end="\n" if wrong else "")
        shares = [f"{form} {total[f'{form} unknown']}/{_rows(total, form)}" for form in ("graph", "run")]
        print(f"{name}: unknown {', '.join(shares)}", flush=True)
    print(f"{count} wrong")
    return int(count > 0)


def _rows(total: Counter[str], form: str) -> int:
    return sum(count for status, count in total.items() if status.startswith(form))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
