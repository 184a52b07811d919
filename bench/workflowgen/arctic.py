"""Arctic stations: each records a measurement, and hands on the lowest temperature that it knows of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import govtool
from bench.workflowgen.family import OutputRow, Spec, read_parquet, write_parquet
from govtool.workflow.modules.definition import Module
from govtool.workflow.modules.workflow import Workflow

VARIABLES = ("Temp", "Pressure", "Humidity", "Wind", "Clouds", "Snow")
"""What a station measures; temperatures in tenths of a degree."""
_OBSERVED = "Year int, Month int, " + ", ".join(f"{name} int" for name in VARIABLES)
_QUERY = "Year int, Month int"
_MIN = "Station int, Temp int"
SELECTIVITIES = ("all", "season", "month", "year")
TOPOLOGIES = ("parallel", "serial", "dense")


# ---- the queries, shared by all arms --------------------------------------------------------------------------------


def selected(observed: Any, query: Any, selectivity: str) -> Any:
    """The observations that a query is about."""
    from pyspark.sql import functions as f

    wanted = query.select(f.col("Year").alias("QueryYear"), f.col("Month").alias("QueryMonth"))
    conditions = {
        "all": f.lit(True),
        "season": _season(f.col("Month")) == _season(f.col("QueryMonth")),
        "month": f.col("Month") == f.col("QueryMonth"),
        "year": f.col("Year") == f.col("QueryYear"),
    }
    return observed.crossJoin(wanted).where(conditions[selectivity])


def _season(month: Any) -> Any:
    """DJF is 0, MAM 1, JJA 2, SON 3."""
    from pyspark.sql import functions as f

    return f.floor((month % 12) / 3)


def lowest(station: int, observed: Any, query: Any, selectivity: str, received: Sequence[Any]) -> Any:
    """The lowest temperature of a station and of those before it; one row, NULL where nothing is selected."""
    from pyspark.sql import functions as f

    known = selected(observed, query, selectivity).select("Temp")
    for other in received:
        known = known.unionAll(other.select("Temp"))
    return known.agg(f.min("Temp").alias("Temp")).select(f.lit(station).alias("Station"), "Temp")


def measured(measures: Any, station: int) -> Any:
    """The measurement of a station, as an observation."""
    from pyspark.sql import functions as f

    return measures.where(f.col("Station") == station).select("Year", "Month", *VARIABLES)


def overall(received: Sequence[Any]) -> Any:
    """The lowest temperature of all."""
    from pyspark.sql import functions as f

    first, *others = (each.select("Temp") for each in received)
    for other in others:
        first = first.unionAll(other)
    return first.agg(f.min("Temp").alias("Temp"))


# ---- modules --------------------------------------------------------------------------------------------------------


@govtool.module("M_in", ["Query", "Measures"], outputs=["Question", "Measured"])
def receive(query: Any, measures: Any) -> Mapping[str, Any]:
    """Hand the query and the measurements to the stations."""
    return {"Question": query, "Measured": measures}


def station_module(station: int, above: Sequence[int], selectivity: str) -> Module:
    """The module of a station that receives from others."""

    @govtool.module(
        f"M_station{station}",
        ["Question", "Measured", *(f"MinTemp_{other}" for other in above)],
        {"Observed": _OBSERVED},
        {f"MinTemp_{station}": _MIN},
    )
    def observe(question: Any, measures: Any, *rest: Any) -> Mapping[str, Any]:
        *received, observed = rest
        grown = observed.unionAll(measured(measures, station))
        return {"Observed": grown, f"MinTemp_{station}": lowest(station, grown, question, selectivity, received)}

    return observe


def out_module(above: Sequence[int]) -> Module:
    """The module that receives from the last stations."""

    @govtool.module("M_out", [f"MinTemp_{station}" for station in above], outputs=["Overall"])
    def report(*received: Any) -> Any:
        return overall(received)

    return report


def above_each(count: int, topology: str, fan: int) -> tuple[dict[int, list[int]], list[int]]:
    """The stations before each station, and those before the end."""
    stations = list(range(1, count + 1))
    if topology == "parallel":
        return {station: [] for station in stations}, stations
    size = 1 if topology == "serial" else fan
    layers = [stations[start : start + size] for start in range(0, count, size)]
    above: dict[int, list[int]] = {}
    for number, layer in enumerate(layers):
        above.update({station: layers[number - 1] if number else [] for station in layer})
    return above, layers[-1]


def workflow(count: int, topology: str, fan: int, selectivity: str) -> Workflow:
    """The workflow of so many stations."""
    above, last = above_each(count, topology, fan)
    nodes: dict[str, Module] = {"in": receive}
    edges: list[tuple[str, str, list[str]]] = []
    for station, others in above.items():
        nodes[f"station{station}"] = station_module(station, others, selectivity)
        edges.append(("in", f"station{station}", ["Question", "Measured"]))
        edges += [(f"station{other}", f"station{station}", [f"MinTemp_{other}"]) for other in others]
    nodes["out"] = out_module(last)
    edges += [(f"station{station}", "out", [f"MinTemp_{station}"]) for station in last]
    keep = {f"station{station}": [f"MinTemp_{station}"] for station in above}
    return Workflow("arctic", nodes, edges, keep=keep)


# ---- the family -----------------------------------------------------------------------------------------------------


class ArcticFamily:
    """See ``Family``."""

    name = "arctic"

    def flow(self, spec: Spec) -> Workflow:
        """The workflow."""
        return workflow(int(spec["n"]), spec["topology"], int(spec.get("fan") or 1), spec["selectivity"])

    def write(self, spec: Spec, folder: Path, without: Collection[str] = ()) -> None:
        """Write inputs and initial state, but for the rows of some tokens."""
        import pyarrow as pa

        observed = dict.fromkeys(("Year", "Month", *VARIABLES), pa.int32())
        for station in range(1, int(spec["n"]) + 1):
            rows = spec["history"].get(str(station), ())
            kept = [_padded(row[1:]) for row in rows if row[0] not in without]
            write_parquet(folder / "state" / f"M_station{station}.Observed.parquet", observed, kept)
        for execution, given in enumerate(spec["execs"], 1):
            token, year, month = given["query"]
            place = folder / str(execution)
            query = [(year, month)] if token not in without else []
            measures = [
                (int(station), *_padded((year, month, *row[1:])))
                for station, row in given["measure"].items()
                if row[0] not in without
            ]
            write_parquet(place / "Query.parquet", dict.fromkeys(("Year", "Month"), pa.int32()), query)
            write_parquet(place / "Measures.parquet", {"Station": pa.int32(), **observed}, measures)

    def records(self, spec: Spec) -> dict[str, list[str]]:
        """See ``Family``."""
        found = {
            f"state/M_station{station}.Observed.parquet": [row[0] for row in rows]
            for station, rows in spec["history"].items()
        }
        for execution, given in enumerate(spec["execs"], 1):
            found[f"{execution}/Query.parquet"] = [given["query"][0]]
            found[f"{execution}/Measures.parquet"] = [row[0] for row in given["measure"].values()]
        return found

    def rows(self, execution: int, relations: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[OutputRow]:
        """``minTemp`` by station, and ``overall``."""
        stations = [
            OutputRow(execution, "minTemp", (row["Station"],), row["Temp"])
            for name, rows in relations.items()
            if name.startswith("MinTemp_")
            for row in rows
        ]
        return [*stations, *(OutputRow(execution, "overall", (), row["Temp"]) for row in relations["Overall"])]

    def stops(self, rows: Sequence[OutputRow]) -> bool:
        """All executions run."""
        return False

    def by_hand(self, spark: Any, spec: Spec, inputs: Path, folder: Path) -> ArcticByHand:
        """Plain PySpark."""
        return ArcticByHand(spark, spec, inputs, folder)


def _padded(row: Sequence[int]) -> tuple[int, ...]:
    """A row of observations; variables that a spec does not have are 0."""
    return (*row, *(0,) * (2 + len(VARIABLES) - len(row)))


class ArcticByHand:
    """The program without modules: observations are appended to, minima are written."""

    def __init__(self, spark: Any, spec: Spec, inputs: Path, folder: Path) -> None:
        self._spark = spark
        self._inputs = inputs
        self._folder = folder
        self._selectivity = spec["selectivity"]
        self._above, self._last = above_each(int(spec["n"]), spec["topology"], int(spec.get("fan") or 1))
        for file in sorted((inputs / "state").glob("*.parquet")):
            target = folder / "state" / file.stem
            target.mkdir(parents=True)
            (target / "part-0.parquet").write_bytes(file.read_bytes())

    def __call__(self, execution: int) -> dict[str, list[dict[str, Any]]]:
        """Run one execution."""
        read = self._spark.read.parquet
        query = read(str(self._inputs / str(execution) / "Query.parquet"))
        measures = read(str(self._inputs / str(execution) / "Measures.parquet"))
        place = self._folder / str(execution)
        minima: dict[int, Any] = {}
        for station, above in self._above.items():
            state = str(self._folder / "state" / f"M_station{station}.Observed")
            measured(measures, station).write.mode("append").parquet(state)
            own = lowest(station, read(state), query, self._selectivity, [minima[other] for other in above])
            own.write.parquet(str(place / f"MinTemp_{station}"))
            minima[station] = read(str(place / f"MinTemp_{station}"))
        overall([minima[station] for station in self._last]).write.parquet(str(place / "Overall"))
        names = [*(f"MinTemp_{station}" for station in self._above), "Overall"]
        return {name: read_parquet(place / name) for name in names}
