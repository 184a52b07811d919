"""What event logs say of the catalog, of writes that go by name, and of streams' sinks: as the texts of Delta Lake 4.4 and
Iceberg 1.12 have it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_logs import edges_of, ended, event, gathered, started

from govtool.capture.spark.eventlog.gathered import EventLogFindings

DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
SETTINGS = {"spark.sql.catalog.spark_catalog": DELTA, "spark.sql.catalog.lake": ICEBERG}
LAMBDA = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$$Lambda$7594/0x0@1f4761c2"
TABLE = """DeltaTableV2(org.apache.spark.sql.classic.SparkSession@11c185da,file:/wh/perm,Some(CatalogTable(
Catalog: spark_catalog
Database: default
Table: perm
Type: MANAGED)),Some(default.perm),{version},Map())"""


def command(name: str, arguments: str) -> str:
    return f"== Physical Plan ==\n{name} (1)\n\n\n(1) {name}\nArguments: {arguments}\n\n"


def executed(name: str, arguments: str) -> str:
    """A command that runs at once."""
    return (
        f"== Physical Plan ==\nExecute {name} (1)\n   +- {name} (2)\n\n\n"
        f"(1) Execute {name}\nOutput: []\n\n(2) {name}\nArguments: {arguments}\n\n"
    )


def log(
    folder: Path, *plans: str | tuple[int, str], settings: dict[str, str] | None = None, **more: Any
) -> EventLogFindings:
    """A log of executions; a plan with a number belongs to the execution of that number."""
    path = folder / "log"
    settings = {"spark.app.id": "app-1", **(SETTINGS if settings is None else settings)}
    lines = [event("SparkListenerEnvironmentUpdate", **{"Spark Properties": list(map(list, settings.items()))})]
    for number, each in enumerate(plans):
        root, plan = each if isinstance(each, tuple) else (number, each)
        lines.append(started(number, plan, root=root))
    lines += [ended(number, **more) for number in reversed(range(len(plans)))]
    path.write_bytes(b"".join(lines))
    return gathered(path)


def breaks(found: EventLogFindings) -> list[tuple[str, str]]:
    return [(note.code, note.message) for run in found.runs for note in run.breaks]


@pytest.mark.parametrize(
    ("plan", "head", "source"),
    [
        (
            command("RenameTable", f"{DELTA}@771a, default.parts, portions, {LAMBDA}"),
            "default.portions",
            "default.parts",
        ),
        (command("RenameTable", f"{ICEBERG}@7b35, db.parts, old.portions"), "lake.old.portions", "lake.db.parts"),
        (command("RenameTable", f"{ICEBERG}@7b35, db.parts, lake.db.b"), "lake.db.b", "lake.db.parts"),
        (
            executed("AlterTableRenameCommand", "`spark_catalog`.`shop`.`a`, `b`, false"),
            "shop.b",
            "shop.a",
        ),
    ],
)
def test_a_table_that_is_renamed_has_what_it_had_by_names_that_are_not_told(tmp_path, plan, head, source) -> None:
    found = log(tmp_path, plan)
    assert edges_of(found) == {f"{head} rename rename": [f"* <- {source}.* read", f"? <- {source}.? opaque"]}
    (made,) = (d for d in found.derivations() if d.mode == "rename")
    assert (made.status, made.columns_complete, made.edges[-1].reason) == ("partial", False, "star-unresolved")


def test_a_view_that_is_renamed_is_one() -> None:
    from govtool.capture.spark.plantext.read import read_plan

    defined = read_plan(executed("AlterTableRenameCommand", "`s`.`v`, `s`.`w`, true")).defined
    assert defined is not None
    assert defined.place is not None
    assert defined.place.kind == "view"


def test_which_of_two_catalogs_a_table_is_in_is_not_guessed(tmp_path) -> None:
    settings = {**SETTINGS, "spark.sql.catalog.other": ICEBERG}
    plans = [
        command("RenameTable", f"{ICEBERG}@7b35, db.parts, portions"),
        command("DropTable", f"{ICEBERG}@7b35, db.parts, false, false"),
        command("DropTable", "com.example.UnknownCatalog@7b35, db.parts, false, false"),
    ]
    found = log(tmp_path, *plans, settings=settings)
    assert edges_of(found) == {}
    assert [code for code, _ in breaks(found)] == ["break.definition"] * 3


def test_tables_that_are_dropped(tmp_path) -> None:
    found = log(
        tmp_path,
        command("DropTable", f"{ICEBERG}@7b35, db.again, false, false, {LAMBDA}"),
        executed("DropTableCommand", "`spark_catalog`.`default`.`again`, false, false, false"),
    )
    assert edges_of(found) == {"default.again drop drop": [], "lake.db.again drop drop": []}


def test_a_column_that_is_renamed(tmp_path) -> None:
    found = log(tmp_path, command("AlterTable", f"{DELTA}@771a, default.t, [RENAME COLUMN phone TO Mobile], {LAMBDA}"))
    assert edges_of(found) == {"default.t alter update": ["mobile <- default.t.phone identity"]}
    assert breaks(found) == []


@pytest.mark.parametrize(
    "changes",
    [
        "org.apache.spark.sql.connector.catalog.TableChange$RenameColumn@372955",
        "RENAME COLUMN s.x TO y",  # a field, or a column with a dot in its name
        "RENAME COLUMN a TO b TO c",
        "RENAME COLUMN a TO b, RENAME COLUMN c TO d",
        "ADD COLUMN a INT, ... 30 more fields",
    ],
)
def test_a_column_of_which_it_is_not_told_what_it_is_renamed_to_is_a_break(tmp_path, changes) -> None:
    found = log(tmp_path, command("AlterTable", f"{ICEBERG}@7b35, db.t, [{changes}]"))
    assert edges_of(found) == {}
    assert [code for code, _ in breaks(found)] == ["break.definition"]
    assert [output.dataset for run in found.runs for output in run.outputs] == ["lake.db.t"]


@pytest.mark.parametrize(
    "change", ["TableChange$AddColumn@a3", "ADD COLUMN s STRUCT<x: STRING, y: STRING>", "TableChange$SetProperty@1"]
)
def test_other_changes_of_a_table_say_nothing_of_data(tmp_path, change) -> None:
    found = log(tmp_path, command("AlterTable", f"{ICEBERG}@7b35, db.t, [{change}]"))
    assert (edges_of(found), found.runs) == ({}, [])


def test_what_a_table_is_cloned_from_is_not_told(tmp_path) -> None:
    clone = (
        "CloneTableCommand org.apache.spark.sql.delta.commands.CloneDeltaSource@4dcc, `default`.`c`, file:/wh/c, Create"
    )
    found = log(
        tmp_path, executed("CreateDeltaTableCommand", f"`default`.`c`, ErrorIfExists, {clone}, false, [n#1L], false")
    )
    assert edges_of(found) == {"default.c create_table_as replace": []}
    assert breaks(found) == [("break.definition", "default.c: it is cloned from a source that is not in the text")]
    (made,) = (d for d in found.derivations() if d.mode == "replace")
    assert (made.status, made.columns_complete) == ("partial", False)


def test_a_table_that_is_made_without_a_query_is_no_clone(tmp_path) -> None:
    assert log(tmp_path, executed("CreateDeltaTableCommand", "`default`.`c`, ErrorIfExists, Create, false")).runs == []


def test_an_earlier_version_that_is_put_back_is_a_break(tmp_path) -> None:
    found = log(
        tmp_path, executed("RestoreTableCommand", TABLE.format(version="Some(DeltaTimeTravelSpec(None,Some(1)))"))
    )
    assert breaks(found) == [("break.restored", "default.perm is what it was in an earlier version")]


def test_a_command_that_failed_has_done_nothing(tmp_path) -> None:
    found = log(tmp_path, command("DropTable", f"{ICEBERG}@7b35, db.again, false, false"), error="no such table")
    assert edges_of(found) == {}
    assert [run.status for run in found.runs] == ["failed"]


def query(*made: str) -> str:
    return (
        "== Physical Plan ==\nProject (2)\n+- Scan parquet default.updates (1)\n\n\n(1) Scan parquet default.updates\n"
        "Output [3]: [email#1, country#2, op#3]\nBatched: false\nLocation: PreparedDeltaFileIndex [file:/wh/updates]\n"
        f"ReadSchema: struct<>\n\n(2) Project\nOutput [{len(made)}]: [{', '.join(made)}]\nInput [3]: [email#1, country#2, op#3]\n\n"
    )


def append(*made: str) -> str:
    return command(
        "AppendDataExecV1",
        f"{TABLE.format(version=None)}, Project [{', '.join(made)}], {LAMBDA}, WriteIntoDeltaBuilder$$anon$2@13",
    )


READ = "* <- default.updates.* read"
PERM = "default.perm insert append"


def test_what_is_written_by_name_goes_to_its_name_in_the_order_of_the_table(tmp_path) -> None:
    made = ("email#1 AS c#11", "country#2 AS a#12", "op#3 AS b#13")
    found = log(tmp_path, append(*made), (0, query(made[1], made[2], made[0])))
    assert edges_of(found)[PERM] == [
        READ,
        "a <- default.updates.country identity",
        "b <- default.updates.op identity",
        "c <- default.updates.email identity",
    ]
    assert breaks(found) == []


def test_columns_that_are_not_given_are_added_by_the_table(tmp_path) -> None:
    made = ("email#1 AS c#11", "country#2 AS a#12")
    found = log(tmp_path, append(*made), (0, query(made[1], "null AS b#19", made[0])))
    assert edges_of(found)[PERM] == [
        READ,
        "a <- default.updates.country identity",
        "c <- default.updates.email identity",
    ]


def test_a_write_whose_query_no_execution_has_is_a_break(tmp_path) -> None:
    """Names alone, in another order, might be those of any query of the same action."""
    made = ("email#1 AS c#11", "country#2 AS a#12")
    found = log(tmp_path, append(*made), (0, query("op#3 AS a#21", "op#3 AS c#22")))
    assert edges_of(found)[PERM] == []
    assert [code for code, _ in breaks(found)] == ["break.source"]


@pytest.mark.parametrize(
    ("by_name", "edges"),
    [
        ("true", ["day <- default.updates.op identity", "email <- default.updates.email identity"]),
        ("false", ["day <- default.updates.email identity", "email <- default.updates.op identity"]),
    ],
)
def test_partitions_of_delta_that_are_overwritten_by_name_or_by_position(tmp_path, by_name, edges) -> None:
    plan = (
        "== Physical Plan ==\nExecute DeltaDynamicPartitionOverwriteCommand (1)\n"
        "   +- DeltaDynamicPartitionOverwriteCommand (4)\n      +- Project (3)\n         +- LogicalRelation (2)\n\n\n"
        "(1) Execute DeltaDynamicPartitionOverwriteCommand\nOutput: []\n\n"
        "(2) LogicalRelation\nArguments: parquet, [email#1, op#3], `spark_catalog`.`default`.`updates`, false\n\n"
        "(3) Project\nArguments: [op#3 AS day#9, email#1]\n\n"
        "(4) DeltaDynamicPartitionOverwriteCommand\nArguments: RelationV2[email#4, day#5] spark_catalog.default.perm, "
        f"{TABLE.format(version=None)}, {by_name}, Project [op#3 AS day#9, email#1]\n\n"
    )
    assert edges_of(log(tmp_path, plan)) == {PERM: [READ, *edges]}


def stream(writer: str) -> str:
    return (
        "== Physical Plan ==\nWriteToDataSourceV2 (3)\n+- Project (2)\n   +- MicroBatchScan (1)\n\n\n"
        "(1) MicroBatchScan\nOutput [2]: [id#1L, email#2]\n"
        "IcebergScan(table=lake.db.updates, schemaId=0, snapshotId=19, branch=null, filters=)\n\n"
        "(2) Project\nOutput [2]: [id#1L, lower(email#2) AS email#3]\nInput [2]: [id#1L, email#2]\n\n"
        f"(3) WriteToDataSourceV2\nInput [2]: [id#1L, email#3]\nArguments: MicroBatchWrite[epoch: 0, writer: {writer}]\n\n"
    )


def test_a_stream_into_a_table_that_its_writer_names(tmp_path) -> None:
    found = log(tmp_path, stream("IcebergStreamingWrite(table=lake.db.streamed, format=PARQUET)"))
    assert edges_of(found) == {
        "lake.db.streamed insert append": [
            "* <- lake.db.updates.* read",
            "email <- lake.db.updates.email transformation lower",
            "id <- lake.db.updates.id identity",
        ]
    }


def test_a_stream_into_something_else_is_a_query_still(tmp_path) -> None:
    found = log(tmp_path, stream("org.apache.spark.sql.execution.streaming.ConsoleWriter@1"))
    assert [head.split()[0] for head in edges_of(found)] == ["query"]


# ---- rows that are changed in place, of Iceberg ------------------------------------------------------------------

ROW = "id#1L, email#2, country#3"
PLACES = "_file#4, _pos#5L, _spec_id#6, _partition#7"
OUT = "id#21L, email#22, country#23, _file#24, _pos#25L, _spec_id#26, _partition#27"


def rows(name: str, *operators: tuple[str, str], scanned: str, write: str) -> str:
    """A write over operators in a line, the first on top, over a scan of lake.db.t."""
    names = [name, *(kind for kind, _ in operators), "BatchScan lake.db.t"]
    numbers = range(len(names), 0, -1)
    drawn = [
        f"{'   ' * (at - 1)}{'+- ' if at else ''}{each} ({n})"
        for at, (each, n) in enumerate(zip(names, numbers, strict=True))
    ]
    count = scanned.count("#")
    parts = [f"(1) BatchScan lake.db.t\nOutput [{count}]: [{scanned}]\nIcebergScan(table=lake.db.t, schemaId=0)\n"]
    parts += [
        f"({n}) {kind}\n{details}\n"
        for (kind, details), n in zip(reversed(operators), range(2, len(names)), strict=True)
    ]
    parts.append(f"({len(names)}) {name}\nArguments: {write}\n")
    return "== Physical Plan ==\n" + "\n".join(drawn) + "\n\n\n" + "\n".join(parts) + "\n"


ANEW = "IcebergWrite(table=lake.db.t, format=PARQUET)"
MARKED = "org.apache.iceberg.spark.source.SparkPositionDeltaWrite@5d78bb0a"
SCANNED = f"{ROW}, _file#4, _pos#5L"


@pytest.mark.parametrize(
    ("plan", "stated"),
    [
        (
            rows(
                "ReplaceData",
                ("Project", "Output [6]: [6 AS __row_operation#9, id#1L, if ((id#1L > 5)) upper(country#3) else email#2 AS"
                 " email#10, if ((id#1L > 5)) c else country#3 AS country#11, _file#4, _pos#5L]"),
                scanned=SCANNED, write=ANEW,
            ),
            {"lake.db.t update update": [
                "country <- lake.db.t.id conditional",
                "email <- lake.db.t.country transformation upper",
                "email <- lake.db.t.id conditional",
            ]},
        ),
        (
            rows(
                "ReplaceData",
                ("Project", f"Output [6]: [6 AS __row_operation#9, {SCANNED}]"),
                ("Filter", "Condition : NOT (((length(country#3) = 3) OR (id#1L = 7)) <=> true)"),
                scanned=SCANNED, write=ANEW,
            ),
            {"lake.db.t delete delete": ["* <- lake.db.t.country filter", "* <- lake.db.t.id filter"]},
        ),
        (
            rows(
                "WriteDelta",
                ("Expand", f"Arguments: [[1, null, null, null, {PLACES}], [4, id#1L, upper(country#3), c, null, null, null,"
                 f" null]], [__row_operation#9, {OUT}]"),
                ("Filter", "Condition : (isnotnull(id#1L) AND (id#1L > 5))"),
                scanned=f"{ROW}, {PLACES}", write=MARKED,
            ),
            {"lake.db.t update update": [
                "country <- lake.db.t.id conditional",
                "email <- lake.db.t.country transformation upper",
                "email <- lake.db.t.id conditional",
            ]},
        ),
        (
            rows(
                "WriteDelta",
                ("Project", f"Output [5]: [1 AS __row_operation#9, {PLACES}]"),
                ("Filter", "Condition : (id#1L = 7)"),
                scanned=f"id#1L, {PLACES}", write=MARKED,
            ),
            {"lake.db.t delete delete": ["* <- lake.db.t.id filter"]},
        ),
    ],
    ids=["update, files anew", "delete, files anew", "update, rows marked", "delete, rows marked"],
)  # fmt: skip
def test_rows_that_are_changed_are_called_what_they_are(tmp_path, plan, stated) -> None:
    found = log(tmp_path, plan)
    assert edges_of(found) == stated
    assert breaks(found) == []
    (made,) = (d for d in found.derivations() if d.mode in ("update", "delete"))
    assert [column.path for column in made.columns] == (["email", "country"] if made.mode == "update" else [])


def test_rows_of_which_table_are_marked_is_not_guessed(tmp_path) -> None:
    plan = rows(
        "WriteDelta",
        ("Project", "Output [2]: [1 AS __row_operation#9, _file#4]"),
        scanned="id#1L, _file#4",
        write=MARKED,
    )
    found = log(tmp_path, plan)
    assert edges_of(found) == {}
    assert "break.target" in [code for code, _ in breaks(found)]


# ---- MERGE on Delta Lake -----------------------------------------------------------------------------------------


def merge(*clauses: str) -> str:
    return executed(
        "MergeIntoCommand",
        "SubqueryAlias s, SubqueryAlias t, `spark_catalog`.`default`.`users`, Delta[version=2, file:/wh/users], (id#1L = id#11L), "
        + ", ".join(clauses)
        + ", StructType(StructField(id,LongType,true)), false",
    )


USERS = "Location: TahoeBatchFileIndex [file:/wh/users]\nReadSchema: struct<>\n"
UPDATES = "Location: PreparedDeltaFileIndex [file:/wh/updates]\nReadSchema: struct<>\n"


def joined(below: str) -> str:
    """The job of a MERGE that joins its source to the target."""
    return (
        "== Physical Plan ==\nSortMergeJoin FullOuter (5)\n:- Project (3)\n:  +- Filter (2)\n:     +- "
        f"{below.splitlines()[0][4:]} (1)\n+- Scan parquet spark_catalog.default.users (4)\n\n\n{below}\n"
        "(2) Filter\nInput [3]: [id#11L, email#12, op#14]\nCondition : (isnotnull(op#14) AND (op#14 = u))\n\n"
        "(3) Project\nOutput [3]: [id#11L, upper(email#12) AS email#13, true AS _source_row_present_#30]\n\n"
        f"(4) Scan parquet spark_catalog.default.users\nOutput [3]: [id#1L, email#2, country#3]\n{USERS}\n"
        "(5) SortMergeJoin\nLeft keys [1]: [id#11L]\nRight keys [1]: [id#1L]\nJoin type: FullOuter\nJoin condition: None\n\n"
    )


READ_UPDATES = f"(1) Scan parquet spark_catalog.default.updates\nOutput [3]: [id#11L, email#12, op#14]\n{UPDATES}"
MATERIALISED = "(1) Scan ExistingRDD mergeMaterializedSource\nOutput [3]: [id#11L, email#12, op#14]\n"
UPDATED = "[Update [condition: (country#3 = x), actions: [`id` = id#1L, `email` = email#13, `country` = country#3]]]"


def test_what_the_source_of_a_merge_computes_is_in_the_job_that_joins_it(tmp_path) -> None:
    inserted = "[Insert [actions: [`id` = id#11L, `email` = null, `country` = null]]]"
    found = log(tmp_path, merge(UPDATED, inserted), (0, joined(READ_UPDATES)))
    assert edges_of(found)["default.users merge update"] == [
        "* <- default.updates.* read",
        "* <- default.updates.id join",
        "* <- default.updates.op filter",
        "* <- default.users.id join",
        "email <- default.updates.email transformation upper",
        "email <- default.updates.id conditional",
        "email <- default.updates.op conditional",
        "email <- default.users.country conditional",
        "email <- default.users.id conditional",
        "id <- default.updates.id identity",
    ]
    assert breaks(found) == []


@pytest.mark.parametrize(
    ("clause", "source"),
    [
        (UPDATED, MATERIALISED),  # computed before, and read from memory
        ("[Update [actions: [`email` = concat(email#2, `email` = )]]]", READ_UPDATES),
        ("[Update [actions: [`id` = id#1L, ... 30 more fields]]]", READ_UPDATES),
    ],
    ids=["a source in memory", "a literal like an assignment", "cut"],
)
def test_a_merge_of_which_not_all_is_told_is_a_break(tmp_path, clause, source) -> None:
    found = log(tmp_path, merge(clause), (0, joined(source)))
    assert not [edge for edge in edges_of(found)["default.users merge update"] if "email" in edge]
    assert "break.operator" in [code for code, _ in breaks(found)]


def test_a_merge_that_only_deletes(tmp_path) -> None:
    found = log(tmp_path, merge("[Delete []]"), (0, joined(READ_UPDATES)))
    assert edges_of(found)["default.users merge update"] == [
        "* <- default.updates.* read",
        "* <- default.updates.id join",
        "* <- default.updates.op filter",
        "* <- default.users.id join",
    ]
