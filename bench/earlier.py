"""Extraction beside that of an earlier checkout: edges, bytes and time of the same texts.

``git worktree add --detach ../earlier COMMIT``, then ``python -m bench earlier --earlier ../earlier``. Each measurement
is a process that runs this file with the modules of one of the two checkouts, so it uses only what both of them have.
"""

from __future__ import annotations

import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.corpora import Corpus

TITLE = "## Extraction beside an earlier version"
ROUNDS = 3
ROOT = Path(__file__).resolve().parents[1]
FORMS = ("all", "without places", "without references and places")
"""What a store holds of derivations: all, or only what earlier versions held, too."""
KINDS = {"lineage": "lineage", "ingest": "ingest", "no places": "ingest"}
"""Measurements, each with that of the earlier version that it is compared with."""
_Run = dict[str, Any]
"""What a process measured."""


def section(earlier: Path, checkout: Path | None = None, rounds: int = ROUNDS) -> str:
    """Measure, and write the section.

    Args:
        earlier: A checkout of the earlier version.
        checkout: Of mozilla/bigquery-etl, whose queries are read, too.
        rounds: Of each measurement.
    """
    from bench.compiled import compiled
    from bench.corpora import bigquery_etl, shop, tpc_ds, tpc_h
    from bench.page import table
    from govtool.build_form import COMPILED, PURE

    corpora = [tpc_ds(), tpc_h(), *shop(), *([] if checkout is None else [bigquery_etl(checkout)])]
    with tempfile.TemporaryDirectory() as work:
        both = (compiled(Path(work, "earlier"), earlier), compiled(Path(work, "now")))
        folders = {PURE: (earlier, ROOT), COMPILED: both}
        found = {wanted: [_in_turn(corpus, pair, rounds) for corpus in corpora] for wanted, pair in folders.items()}
    commit = subprocess.run(
        ["git", "-C", str(earlier), "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    kept = [_kept(corpus.name, both) for corpus, both in zip(corpora, found[PURE], strict=True)]
    head = ["texts", "edges", "references", "bytes", "… without places", "… nor references"]
    cost = [
        [wanted, name, *(added.get(kind, "") for kind in KINDS)]
        for wanted, measured in found.items()
        for name, added in _costs([corpus.name for corpus in corpora], measured)
    ]
    return f"""{TITLE}

The same texts, read by this version and by {commit}, before references, places of expressions and opaque edges were
kept. "Edges" and "bytes" are those of all derivations, as the version writes them; this one leaves out Arrow's copy of
the schema (4 KB a fragment) and dictionaries of what does not repeat.

{table(head, kept)}

The seconds that were added, as a share of the time that `sqlglot.parse` takes for the same texts: without the texts of
statements (`govtool lineage`), with them (`govtool ingest`), and with them but without places. "compiled" is what a
wheel holds, "pure Python" an editable install. Processes of their own, in turn; medians of {rounds} rounds, CPU time;
goal: 3%. What other changes since then cost or save is in all of them.

{table(["extractor", "texts", "lineage", "with evidence", "… without places"], cost)}
"""


def _in_turn(corpus: Corpus, pair: tuple[Path, Path], rounds: int) -> tuple[list[_Run], list[_Run]]:
    """What the processes of both versions measured, the earlier one first."""
    given = json.dumps([corpus.dialect, corpus.texts, corpus.schema])
    before, now = pair
    found: tuple[list[_Run], list[_Run]] = ([], [])
    for number in range(rounds + 1):
        for folder, runs in zip((before, now), found, strict=True):
            one = _measured(folder, given)
            if number:  # the first writes bytecode
                runs.append(one)
    return found


def _costs(names: list[str], measured: list[tuple[list[_Run], list[_Run]]]) -> Iterator[tuple[str, dict[str, str]]]:
    """The share of a parse that was added for each corpus, and for all of them."""
    sums: dict[str, float] = {}
    for name, (before, now) in zip(names, measured, strict=True):
        seconds = {
            "parse": statistics.median(one["seconds"]["parse"] for one in [*before, *now]),
            **{kind: _median(now, kind) - _median(before, earlier) for kind, earlier in KINDS.items()},
        }
        for kind, spent in seconds.items():
            sums[kind] = sums.get(kind, 0.0) + spent
        yield name, _shares(seconds)
    yield "all together", _shares(sums)


def _median(runs: list[_Run], kind: str) -> float:
    found: float = statistics.median([one["seconds"].get(kind, math.nan) for one in runs])
    return found


def _shares(seconds: dict[str, float]) -> dict[str, str]:
    found = {kind: seconds[kind] / seconds["parse"] for kind in KINDS}
    return {kind: "" if math.isnan(share) else f"{share:+.1%}" for kind, share in found.items()}


def _measured(folder: Path, given: str) -> _Run:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-P", str(Path(__file__).resolve())]
    done = subprocess.run(command, input=given, env=environment, check=True, capture_output=True, text=True)
    measured: _Run = json.loads(done.stdout)
    if Path(measured.pop("from")).parents[1] != folder.resolve():
        raise RuntimeError(f"measured another version than that of {folder}")
    return measured


def _kept(name: str, both: tuple[list[_Run], list[_Run]]) -> list[str]:
    """What the graph holds of a corpus, beside what it held."""
    old, new = both[0][0], both[1][0]
    return [
        name,
        f"{old['edges']:,} → {new['edges']:,} ({new['edges'] / old['edges'] - 1:+.1%})",
        f"{new['references']:,}",
        f"{old['bytes']['all']:,} → {new['bytes']['all']:,} ({new['bytes']['all'] / old['bytes']['all'] - 1:+.1%})",
        *(f"{new['bytes'][form] / old['bytes']['all'] - 1:+.1%}" for form in FORMS[1:]),
    ]


# ---- in a process of its own, with the modules of either version --------------------------------------------------


def measure(dialect: str, texts: list[str], schema: dict[str, Any]) -> dict[str, Any]:
    """Read texts, and measure it."""
    import sqlglot

    import govtool
    from govtool.build_form import PURE, form
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script

    scripts = [Script(f"{number}.sql", text) for number, text in enumerate(texts)]
    known = _schema(schema, dialect) if schema else None

    def read(*, evidence: bool) -> Any:
        return extract(scripts, Options(dialect=dialect, schema=known, evidence=evidence))

    runs: dict[str, Callable[[], Any]] = {
        "parse": lambda: [sqlglot.parse(text, read=dialect) for text in texts],
        "lineage": lambda: read(evidence=False),
        "ingest": lambda: read(evidence=True),
    }
    seconds = {name: _seconds(run) for name, run in runs.items()}
    with_places = read(evidence=True)
    if form() == PURE:  # a compiled class cannot be changed
        seconds["no places"] = _seconds(_without_places(runs["ingest"]))
    derivations = with_places.derivations
    return {
        "from": govtool.__file__,
        "seconds": seconds,
        "edges": sum(len(one.edges) for one in derivations),
        "references": sum(len(getattr(one, "references", ())) for one in derivations),
        "bytes": {form: _bytes(derivations, form) for form in FORMS},
    }


def _schema(schema: dict[str, Any], dialect: str) -> Any:
    try:
        from govtool.capture.sql.schemas.supplied import schema_from_mapping
    except ModuleNotFoundError:  # where it was earlier
        from govtool.capture.sql.schema import schema_from_mapping  # type: ignore[import-untyped,no-redef]
    return schema_from_mapping(schema, dialect)


def _without_places(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same without places of expressions; as it is where the version has none."""
    try:
        from govtool.capture.sql.resolve.batch import Batch
    except ImportError:
        return run
    if not hasattr(Batch, "_place"):
        return run

    def without() -> Any:
        place = Batch._place
        Batch._place = lambda *_: None  # type: ignore[method-assign]
        try:
            return run()
        finally:
            Batch._place = place  # type: ignore[method-assign]

    return without


def _seconds(run: Callable[[], Any]) -> float:
    """The least of three runs behind one that warms up, CPU time."""
    run()
    taken = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def _bytes(derivations: list[Any], form: str) -> int:
    from govtool.model.columnar import encode

    kept = derivations
    if form != "all" and hasattr(derivations[0].statement, "places"):
        kept = [one._replace(statement=one.statement._replace(places=None)) for one in kept]
    if form == FORMS[2] and hasattr(derivations[0], "references"):
        kept = [one._replace(references=()) for one in kept]
    return len(encode(kept))


if __name__ == "__main__":
    print(json.dumps(measure(*json.load(sys.stdin))))
