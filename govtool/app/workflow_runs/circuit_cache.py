"""Circuits of runs in the local cache, so that a second question about a run does not annotate it again.

A circuit is kept by the content that it was made of: the run with its files, the relations that it is about, and the
source of what annotates. Files are compared with the run each time. Only circuits in DuckDB are kept: tables in Spark
stay on its cluster.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import IntegrityError, StoreError

if TYPE_CHECKING:
    from govtool.model.workflow_run import WorkflowRun
    from govtool.records.plan.nodes import Session
    from govtool.workflow.modules.run_circuit import RunCircuit
    from govtool.workflow.modules.run_tuples import RunFiles

_CIRCUIT, _TABLES = "circuit", "tables.duckdb"
_PARTS = ("arrays", "functions", "model", "records", "workflow")
"""The folders of the modules that decide a circuit, and the graph of a run."""


def cached_circuit(
    cache_id: str,
    run: WorkflowRun,
    files: RunFiles,
    paths: Sequence[str],
    session: Session,
    build: Callable[[], RunCircuit],
) -> RunCircuit:
    """The circuit of some relations of a run, from the cache if it is there.

    Args:
        cache_id: The store's part of the cache.
        run: The run.
        files: Its plans and rows.
        paths: The relations.
        session: The recorded session that the plans ran in.
        build: Makes the circuit.

    Raises:
        UsageError: A file has changed since the run (``usage.changed``).
    """
    if importlib.util.find_spec("duckdb") is None:  # then Spark evaluates plans
        return build()
    import pickle

    import duckdb

    from govtool.model.workflow_run import run_text
    from govtool.store.cache import cache_dir, lookup, publish

    key = hashlib.sha256(
        "\n".join((code_digest(), duckdb.__version__, run_text(run), *sorted(paths))).encode()
    ).hexdigest()
    directory = cache_dir(cache_id, f"{key}-circuit")
    if lookup(directory):
        try:
            return _opened(directory, run, files, session)
        except (IntegrityError, OSError, duckdb.Error):
            _discard(directory)
    made = build()
    if hasattr(made.tables.executor, "connection"):
        # The cache is a help, not a need: a full disk, or values that cannot be written, end no question.
        with contextlib.suppress(StoreError, OSError, duckdb.Error, pickle.PicklingError, TypeError):
            publish(directory, lambda folder: _fill(folder, made))
    return made


@lru_cache
def code_digest() -> str:
    """A digest of the code that decides circuits and graphs, by sizes and times of its modules: reading all is slow."""
    from govtool.app.ingest.reader_digest import files
    from govtool.release import __version__

    digest = hashlib.sha256(__version__.encode())
    for file in files(_PARTS):
        facts = file.stat()
        digest.update(f"\n{file}\0{facts.st_size}\0{facts.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _fill(folder: Path, made: RunCircuit) -> None:
    from govtool.records.execute.duck_tables import save_tables
    from govtool.workflow.storage.circuits import StoredCircuit, pack_circuit

    executor: Any = made.tables.executor
    stored = StoredCircuit(
        made.circuit, dict(made.relations), dict(made.tokens.starts), dict(made.coarse), made.inexact
    )  # fmt: skip
    data, names = pack_circuit(stored, made.tables)
    save_tables(executor, names, folder / _TABLES)
    (folder / _CIRCUIT).write_bytes(data)


def _opened(directory: Path, run: WorkflowRun, files: RunFiles, session: Session) -> RunCircuit:
    from govtool.app.workflow_runs.run_graph import require_unchanged
    from govtool.records.execute.duck_tables import open_tables
    from govtool.workflow.modules.run_circuit import RunCircuit, source_tokens
    from govtool.workflow.storage.circuits import unpack_circuit

    executor = open_tables(session, directory / _TABLES)
    try:
        data = (directory / _CIRCUIT).read_bytes()
        stored, tables = unpack_circuit(data, executor, lambda path: files.rows(run.relations[path]))
        if not stored.relations.keys() <= run.relations.keys():
            raise IntegrityError("a circuit is that of another run", code="store.integrity")
        for path in stored.relations:
            require_unchanged(run.relations[path])
    except BaseException:
        executor.connection.close()  # its file may be discarded now
        raise
    return RunCircuit(
        stored.circuit, tables, stored.relations, source_tokens(stored.relations), stored.coarse, stored.inexact,
        None, files,
    )  # fmt: skip


def _discard(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
