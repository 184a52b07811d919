"""Extraction of real warehouses: how much is understood, and what the rest costs.

Checkouts are not part of this repository: ``python -m bench warehouses --warehouse NAME=FOLDER:DIALECT …``. One of
them, ``--bigquery-etl PATH``, has the output columns of its queries written beside them: the SQL of each
``sql/<project>/<dataset>/<table>/`` is compared with the ``schema.yaml`` there, without any schema, and once more with
all ``schema.yaml`` files as the catalog.
"""

from __future__ import annotations

import re
import resource
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.page import table
from govtool.capture.dbt.project import read_projects
from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script, read_scripts
from govtool.capture.sql.schemas.supplied import Schema, schema_from_mapping
from govtool.model import Derivation, Diagnostic
from govtool.names import fold, join_name

TITLE = "## Real warehouses"

DIALECT = "bigquery"
RELATION = "{catalog}/{schema}/{table}/query.sql"
MODES = ("replace", "append", "update")
DEFINERS = ("query.sql", "view.sql", "materialized_view.sql", "script.sql")


@dataclass(slots=True)
class Agreement:
    """Inferred output columns against those of ``schema.yaml``."""

    relations: Counter[str] = field(default_factory=Counter)
    """Relations by outcome: ``same columns, same order``, ``same columns``, ``differ``, ``not inferred``."""
    agreed: int = 0
    missing: int = 0
    """Columns of ``schema.yaml`` that were not inferred."""
    surplus: int = 0
    """Inferred columns that ``schema.yaml`` lacks."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Of missing and surplus columns: why."""
    examples: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder of SQL: a checkout, or a part of one."""

    name: str
    folder: Path
    dialect: str

    @classmethod
    def parse(cls, text: str) -> Warehouse:
        """``NAME=FOLDER:DIALECT``; raises ValueError."""
        name, _, rest = text.partition("=")
        folder, _, dialect = rest.rpartition(":")
        if not (name and folder and dialect and Path(folder).is_dir()):
            raise ValueError(f"not NAME=FOLDER:DIALECT with a folder that exists: {text}")
        return cls(name, Path(folder), dialect)


def section(bigquery_etl: Path | None, warehouses: list[Warehouse]) -> str:
    """Measure what is given, and write the section."""
    parts = [
        f"""{TITLE}

Public repositories as they are: no database, no compiled SQL, no variables but those of `dbt_project.yml`, no packages
installed; Jinja and dbt templates are rendered here. Macros of packages are missing where they are not understood
without the package, and so are the tables that nothing in the repository defines. Calls of procedures that no script
defines, and SQL that a template runs beside its statements (hooks), count as statements that are not understood; so
does a statement with an unknown macro that may read anything.
"""
    ]
    parts += [_coverage(warehouses)] if warehouses else []
    parts += [_with_schemas(bigquery_etl)] if bigquery_etl is not None else []
    return "\n".join(parts)


def _coverage(warehouses: list[Warehouse]) -> str:
    rows = []
    reasons = []
    for warehouse in warehouses:
        scripts = list(read_scripts([warehouse.folder], root=warehouse.folder))
        start = time.process_time()
        projects = read_projects([warehouse.folder], warehouse.folder)
        options = Options(dialect=warehouse.dialect, relation_from="{table}.sql", evidence=False, projects=projects)
        made = extract(scripts, options)
        seconds = time.process_time() - start
        rows.append(
            [
                warehouse.name,
                warehouse.dialect,
                f"{len(scripts):,}",
                f"{made.statements:,}",
                f"{made.understood:,} ({made.understood / max(made.statements, 1):.1%})",
                f"{made.partial:,}",
                f"{made.opaque:,}",
                f"{sum(len(d.edges) for d in made.derivations):,}",
                f"{seconds:.0f} s",
            ]
        )
        reasons.append(f"**{warehouse.name}**, {_revision(warehouse.folder)}:\n\n{_ten_reasons(made)}\n")
    head = ["", "dialect", "files", "statements", "understood", "partly", "opaque", "edges", "CPU"]
    return f"""{table(head, rows)}

The ten reasons that cost most, each statement by its worst one; names are left out of the messages:

{chr(10).join(reasons)}"""


def _ten_reasons(made: Extraction) -> str:
    shapes: Counter[tuple[str, str]] = Counter()
    for shortfall in made.shortfalls:
        shapes[shortfall.diagnostic.code, _shape(shortfall.diagnostic.message)] += 1
    total = max(len(made.shortfalls), 1)
    rows = [
        [shape.replace("|", "\\|"), code, f"{n:,}", f"{n / total:.0%}"] for (code, shape), n in shapes.most_common(10)
    ]
    return table(["why", "code", "statements", "of the rest"], rows)


def _with_schemas(checkout: Path) -> str:
    """Compare mozilla/bigquery-etl with its schema.yaml files.

    Raises:
        FileNotFoundError: ``checkout`` is no checkout of bigquery-etl.
    """
    root = checkout / "sql"
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder: is {checkout} a checkout of mozilla/bigquery-etl?")
    written = dict(written_schemas(root))
    scripts = list(read_scripts([root], root=root))
    start = time.perf_counter()
    bare = _extract(scripts, None)
    seconds = time.perf_counter() - start
    known = _extract(scripts, _catalog(written))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    results = {"without a schema": bare, "with the schema.yaml files": known}
    agreements = {name: compare(made, written) for name, made in results.items()}
    return f"""### mozilla/bigquery-etl with its schemas

Read from {_revision(checkout)}: {len(scripts):,} SQL files; {len(written):,} relations have SQL and a `schema.yaml`
that includes no fields from elsewhere. Read in {seconds:.0f} s by one process ({bare.statements / seconds:.0f}
statements/s, templates rendered), {memory:.1f} GB at most.

{_statements(results)}

Output columns, compared by name with `schema.yaml` (top level of nested fields). With the schema.yaml files as the
catalog a relation's own counts where its SQL reads it, or INSERTs into it without a column list:

{_columns(agreements)}

Where they differ, with the schemas:

{_reasons(agreements["with the schema.yaml files"])}

What was not understood, with the schemas:

{_diagnostics(known)}
"""


def written_schemas(root: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield ``(folder below root, [(column, type), …])`` for each folder with SQL and a self-contained schema.yaml."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads past the repository's own tags (``!include-field-description``)."""

    Loader.add_multi_constructor("!", lambda loader, suffix, node: None)
    for path in sorted(root.rglob("schema.yaml")):
        if not any((path.parent / name).exists() for name in DEFINERS):
            continue
        data: Any = yaml.load(path.read_text(), Loader)
        fields = data.get("fields") if isinstance(data, dict) else None
        if fields and all(isinstance(f, dict) and "name" in f for f in fields):  # others include fields of other files
            columns = [(fold(str(f["name"]), dialect=DIALECT), str(f.get("type", ""))) for f in fields]
            yield path.parent.relative_to(root).as_posix(), columns


def relation_name(folder: str) -> str:
    """The canonical name of the relation that a folder defines."""
    return join_name([fold(part, dialect=DIALECT, table=True) for part in folder.split("/")])


def _catalog(written: Mapping[str, list[tuple[str, str]]]) -> Schema:
    tables = {folder.replace("/", "."): dict(columns) for folder, columns in written.items()}
    nested: dict[str, dict[str, dict[str, dict[str, str]]]] = defaultdict(lambda: defaultdict(dict))
    for name, columns in tables.items():
        project, dataset, relation = name.split(".", 2)
        nested[project][dataset][relation] = columns
    return schema_from_mapping(nested, DIALECT)


def _extract(scripts: list[Script | Diagnostic], schema: Schema | None) -> Extraction:
    return extract(scripts, Options(dialect=DIALECT, relation_from=RELATION, schema=schema, evidence=False))


def compare(extraction: Extraction, written: Mapping[str, list[tuple[str, str]]]) -> Agreement:
    """Compare each relation's inferred columns with its schema.yaml."""
    by_folder: dict[str, list[Derivation]] = defaultdict(list)
    for derivation in extraction.derivations:
        folder = derivation.statement.file.rpartition("/")[0]
        if folder in written and derivation.mode in MODES and derivation.target == relation_name(folder):
            by_folder[folder].append(derivation)
    notes: dict[str, list[Diagnostic]] = defaultdict(list)
    for note in extraction.diagnostics:
        notes[(note.file or "").rpartition("/")[0]].append(note)
    result = Agreement()
    for folder, columns in written.items():
        _compare_one(result, folder, [name for name, _ in columns], by_folder[folder], notes[folder])
    return result


def _compare_one(
    result: Agreement, folder: str, expected: list[str], derivations: list[Derivation], notes: list[Diagnostic]
) -> None:
    found = list(dict.fromkeys(column.path for d in derivations for column in d.columns))
    missing = [name for name in expected if name not in found]
    surplus = [name for name in found if name not in expected]
    result.agreed += len(expected) - len(missing)
    result.missing += len(missing)
    result.surplus += len(surplus)
    if not derivations:
        outcome = "not inferred"
    elif missing or surplus:
        outcome = "differ"
    else:
        outcome = "same columns, same order" if found == expected else "same columns"
    result.relations[outcome] += 1
    if missing or surplus:
        reason = _reason(derivations, notes)
        result.reasons[reason] += len(missing) + len(surplus)
        result.examples.setdefault(reason, f"{folder} (missing {missing[:3]}, surplus {surplus[:3]})")


def _reason(derivations: list[Derivation], notes: list[Diagnostic]) -> str:
    codes = {note.code for note in notes if note.severity != "info"}
    for code in ("parse-error", "opaque", "template"):
        if code in codes and not derivations:
            return f"nothing inferred: {code}"
    if not derivations:
        return "nothing inferred: the files write another relation, or none"
    if not all(d.columns_complete for d in derivations):
        return "a star over relations whose columns are nowhere given"
    if len(derivations) > 1:
        return "several statements or template branches write it"
    return "the query and its schema.yaml differ"


def _revision(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h (%cs)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (
        f"at {done.stdout.strip()}" if done.returncode == 0 and done.stdout.strip() else "an export of the repository"
    )


def _statements(results: Mapping[str, Extraction]) -> str:
    head = ["", "statements", "understood", "partly", "opaque", "without lineage by nature", "edges"]
    rows = []
    for name, made in results.items():
        share = made.understood / max(made.statements, 1)
        rows.append(
            [
                name,
                f"{made.statements:,}",
                f"{made.understood:,} ({share:.1%})",
                f"{made.partial:,}",
                f"{made.opaque:,}",
                f"{made.ignored:,}",
                f"{sum(len(d.edges) for d in made.derivations):,}",
            ]
        )
    return table(head, rows)


def _columns(agreements: Mapping[str, Agreement]) -> str:
    outcomes = ("same columns, same order", "same columns", "differ", "not inferred")
    head = [
        "",
        "columns written down",
        "agreed",
        "missing",
        "surplus",
        *(f"relations: {outcome}" for outcome in outcomes),
    ]
    rows = []
    for name, found in agreements.items():
        total = found.agreed + found.missing
        rows.append(
            [
                name,
                f"{total:,}",
                f"{found.agreed:,} ({found.agreed / max(total, 1):.1%})",
                f"{found.missing:,}",
                f"{found.surplus:,}",
                *(f"{found.relations[outcome]:,}" for outcome in outcomes),
            ]
        )
    return table(head, rows)


def _reasons(agreement: Agreement) -> str:
    rows = [
        [reason, f"{count:,}", "`" + agreement.examples[reason].replace("|", "\\|") + "`"]
        for reason, count in agreement.reasons.most_common()
    ]
    return table(["reason", "columns", "such as"], rows)


def _diagnostics(made: Extraction) -> str:
    shapes: Counter[tuple[str, str]] = Counter()
    for note in made.diagnostics:
        if note.severity != "info":
            shapes[note.code, _shape(note.message)] += 1
    rows = [[code, f"{count:,}", shape.replace("|", "\\|")] for (code, shape), count in shapes.most_common(15)]
    left = sum(shapes.values()) - sum(count for _, count in shapes.most_common(15))
    if left:
        rows.append(["others", f"{left:,}", ""])
    return table(["code", "count", "message"], rows)


def _shape(message: str) -> str:
    """A message without the names in it."""
    return re.sub(r"[\w$*-]*[\w$*`\"-]+(\.[\w$*`\"-]+)+|'[^']*'|\b[a-z0-9]+_\w+\b", "…", message)[:100]
