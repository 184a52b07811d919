"""Distributions of imported modules."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from govtool.spark.live.job import packages


def test_owners_are_those_that_python_finds() -> None:
    import pyarrow
    import typer  # noqa: F401

    wanted = packages._imported()
    assert {"pyarrow", "pytest", "typer"} <= wanted
    expected = {name: sorted(owners) for name, owners in metadata.packages_distributions().items() if name in wanted}
    found = {name: sorted(owners) for name, owners in packages._owners(wanted).items()}
    assert {name: found.get(name) for name in expected} == expected
    assert packages.imported_packages()["pyarrow"] == pyarrow.__version__


def _distribution(folder: Path, title: str, files: dict[str, str]) -> None:
    place = folder / f"{title}-1.5.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {title}\nVersion: 1.5\n", encoding="utf-8")
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "owner"),
    [
        ({"top_level.txt": "odd_one\n"}, True),
        ({"top_level.txt": "other\n", "RECORD": "odd_one/__init__.py,,\n"}, False),  # what is declared counts
        ({"RECORD": "odd_one/__init__.py,sha256=x,1\n"}, True),
        ({"RECORD": "odd_one.py,,\n"}, True),
        ({"RECORD": "odd_one.cpython-311-x86_64-linux-gnu.so,,\n"}, sys.version_info[:2] == (3, 11)),
        ({"RECORD": '"odd,name.txt",,\nodd_one/part.py,,\n'}, True),
        ({"RECORD": "odd_one/data.csv,,\n"}, False),
        ({"RECORD": "odd_one_more/__init__.py,,\n"}, False),
        ({}, False),
    ],
)
def test_owner_of_a_module(files: dict[str, str], owner: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _distribution(tmp_path, "Odd", files)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "odd_one", sys)
    assert packages.imported_packages().get("odd") == ("1.5" if owner else None)
