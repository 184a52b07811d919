"""The digest of a reader: it follows the code that decides the answer, and no other code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from modules import PACKAGE, closure, modules

from govtool.app.ingest import reader_digest as module
from govtool.app.ingest.reader_digest import READERS, files, reader_digest

AFTER = {
    "answers": "counts and results, as the ingest reports them",
    "app/project/aliases.py": "renames when the payload is committed; the key has a digest of the aliases of its own",
    "app/coverage/sources.py": "counts what was read, for the commit's summary",
    "app/ingest/payload.py": "compares keys and commits",
    "app/project/path_root.py": "renames when the payload is committed, and when events are exported",
    "app/ingest/reader_digest.py": "makes the key",
    "app/project/user.py": "the author of a commit",
    "app/project/spark_session.py": "the session of the engine that reads a log",
    "app/project/sources.py": "names the source, which is part of the key",
    "config.py": "settings reach a reader as options, which are part of the key",
    "clock.py": "the time of a commit",
    "arrays/threads.py": "how many processes read",
    "release.py": "the version, which is part of the key",
    "store": "keeps what was read",
    "wording.py": "words of the report",
}
"""What readers import and what does not decide the answer: it runs before or after the reader."""

LIBRARIES = {
    "pyarrow": "carries tables in memory and on disk",
    "numpy": "carries arrays in memory",
    "obstore": "carries the store's objects",
    "duckdb": "a database that a catalog is read from",
    "psycopg": "a database that a catalog is read from",
    "pyspark": "a database that a catalog is read from; the engine of logs",
    "sqlalchemy": "a database that a catalog is read from",
}
"""Libraries that hand on data as it is: the key has the data itself."""

DISTRIBUTIONS = {"re2": "google-re2", "yaml": "pyyaml"}

STARTS = {
    "sql": ("app/ingest/sql_options.py", "capture/sql/extract.py"),
    "explained": ("app/ingest/sql_options.py", "app/ingest/postgres_explain.py", "capture/sql/extract.py"),
    "catalog": ("app/ingest/catalog.py",),
    "dbt": ("app/ingest/dbt.py",),
    "log": ("app/ingest/logs/ingest.py",),
    "openlineage": ("app/ingest/openlineage.py",),
    "prov": ("app/ingest/prov.py",),
    "spark": ("app/ingest/spark.py",),
}
"""Where each kind of ingest begins."""

NOT_READ = {
    "sql": ("app/ingest/postgres_explain.py", "capture/catalog"),  # only with a catalog: then it is "explained"
    "dbt": ("app/ingest/postgres_explain.py", "capture/catalog"),
    "log": ("app/ingest/postgres_explain.py", "capture/catalog"),
    "openlineage": ("app/ingest/postgres_explain.py", "capture/catalog"),
    "prov": ("app/ingest/sql_options.py",),  # names of files only
    "spark": ("app/ingest/sql_options.py",),
}
"""What a kind of ingest imports by way of a module of which it uses another part."""


def test_every_kind_has_a_start():
    assert STARTS.keys() == READERS.keys()


@pytest.mark.parametrize("kind", READERS)
def test_the_digest_covers_what_the_reader_imports(kind):
    outside = set(files((*AFTER, *NOT_READ.get(kind, ()))))
    hashed = set(files(READERS[kind].parts))
    found, libraries = closure([PACKAGE / start for start in STARTS[kind]], stop=outside - hashed)
    empty = {file for file in found if file.name == "__init__.py" and "import" not in file.read_text(encoding="utf-8")}
    assert sorted(found - hashed - empty) == []
    assert {DISTRIBUTIONS.get(name, name) for name in libraries - LIBRARIES.keys()} <= set(READERS[kind].libraries)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "govtool"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def changed(package: Path, name: str) -> set[str]:
    """The kinds of ingest whose digest changes with a file."""
    before = {kind: reader_digest.__wrapped__(kind, package) for kind in READERS}
    file = package / name
    text = file.read_bytes()
    file.write_bytes(text + b"\n# a comment\n")
    try:
        return {kind for kind in READERS if reader_digest.__wrapped__(kind, package) != before[kind]}
    finally:
        file.write_bytes(text)


SQL = {"sql", "explained", "catalog", "dbt", "log", "openlineage"}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("capture/spark/build.py", {"spark"}),
        ("capture/spark/plantext/operators.py", {"spark"}),
        ("capture/logs/databricks.py", {"log", "openlineage", "prov"}),
        ("capture/prov/document.py", {"prov"}),
        ("capture/catalog/postgres.py", {"explained", "catalog"}),
        ("capture/openlineage/events.py", {"openlineage", "prov", "spark"}),
        ("capture/openlineage/identity.py", READERS.keys()),  # names of paths
        ("capture/sql/walk/expressions/functions.py", SQL),
        ("capture/sql/scripts/tsql.py", SQL),
        ("capture/sql/templates/jinja.py", SQL),
        ("capture/dbt/project.py", SQL),
        ("functions/table.py", READERS.keys()),
        ("model/kinds.py", READERS.keys()),
        ("names.py", READERS.keys()),
        ("cli/main.py", set()),
        ("render/impact.py", set()),
        ("policy/rules/check.py", set()),
        ("query/changes/impact.py", set()),
    ],
)
def test_a_change_reads_again_what_it_decides(package, name, kinds):
    assert changed(package, name) == set(kinds)


@pytest.mark.parametrize("library", ["sqlglot", "jinja2", "pyyaml"])
def test_another_version_of_a_parser_is_another_reader(monkeypatch, library):
    before = reader_digest.__wrapped__("sql")
    known = module.version
    monkeypatch.setattr(module, "version", lambda name: "0.0" if name == library else known(name))
    assert reader_digest.__wrapped__("sql") != before


def test_a_moved_module_is_another_reader(package):
    before = reader_digest.__wrapped__("sql", package)
    file = package / "capture/sql/syntax/marks.py"
    other = file.rename(file.with_name("marks_.py"))
    try:
        assert reader_digest.__wrapped__("sql", package) != before
    finally:
        other.rename(file)


def test_a_library_that_is_not_installed_is_no_error(monkeypatch):
    def missing(name: str) -> str:
        raise module.PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    assert reader_digest.__wrapped__("prov")


def test_sql_reads_a_fraction_of_the_package():
    assert len(list(files(READERS["sql"].parts))) < len(modules()) / 3
