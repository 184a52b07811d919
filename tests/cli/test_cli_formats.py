"""Which rendering goes where."""

from __future__ import annotations

from pathlib import Path

import pytest

from govtool.cli.shared.formats import chosen
from govtool.errors import UnknownNameError, UsageError

SUPPORTED = ("table", "json", "csv")


@pytest.mark.parametrize(
    ("formats", "files", "outputs"),
    [
        (None, None, [("table", None)]),
        (["json"], None, [("json", None)]),
        (["json"], ["a"], [("json", "a")]),
        (None, ["a.csv"], [("csv", "a.csv")]),
        (None, ["a"], [("table", "a")]),
        (None, ["a.log"], [("table", "a.log")]),
        (["table", "json"], ["a"], [("table", None), ("json", "a")]),
        (["csv", "json"], ["a", "b"], [("csv", "a"), ("json", "b")]),
        (["json"], ["-"], [("json", None)]),
    ],
)
def test_formats_and_files_are_paired_from_the_end(formats, files, outputs):
    found = chosen(formats, [Path(file) for file in files or ()], SUPPORTED)
    assert found == [(form, file and Path(file)) for form, file in outputs]


@pytest.mark.parametrize(
    ("formats", "files"),
    [
        (["jsn"], []),
        (["json", "csv"], []),
        (["json"], ["a", "b"]),
        (None, ["a.dot"]),
        (["json", "csv", "table"], ["a.json", "b.csv"]),
    ],
)
def test_what_makes_no_sense(formats, files):
    with pytest.raises(UsageError):
        chosen(formats, [Path(file) for file in files], SUPPORTED)


@pytest.mark.parametrize(
    ("formats", "files", "message", "nearest"),
    [
        (None, ["a.txt"], "no format .txt here", ()),
        (["svg"], [], "no format svg here", ()),
        (["cvs"], [], "no format cvs here", ("csv",)),
    ],
)
def test_the_message_is_about_what_was_written(formats, files, message, nearest):
    with pytest.raises(UnknownNameError) as caught:
        chosen(formats, [Path(file) for file in files], ("csv", "json"))
    assert (caught.value.message, caught.value.nearest) == (message, nearest)
    assert caught.value.hint == "one of csv, json"
