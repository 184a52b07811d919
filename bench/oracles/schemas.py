"""Output columns of TPC-DS and TPC-H as DuckDB gives them, beside those of the extractor."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlglot

from bench.corpora import Corpus, tpc_ds, tpc_h
from bench.oracles.compare import plain
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping

_TYPES = {"string": "varchar"}


@dataclass
class Names:
    """The outcome for one corpus."""

    queries: int = 0
    different: dict[int, str] = field(default_factory=dict)
    """By number of the query: ours and DuckDB's, or DuckDB's error."""


def compare_names() -> dict[str, Names]:
    """Compare the names and the order of all output columns, by corpus."""
    return {corpus.name: _compare(corpus) for corpus in (tpc_ds(), tpc_h())}


def _compare(corpus: Corpus) -> Names:
    import duckdb

    schema = schema_from_mapping(corpus.schema, "duckdb")
    found = Names()
    with duckdb.connect() as connection:
        for table, columns in corpus.schema.items():
            listed = ", ".join(
                f"{name} {'date' if name.endswith('date') else _TYPES.get(type_, type_)}"
                for name, type_ in columns.items()
            )
            connection.execute(f"CREATE TABLE {table} ({listed})")
        for number, text in enumerate(corpus.texts, 1):
            query = sqlglot.parse_one(text, read="postgres").sql("duckdb")
            found.queries += 1
            extraction = extract([Script("query.sql", query)], Options(dialect="duckdb", schema=schema, evidence=False))
            ours = [plain(column.path) for d in extraction.derivations for column in d.columns]
            try:
                theirs = [row[0] for row in connection.execute(f"DESCRIBE {query}").fetchall()]
            except duckdb.Error as error:
                found.different[number] = str(error).split("\n")[0]
                continue
            # A column without a name is named after the text of its expression.
            if len(ours) != len(theirs) or any(
                mine not in (f"_c{position}", name.lower())
                for position, (mine, name) in enumerate(zip(ours, theirs, strict=True))
            ):
                found.different[number] = f"{ours} instead of {theirs}"
    return found
