"""A user's script over a part of its inputs, in a process of its own; what Spark writes for it stays in one folder.

    python -m govtool.spark.live.replay.scripted REQUEST.json

The request names the script, the inputs with the Parquet folder that is read in place of each, and a folder for what
the script writes and for ``result.json``. Readers and writers of PySpark are redirected; whatever else the script reads
or writes through them is refused by name. Tables are those of a catalog that ends with the process. The process ends,
and its folder with it, when the one that started it does: its standard input is closed then.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from govtool.spark.live.records.exact import Functions, Walker
from govtool.spark.live.replay.places import ReplayPlaces, is_table, table_name, unwritten_path
from govtool.spark.live.replay.statements import CATALOGS, inserts, refused_statement, schema_of

_READERS = ("parquet", "orc", "json", "csv", "text", "load")
_WRITERS = ("parquet", "orc", "json", "csv", "text", "save")
_RDD_READERS = (
    "textFile", "wholeTextFiles", "binaryFiles", "binaryRecords", "sequenceFile", "hadoopFile", "hadoopRDD",
    "newAPIHadoopFile", "newAPIHadoopRDD", "pickleFile",
)  # fmt: skip
_RDD_WRITERS = (
    "saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile", "saveAsHadoopDataset",
    "saveAsNewAPIHadoopFile", "saveAsNewAPIHadoopDataset",
)  # fmt: skip


class ReadRefused(Exception):
    """The script reads or writes what cannot be redirected."""


class _NoCapture:
    """What ``govtool.spark.attach`` gives a script that is replayed: nothing is recorded."""

    def __getattr__(self, name: str) -> Callable[..., _NoCapture]:
        return lambda *args, **options: self

    def __enter__(self) -> _NoCapture:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class Redirection:
    """Readers and writers of PySpark that meet the request's folders only.

    Args:
        request: ``inputs``, each with ``name``, ``files``, ``folder`` and ``schema``; ``output`` with ``name`` and
            ``columns``; ``folder``, where everything is written.
        spark: The session.
    """

    def __init__(self, request: dict[str, Any], spark: Any) -> None:
        self.inputs: list[dict[str, Any]] = request["inputs"]
        self.output: dict[str, Any] = request["output"]
        self.folder: str = request["folder"]
        self.run: str = request["run"]
        self.spark = spark
        self.places = ReplayPlaces(self.inputs)
        self.writes: dict[str, list[str]] = {}
        self.plans: dict[str, list[str]] = {}
        self.functions = Functions()
        self.refused = ""
        self._tables: set[str] = set()

    def install(self) -> Callable[[], None]:
        """Make the inputs' tables, and redirect the classes; return what ends the session."""
        from pyspark import RDD, SparkContext
        from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

        if importlib.util.find_spec("pyspark.sql.classic"):
            importlib.import_module("pyspark.sql.classic.dataframe")  # PySpark 4 loads it with the first DataFrame
        self._walker = Walker(self.spark.sparkContext._gateway, str(self.spark.version))
        self.functions.patch()
        self._read, self._write = DataFrameReader.parquet, DataFrameWriter.parquet
        self._save, self._sql = DataFrameWriter.saveAsTable, SparkSession.sql
        stop = SparkSession.stop
        self._make_tables()
        readers: dict[str, Any] = {name: self._reading(getattr(DataFrameReader, name)) for name in _READERS}
        _set(DataFrameReader, {**readers, **_options(DataFrameReader), "jdbc": self._no("a database")})
        _set(DataFrameReader, {"xml": self._no("XML")})
        _set(DataFrameWriter, {**{name: self._writing() for name in _WRITERS}, **_options(DataFrameWriter)})
        _set(DataFrameWriter, {**self._table_writers(), **_mode(DataFrameWriter), "jdbc": self._no("a database")})
        _set(DataFrameWriter, {"xml": self._no("XML")})
        _set(SparkSession, {"sql": self._checked_sql(), "stop": lambda session: None})
        _set(SparkSession, {"readStream": property(self._no("a stream"))})
        for kind in _family(DataFrame):
            _set(kind, {"writeTo": self._no("a table by writeTo"), "writeStream": property(self._no("a stream"))})
            _set(kind, {"mergeInto": self._no("a table by mergeInto")})
        own_checkpoints = SparkContext.setCheckpointDir
        _set(SparkContext, {name: self._no("an RDD of files") for name in _RDD_READERS})
        _set(SparkContext, {"stop": lambda context: None})
        _set(SparkContext, {"setCheckpointDir": lambda own, _: own_checkpoints(own, f"{self.folder}/checkpoints")})
        _set(RDD, {name: self._no("an RDD's files") for name in _RDD_WRITERS})
        _set(SparkSession.Builder, _without_catalogs(SparkSession.Builder, "config"))
        _set(type(self.spark.conf), _without_catalogs(type(self.spark.conf), "set"))
        catalog = type(self.spark.catalog)
        _set(catalog, {name: self._no("a table by its place") for name in ("createTable", "createExternalTable")})
        package = sys.modules[__package__.rpartition(".")[0]]
        package.attach = lambda *args, **options: _NoCapture()  # type: ignore[attr-defined]
        return lambda: stop(self.spark)

    def read(self, places: list[str]) -> Any:
        """The rows that are read in place of paths.

        Raises:
            ReadRefused: One of them is no input of the run.
        """
        own = [folder for place in places for folder in self.writes.get(unwritten_path(place), ())]
        others = [place for place in places if unwritten_path(place) not in self.writes]
        found, problem = self.places.inputs_at(others)
        if problem:
            raise self._refusal(f"the script reads {problem}, which run {self.run} did not read")
        frames = [self._given(each) for each in found] + ([self._read(self.spark.read, *own)] if own else [])
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole

    def captured(self, frame: Any, name: str, mode: str) -> None:
        """Write a DataFrame into a folder of the request's."""
        self.checked(frame)
        folder = f"{self.folder}/written-{len(list(Path(self.folder).glob('written-*')))}"
        self._write(frame.write, folder)
        is_first = mode == "overwrite"
        self.writes[name] = [*([] if is_first else self.writes.get(name, [])), folder]
        self.plans[name] = [*([] if is_first else self.plans.get(name, [])), self._plan(frame)]

    def _plan(self, frame: Any) -> str:
        """The plan of what is written, to be compared with the recorded one; without it nothing fails."""
        found = self._walker.read(frame._jdf.queryExecution())
        return found if isinstance(found, str) else json.dumps(found)

    def checked(self, frame: Any) -> Any:
        """A DataFrame that reads no file but those of the request.

        Raises:
            ReadRefused: It does.
        """
        for uri in frame.inputFiles():
            if not unwritten_path(uri).startswith(f"{self.folder}/"):
                raise self._refusal(f"the script reads {uri}, which was not given to it")
        return frame

    def sweep(self) -> None:
        """Capture the tables that statements of SQL left."""
        for database in self.spark.catalog.listDatabases():
            for table in self.spark.catalog.listTables(database.name):
                name = f"{database.name}.{table.name}".lower()
                if not table.isTemporary and name not in self._tables:
                    self.captured(self.spark.table(f"`{database.name}`.`{table.name}`"), name, "overwrite")

    def _reading(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def read(reader: Any, *paths: Any, **options: Any) -> Any:
            given = options.get("path") or options.get("paths") or (paths[0] if len(paths) == 1 else list(paths))
            given = given or getattr(reader, "_govtool_path", "")
            if hasattr(given, "mapPartitions"):
                return own(reader, *paths, **options)  # lines that the script made itself
            places = [given] if isinstance(given, (str, os.PathLike)) else list(given)
            if not any(map(os.fspath, places)):
                raise self._refusal("the script reads a source without a path: that is not replayed")
            return self.read([os.fspath(place) for place in places])

        return read

    def _writing(self) -> Callable[..., None]:
        def write(writer: Any, path: Any = None, *args: Any, **options: Any) -> None:
            place = os.fspath(path or getattr(writer, "_govtool_path", ""))
            mode = str(options.get("mode") or getattr(writer, "_govtool_mode", ""))
            self.captured(writer._df, unwritten_path(place) if place else "(a sink without a path)", mode)

        return write

    def _table_writers(self) -> dict[str, Any]:
        def save_as_table(writer: Any, name: str, format: Any = None, mode: Any = None, *_: Any, **__: Any) -> None:
            self._save_table(writer._df, name, mode or getattr(writer, "_govtool_mode", ""))

        def insert_into(writer: Any, name: str, overwrite: bool | None = None) -> None:
            frame, columns = writer._df, self.output["columns"]
            if is_table(name, self.output["name"]) and len(columns) == len(frame.columns):
                frame = frame.toDF(*columns)  # insertInto goes by position
            append = overwrite is False or (overwrite is None and getattr(writer, "_govtool_mode", "") != "overwrite")
            self._save_table(frame, name, "append" if append else "overwrite")

        return {"saveAsTable": save_as_table, "insertInto": insert_into}

    def _save_table(self, frame: Any, name: str, mode: str) -> None:
        """Capture a table, and make it one of the catalog in memory, whatever catalog the name has."""
        table = self._qualified(name)
        self.captured(frame, table, mode)
        self._make(table, self._read(self.spark.read, *self.writes[table]))

    def _qualified(self, name: str) -> str:
        parts = table_name(name).split(".")
        return ".".join(parts[-2:]) if len(parts) > 1 else f"{self.spark.catalog.currentDatabase()}.{parts[0]}".lower()

    def _make(self, table: str, frame: Any) -> None:
        database, _, name = table.rpartition(".")
        self._sql(self.spark, f"CREATE DATABASE IF NOT EXISTS `{database}`")
        place = f"spark_catalog.`{database}`.`{name}`"
        self._sql(self.spark, f"DROP TABLE IF EXISTS {place}")
        self._save(frame.write.format("parquet"), place)
        self._tables.add(table)

    def _make_tables(self) -> None:
        for one in self.inputs:
            if one["table"]:
                parts = table_name(one["name"]).split(".")
                self._make(".".join(["default", *parts][-2:]), self._given(one))

    def _checked_sql(self) -> Callable[..., Any]:
        def sql(session: Any, text: str, *args: Any, **options: Any) -> Any:
            plan, problem = refused_statement(session, text, options)
            if problem:
                raise self._refusal(f"the script runs {problem}: that is not replayed")
            for target, query in inserts(session, plan):
                if not session.catalog.tableExists(target):
                    self._make_target(target, query)
            return self.checked(self._sql(session, text, *args, **options))

        return sql

    def _make_target(self, target: str, query: Any) -> None:
        """Make the table that an INSERT expects: the run's output with its columns, another with those of its rows."""
        from pyspark.sql.types import StructType

        known = self.output["schema"] if is_table(target, self.output["name"]) else None
        schema = known or json.loads(schema_of(self.spark, query) or "null")
        if schema:
            table = self._qualified(target)
            self._make(table, self.spark.createDataFrame([], StructType.fromJson(schema)))
            self._tables.discard(table)  # its rows are the script's own

    def _no(self, what: str) -> Callable[..., Any]:
        def refuse(*args: Any, **options: Any) -> Any:
            raise self._refusal(f"the script reads or writes {what}: that is not replayed")

        return refuse

    def _refusal(self, message: str) -> ReadRefused:
        self.refused = self.refused or message  # the script may catch the exception
        return ReadRefused(message)

    def _given(self, one: dict[str, Any]) -> Any:
        from pyspark.sql.types import StructType

        return self._read(self.spark.read.schema(StructType.fromJson(one["schema"])), one["folder"])


def _set(kind: type, methods: dict[str, Any]) -> None:
    for name, method in methods.items():
        setattr(kind, name, method)


def _family(kind: type) -> list[type]:
    """A class and those that inherit from it: PySpark 4 has a DataFrame for each kind of session."""
    below: list[type] = kind.__subclasses__()
    return [kind, *(other for each in below for other in _family(each))]


def _options(kind: Any) -> dict[str, Any]:
    """``option`` and ``options`` that note the path."""
    own_option, own_options = kind.option, kind.options

    def option(self: Any, key: str, value: Any) -> Any:
        if key.lower() == "path":
            self._govtool_path = str(value)
        return own_option(self, key, value)

    def options(self: Any, **given: Any) -> Any:
        for key, value in given.items():
            if key.lower() == "path":
                self._govtool_path = str(value)
        return own_options(self, **given)

    return {"option": option, "options": options}


def _mode(kind: Any) -> dict[str, Any]:
    own_mode = kind.mode

    def mode(self: Any, value: str | None) -> Any:
        self._govtool_mode = (value or "").lower()
        return own_mode(self, value)

    return {"mode": mode}


def _without_catalogs(kind: Any, name: str) -> dict[str, Any]:
    """A setter of options that leaves catalogs out: only the one in memory is written to."""
    own = getattr(kind, name)

    def setting(self: Any, key: Any = None, *args: Any, **options: Any) -> Any:
        if str(key).startswith(CATALOGS):
            return self
        if isinstance(options.get("map"), dict):
            options["map"] = {k: v for k, v in options["map"].items() if not str(k).startswith(CATALOGS)}
        return own(self, *(() if key is None else (key,)), *args, **options)

    return {name: setting}


def _session(settings: dict[str, str], folder: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("govtool replay")
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **{f"spark.sql.parquet.datetimeRebaseModeIn{way}": "CORRECTED" for way in ("Read", "Write")},
    }
    for name, value in {**own, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _run(request: dict[str, Any]) -> dict[str, Any]:
    spark = _session(request["settings"], request["folder"])
    redirection = Redirection(request, spark)
    end = redirection.install()
    failed = ""
    script = os.path.abspath(request["script"])
    sys.argv = [script, *request["arguments"]]
    sys.path.insert(0, os.path.dirname(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        failed = "" if error.code in (None, 0) else f"it ended with {error.code}"
    except Exception as error:
        failed = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    if not (failed or redirection.refused):
        redirection.sweep()
    end()
    return {
        "writes": redirection.writes,
        "plans": redirection.plans,
        "spark": str(spark.version),
        "functions": redirection.functions.fresh(),
        "refused": redirection.refused,
        "failed": failed,
    }


def _end_with_starter(folder: str) -> threading.Lock:
    """End this process, Spark's and the folder when standard input is closed: the one that started it has ended.

    Returns:
        A lock that is held from then on: the main thread must not end before the folder is removed.
    """
    ending = threading.Lock()
    held = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the script has none of it

    def wait() -> None:
        while os.read(held, 1):
            pass
        ending.acquire()
        try:
            _kill_java()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    return ending


def _kill_java() -> None:
    context = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    gateway = getattr(getattr(context, "SparkContext", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def main(place: str) -> None:
    """Run a request, and write ``result.json``."""
    request = json.loads(Path(place).read_text(encoding="utf-8"))
    ending = _end_with_starter(request["folder"])
    try:
        result = _run(request)
        Path(request["folder"], "result.json").write_text(json.dumps(result), encoding="utf-8")
    finally:
        ending.acquire()


if __name__ == "__main__":
    main(sys.argv[1])
