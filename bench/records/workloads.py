"""Titian's workloads as DataFrame programs over Parquet: grep, word count, and PigMix L1 to L7 and L11."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[str], "DataFrame"]
NOON = 43_200


@dataclass(frozen=True, slots=True)
class Workload:
    """A program.

    Attributes:
        name: Titian's or PigMix's name of it.
        reads: The tables that it reads.
        key: The column of its output by which a result is chosen for a trace.
        build: Makes its result from a function that opens a table.
    """

    name: str
    reads: tuple[str, ...]
    key: str
    build: Callable[[Read], DataFrame]


def _grep(read: Read) -> DataFrame:
    return read("text").where("value LIKE '%ab%ba%'")


def _word_count(read: Read) -> DataFrame:
    from pyspark.sql import functions as F

    split = read("text").select(F.explode(F.split("value", " ")).alias("word"))
    return split.groupBy("word").agg(F.count("*").alias("n"))


def _l1(read: Read) -> DataFrame:
    """Scans that look into a map and flatten a bag."""
    from pyspark.sql import functions as F

    views = read("page_views").select("user", "action", "page_info", F.explode("page_links").alias("link"))
    header = F.when(F.col("action") == 1, F.col("page_info")["a"]).otherwise(F.col("link")["b"])
    return views.select("user", header.alias("header")).groupBy("user").agg(F.count("*").alias("n"))


def _l2(read: Read) -> DataFrame:
    """A join with a small table."""
    views = read("page_views").select("user", "estimated_revenue")
    power = read("power_users").select("name")
    return views.join(power, views["user"] == power["name"])


def _l3(read: Read) -> DataFrame:
    """A join with a large table, and a group-by."""
    from pyspark.sql import functions as F

    views = read("page_views").select("user", "estimated_revenue")
    people = read("users").select("name")
    joined = views.join(people, views["user"] == people["name"])
    return joined.groupBy("name").agg(F.sum("estimated_revenue").alias("revenue"))


def _l4(read: Read) -> DataFrame:
    """A distinct within groups."""
    from pyspark.sql import functions as F

    return read("page_views").groupBy("user").agg(F.countDistinct("action").alias("actions"))


def _l5(read: Read) -> DataFrame:
    """An anti-join."""
    views, people = read("page_views").select("user"), read("users").select("name")
    return views.join(people, views["user"] == people["name"], "left_anti").distinct()


def _l6(read: Read) -> DataFrame:
    """A group-by of many groups."""
    from pyspark.sql import functions as F

    keys = ("user", "query_term", "ip_addr", "timestamp")
    return read("page_views").groupBy(*keys).agg(F.sum("timespent").alias("spent"))


def _l7(read: Read) -> DataFrame:
    """Two counts within each group, either side of noon."""
    from pyspark.sql import functions as F

    early, late = (F.when(F.col("timestamp") < NOON, 1), F.when(F.col("timestamp") >= NOON, 1))
    return read("page_views").groupBy("user").agg(F.count(early).alias("morning"), F.count(late).alias("afternoon"))


def _l11(read: Read) -> DataFrame:
    """A union of distincts, distinct again."""
    return read("page_views").select("user").distinct().union(read("widerow").select("user").distinct()).distinct()


_VIEWS = ("page_views",)
WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (
        Workload("grep", ("text",), "value", _grep),
        Workload("word count", ("text",), "word", _word_count),
        Workload("L1", _VIEWS, "user", _l1),
        Workload("L2", ("page_views", "power_users"), "user", _l2),
        Workload("L3", ("page_views", "users"), "name", _l3),
        Workload("L4", _VIEWS, "user", _l4),
        Workload("L5", ("page_views", "users"), "user", _l5),
        Workload("L6", _VIEWS, "user", _l6),
        Workload("L7", _VIEWS, "user", _l7),
        Workload("L11", ("page_views", "widerow"), "user", _l11),
    )
}
"""By name, in the order of the page."""


def opener(spark: SparkSession, folder: str, rows: int) -> Read:
    """A function that opens a table of a size."""
    return lambda name: spark.read.parquet(f"{folder}/{name}-{rows}")
