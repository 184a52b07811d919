"""The content of what a run wrote: files by folder and content, as long as they are the files of that write."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.app.datasets.identify import identify_outputs
from govtool.capture.spark.identity import DatasetPlace, path_name
from govtool.model.file_listing import listing_from
from govtool.model.run import Run, RunOutput
from govtool.spark.live.plans.files import summed

TABLE = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out" / "day=1").mkdir(parents=True)
    return tmp_path / "out"


def wrote(out, name, table=TABLE, mode="overwrite", **options):
    """A run that wrote one file."""
    file = out / "day=1" / name
    pq.write_table(table, file, **options)
    status = file.stat()
    listed = summed([(f"file:{file}", status.st_size, status.st_mtime_ns // 1_000_000)])
    output = RunOutput("out", mode, written=listing_from(listed))
    return Run(id=name, job="job", status="complete", how="plan", outputs=(output,))


def identified(out, *runs, rows=None):
    name = path_name(f"file:{out}")
    return [
        run.outputs[0] for run in identify_outputs(list(runs), {"out": DatasetPlace(name, "file")}, 1 << 20, rows=rows)
    ]


def test_names_of_files_do_not_count(out):
    (first,) = identified(out, wrote(out, "part-0-aaaa.parquet"))
    (out / "day=1" / "part-0-aaaa.parquet").unlink()
    (second,) = identified(out, wrote(out, "part-0-bbbb.parquet"))
    assert first.content == second.content
    assert first.row_digest == second.row_digest != ""
    assert first.identity != second.identity


def test_an_append_is_its_own_files(out):
    first, second = identified(out, wrote(out, "a.parquet"), wrote(out, "b.parquet", mode="append"))
    assert first.content == second.content
    assert (first.identity, second.identity.files) == (None, 2)


def test_what_was_written_over_is_not_identified(out):
    first, second = wrote(out, "a.parquet"), wrote(out, "b.parquet")
    (out / "day=1" / "a.parquet").unlink()
    gone, there = identified(out, first, second)
    assert (gone.content, gone.row_digest) == (None, "")
    assert there.content is not None


def test_a_file_that_changed_since_is_not_identified(out):
    run = wrote(out, "a.parquet")
    os.utime(out / "day=1" / "a.parquet", (1, 1))
    assert identified(out, run)[0].content is None


def test_the_footer_of_parquet_counts_by_its_columns_only(out):
    (first,) = identified(out, wrote(out, "a.parquet"))
    (noted,) = identified(out, wrote(out, "a.parquet", TABLE.replace_schema_metadata({"note": "another footer"})))
    (renamed,) = identified(out, wrote(out, "a.parquet", TABLE.rename_columns(["id", "title"])))
    assert first.content.digest == noted.content.digest != renamed.content.digest


def test_row_digests_can_be_left_out(out):
    assert identified(out, wrote(out, "a.parquet"), rows=False)[0].row_digest == ""
