"""Plans and certificates of an erasure that somebody edited or wrote: read, or refused with a code."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest

from bench.fuzz.targets import _erasure_corpus
from govtool.app.erasure.apply import (
    ErasurePlanFile,
    apply_erasure,
    check_originals,
    check_target,
    read_plan_file,
)
from govtool.app.erasure.certify import verify_erasure
from govtool.errors import FormatError, SourceError, UsageError
from govtool.records.execute.inputs import _difference
from govtool.records.plan.nodes import File

PLAN, CERTIFICATE = map(json.loads, _erasure_corpus())
GONE = object()


def changed(body, path, value):
    """A copy of a document with another value at a path; GONE leaves it out."""
    made = copy.deepcopy(body)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


FILE = ("datasets", 0, "files", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("commit", "id"), 1),
        (("request", "subjects"), "users.id=1"),
        (("request", "subjects"), [1]),
        (("request", "keys"), {"a": 1}),
        (("request", "run"), ["a/0"]),
        (("request", "all_runs"), "no"),
        (("datasets",), "x"),
        (("datasets", 0), 1),
        (("datasets", 0, "dataset"), None),
        (("datasets", 0, "dataset"), "/a\0b"),
        ((*FILE, "size"), GONE),
        ((*FILE, "modified"), "1"),
        ((*FILE, "uri"), "file:///a\0b"),
        ((*FILE, "uri"), "\ud800"),
    ],
)
def test_a_plan_of_another_shape_is_none(path, value, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(changed(PLAN, path, value)), encoding="utf-8")
    with pytest.raises(FormatError) as refused:
        apply_erasure(plan, tmp_path / "to")
    assert refused.value.code == "store.format-plan"
    assert list(tmp_path.iterdir()) == [plan]


@pytest.mark.parametrize("depth", [300, 900, 5_000, 100_000])
@pytest.mark.parametrize("name", ["tokens", "order", "further"])
def test_a_plan_nested_deeper_than_any_is_none(depth, name, tmp_path):
    plan = tmp_path / "plan.json"
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        text = json.dumps(changed(PLAN, (name,), "here")).replace('"here"', opened * depth + "1" + closed * depth)
        plan.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError):
            apply_erasure(plan, tmp_path / "to")


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_plan_of_devices_and_pipes_is_of_changed_files(kind, tmp_path):
    """Reading them to compare their digests would not end."""
    place = Path("/dev/zero") if kind == "device" else tmp_path / "pipe"
    if kind == "pipe":
        os.mkfifo(place)
    facts = place.stat()
    file = {
        "uri": place.as_uri(),
        "size": facts.st_size,
        "modified": facts.st_mtime_ns // 1_000_000,
        "sha256": "0" * 64,
    }
    given = ErasurePlanFile(b"", changed(PLAN, FILE, file))
    with pytest.raises(SourceError, match="is no file any more"):
        check_originals(given)
    leaf = File(0, place.as_uri(), file["size"], file["modified"])
    assert _difference(leaf) == "is no file any more"


@pytest.mark.parametrize("uri", ["file:///a%00b", "file:///" + "b" * 5000, "file://[x", "/../../nowhere"])
def test_a_plan_of_files_that_cannot_be_is_of_changed_ones(uri, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(changed(PLAN, (*FILE, "uri"), uri)), encoding="utf-8")
    with pytest.raises(SourceError) as refused:
        apply_erasure(plan, tmp_path / "to")
    assert refused.value.code == "source.changed"
    assert list(tmp_path.iterdir()) == [plan]


def test_names_of_datasets_that_cannot_be_are_no_originals(tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(changed(PLAN, ("datasets", 0, "dataset"), "file:///" + "b" * 5000)), encoding="utf-8")
    check_target(tmp_path / "to", read_plan_file(plan))
    with pytest.raises(SourceError):
        check_originals(read_plan_file(plan))


def test_the_folder_of_a_plan_may_not_lie_within_an_original(tmp_path):
    users = tmp_path / "users"
    users.mkdir()
    plan = tmp_path / "plan.json"
    body = changed(changed(PLAN, (*FILE, "uri"), "file:///nowhere/a"), ("datasets", 0, "dataset"), users.as_uri())
    plan.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(UsageError, match="lies within the original"):
        check_target(tmp_path / "elsewhere" / ".." / "users" / "to", read_plan_file(plan))


@pytest.mark.parametrize("name", ["b" * 5000, "../../etc/passwd", "/etc/passwd"])
def test_a_certificate_of_files_that_cannot_be_says_so(name, tmp_path):
    place = tmp_path / "certificate.json"
    place.write_text(json.dumps(changed(CERTIFICATE, (*FILE, "path"), name)), encoding="utf-8")
    (problem,) = verify_erasure(place).problems
    assert problem in (f"{name} is gone", f"{name} leads out of the folder")
