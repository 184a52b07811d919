"""The primer's two files have the edges of its table, and no others; its picture is what the command draws of them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from govtool.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "primer.md").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path, capsys):
    block = re.search(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    for name, text in re.findall(r"^-- (\S+\.sql)\n(.*?)(?=^-- |\Z)", block[1], re.MULTILINE | re.DOTALL):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert main(["init", "--no-sources"]) == 0
    assert main(["ingest", "sql", "etl", "--dialect", "postgres"]) == 0
    capsys.readouterr()
    return tmp_path


def test_edges_are_those_of_the_table(project):
    rows = re.findall(r"^\| (`[^|]+) → `([^|`]+)` \| `(\w+)`", PAGE, re.MULTILINE)
    stated = {(source, target, kind) for sources, target, kind in rows for source in re.findall(r"`([^`]+)`", sources)}
    assert main(["export", "graph", "-f", "csv", "-o", "edges.csv"]) == 0
    with (project / "edges.csv").open() as file:
        edges = {(row["source"], row["target"], row["kind"]) for row in csv.DictReader(file)}
    assert stated == edges
    assert len(stated) == 10


def test_picture_is_what_the_command_draws(project):
    command = re.search(r"`govtool (impact [^`]*-f svg)`", PAGE)
    assert command is not None
    assert main([*command[1].split(), "-o", "drawn.svg"]) == 0
    assert (project / "drawn.svg").read_text() == (DOCS / "images" / "primer.svg").read_text()
