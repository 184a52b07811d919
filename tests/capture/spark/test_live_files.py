"""Listings: what lies under a path after a write, and which of it the write made."""

from __future__ import annotations

import os

import pytest

from govtool.spark.live.plans.files import MAX_LISTED, left_files, summed

JOBS = ("0a0a0a0a-0000-4000-8000-00000000000a", "0b0b0b0b-0000-4000-8000-00000000000b")


def part(folder, number, job, size=10, modified=1000.0):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{number:05d}-{JOBS[job]}-c000.snappy.parquet"
    file.write_bytes(b"x" * size)
    os.utime(file, (modified, modified))
    return f"file:{file}"


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_SUCCESS").write_bytes(b"")
    return tmp_path / "out"


def test_an_append_made_its_own_files_only(out):
    old = part(out, 0, 0, modified=900.0)
    new = [part(out / "day=1", 0, 1), part(out / "day=2", 0, 1, size=20)]
    found = left_files(f"file://{out}", 995.0, 1001.0, {"files": 2, "bytes": 30})
    assert [file[0] for file in found["written"]["listed"]] == new
    assert [file[0] for file in found["left"]["listed"]] == sorted([old, *new])
    assert (found["left"]["size"], found["left"]["modified"]) == (40, 1_000_000)


@pytest.mark.parametrize("expected", [{"files": 3, "bytes": 30}, {"files": 2, "bytes": 31}, {}])
def test_files_that_do_not_add_up_are_nobodys(out, expected):
    part(out, 0, 1)
    part(out, 1, 1, size=20)
    assert "written" not in left_files(f"file:{out}", 995.0, 1001.0, expected)


def test_two_jobs_that_add_up_alike_are_not_told_apart(out):
    part(out, 0, 0)
    part(out, 0, 1)
    assert "written" not in left_files(f"file:{out}", 995.0, 1001.0, {"files": 1, "bytes": 10})


def test_files_of_another_time_are_of_another_write(out):
    part(out, 0, 0, modified=100.0)
    assert "written" not in left_files(f"file:{out}", 995.0, 1001.0, {"files": 1, "bytes": 10})


def test_many_files_are_a_digest():
    files = [(f"file:/x/{n:05d}", n, 1) for n in range(MAX_LISTED + 1)]
    many, fewer = summed(files), summed(files[:-1])
    assert (many["listed"], len(fewer["listed"])) == ([], MAX_LISTED)
    assert many["digest"] == summed(reversed(files))["digest"] != fewer["digest"]
    touched = summed([*files[:-1], (*files[-1][:2], 2)])
    assert (touched["shape"], touched["digest"] == many["digest"]) == (many["shape"], False)
