"""A user's script over a part of its inputs, in a process of its own; nothing that it writes reaches its place.

    python -m govtool.spark.live.scripted REQUEST.json

The request names the script, the inputs with the Parquet folder that is read in place of each, and a folder for what
the script writes and for ``result.json``. Readers and writers of PySpark are redirected; whatever else the script reads
through Spark is refused by name. Tables are real ones in a catalog that ends with the process.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_READERS = ("parquet", "orc", "json", "csv", "text", "load")
_WRITERS = ("parquet", "orc", "json", "csv", "text", "save")
_RDD_READERS = (
    "textFile", "wholeTextFiles", "binaryFiles", "binaryRecords", "sequenceFile", "hadoopFile", "hadoopRDD",
    "newAPIHadoopFile", "newAPIHadoopRDD", "pickleFile",
)  # fmt: skip


class ReadRefused(Exception):
    """The script reads or writes what cannot be redirected."""


class Redirection:
    """Readers and writers of PySpark that meet the request's folders only.

    Args:
        request: ``inputs`` by name, each with ``folder`` and ``schema``; ``folder``, where everything is written.
        spark: The session.
    """

    def __init__(self, request: dict[str, Any], spark: Any) -> None:
        self.inputs: dict[str, dict[str, Any]] = request["inputs"]
        self.folder: str = request["folder"]
        self.run: str = request["run"]
        self.spark = spark
        self.writes: dict[str, list[str]] = {}
        self.refused = ""

    def install(self) -> Callable[[], None]:
        """Make the inputs' tables, and redirect the classes; return what ends the session."""
        from pyspark import SparkContext
        from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

        self._read, self._write = DataFrameReader.parquet, DataFrameWriter.parquet
        stop = SparkSession.stop
        self._make_tables()
        own_sql, own_mode = SparkSession.sql, DataFrameWriter.mode
        named: dict[str, Any] = {name: self._reading() for name in _READERS}
        self._set(DataFrameReader, {**named, **{name: self._no("jdbc") for name in ("jdbc", "xml")}})
        self._set(DataFrameWriter, {name: self._writing() for name in _WRITERS})
        own_save = DataFrameWriter.saveAsTable

        def save_as_table(writer: Any, name: str, *args: Any, **options: Any) -> None:
            self.captured(writer, name, options.get("mode") or (args[1] if len(args) > 1 else None))
            own_save(writer, name, *args, **options)

        def insert_into(writer: Any, name: str, overwrite: bool | None = None) -> None:
            self.captured(writer, name, "overwrite" if overwrite else None)

        def mode(writer: Any, value: str | None) -> Any:
            writer._govtool_mode = value or ""
            return own_mode(writer, value)

        def sql(session: Any, *args: Any, **options: Any) -> Any:
            return self.checked(own_sql(session, *args, **options))

        self._set(DataFrameWriter, {"saveAsTable": save_as_table, "insertInto": insert_into, "mode": mode})
        self._set(DataFrameWriter, {"jdbc": self._no("a database")})
        streams = {"readStream": property(self._no("a stream")), "stop": lambda session: None}
        self._set(SparkSession, {"sql": sql, **streams})
        self._set(DataFrame, {"writeTo": self._no("a table by writeTo")})
        self._set(SparkContext, {"stop": lambda context: None, **{name: self._no("an RDD") for name in _RDD_READERS}})
        return lambda: stop(self.spark)

    def read(self, places: Any) -> Any:
        """The rows that are read in place of paths.

        Raises:
            ReadRefused: One of them is no input of the run.
        """
        found = None
        for place in [places] if isinstance(places, (str, os.PathLike)) else list(places):
            one = self._one(os.fspath(place))
            found = one if found is None else found.unionByName(one)
        return found

    def _one(self, place: str) -> Any:
        name = identified(place)
        if name in self.writes:
            return self._read(self.spark.read, *self.writes[name])
        if name not in self.inputs:
            raise self._refusal(f"the script reads {place}, which run {self.run} did not read")
        return self._given(self.inputs[name])

    def captured(self, writer: Any, place: str, mode: str | None) -> None:
        """Write a DataFrame into a folder of the request's."""
        self.checked(writer._df)
        name = identified(place) if _is_path(place) else place
        folder = f"{self.folder}/written-{sum(map(len, self.writes.values()))}-{len(self.writes)}"
        self._write(writer._df.write, folder)
        before = [] if (mode or getattr(writer, "_govtool_mode", "")) == "overwrite" else self.writes.get(name, [])
        self.writes[name] = [*before, folder]

    def checked(self, frame: Any) -> Any:
        """A DataFrame that reads no file but those of the request.

        Raises:
            ReadRefused: It does.
        """
        for uri in frame.inputFiles():
            path = unquote(uri.removeprefix("file:").replace("///", "/", 1))
            if not path.startswith(f"{self.folder}/"):
                raise self._refusal(f"the script reads {uri}, which was not given to it")
        return frame

    def _reading(self) -> Callable[..., Any]:
        def read(reader: Any, *paths: Any, **options: Any) -> Any:
            given = options.get("path") or options.get("paths") or (paths[0] if len(paths) == 1 else list(paths))
            if not isinstance(given, (str, os.PathLike, list, tuple)) or not given:
                raise self._refusal("the script reads a source without a path")
            return self.read(given)

        return read

    def _writing(self) -> Callable[..., None]:
        def write(writer: Any, path: Any = None, *args: Any, **options: Any) -> None:
            self.captured(writer, os.fspath(path) if path is not None else "", options.get("mode"))

        return write

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

    def _make_tables(self) -> None:
        for name, one in self.inputs.items():
            if _is_path(name):
                continue
            *above, table = name.split(".")
            if above:
                self.spark.sql(f"CREATE DATABASE IF NOT EXISTS `{above[-1]}`")
            self._given(one).write.saveAsTable(".".join(f"`{part}`" for part in [*above[-1:], table]))

    @staticmethod
    def _set(kind: type, methods: dict[str, Any]) -> None:
        for name, method in methods.items():
            setattr(kind, name, method)


def identified(place: str) -> str:
    """The name of a path: absolute, without a scheme where it is a local one, and without a slash at its end."""
    if "://" in place and not place.startswith("file:"):
        return place.rstrip("/")
    local = unquote(place.removeprefix("file:")) if place.startswith("file:") else place
    return os.path.abspath("/" + local.lstrip("/") if place.startswith("file:") else local)


def _is_path(name: str) -> bool:
    return "/" in name or not name.replace(".", "").replace("_", "").replace("`", "").isalnum()


def _session(settings: dict[str, str], folder: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("govtool replay")
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "8",
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
    end()
    return {"writes": redirection.writes, "refused": redirection.refused, "failed": failed}


def main(place: str) -> None:
    """Run a request, and write ``result.json``."""
    request = json.loads(Path(place).read_text(encoding="utf-8"))
    result = _run(request)
    Path(request["folder"], "result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
