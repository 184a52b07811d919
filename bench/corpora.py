"""The texts that are measured: TPC-DS from sqlglot's source distribution, and the shop of ``fixtures/``."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "bench" / "data"
SHOP = ROOT / "fixtures" / "shop"

_QUERIES = "tests/fixtures/optimizer/{name}/{name}.sql"
_HELPERS = "tests/helpers.py"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts of one dialect. A text is one statement of TPC-DS, or one file of the shop."""

    name: str
    dialect: str
    texts: tuple[str, ...]
    schema: dict[str, dict[str, str]]


def tpc_ds() -> Corpus:
    """The queries of TPC-DS with their schema, as sqlglot tests itself on them."""
    return _tpc("tpc-ds", "TPCDS_SCHEMA")


def tpc_h() -> Corpus:
    """The queries of TPC-H with their schema."""
    return _tpc("tpc-h", "TPCH_SCHEMA")


def bigquery_etl(checkout: Path) -> Corpus:
    """One in five queries of a checkout of mozilla/bigquery-etl that are no templates, without a schema."""
    texts = (path.read_text() for path in sorted((checkout / "sql").rglob("query.sql"))[::5])
    return Corpus("bigquery-etl", "bigquery", tuple(text for text in texts if "{" not in text), {})


def _tpc(name: str, schema: str) -> Corpus:
    with tarfile.open(sdist()) as archive:
        queries = _read(archive, _QUERIES.format(name=name))
        helpers = _read(archive, _HELPERS)
    # The file alternates between a query and the text that sqlglot's optimizer is to make of it.
    plain = re.sub(r"^(#|--).*$", "", queries, flags=re.MULTILINE)
    statements = [text.strip() for text in plain.split(";") if text.strip()][::2]
    return Corpus(name.upper(), "", tuple(statements), _schema(helpers, schema))


def shop() -> list[Corpus]:
    """The files of the shop, a corpus a dialect."""
    return [
        Corpus(f"shop ({folder.name})", folder.name, tuple(p.read_text() for p in sorted(folder.rglob("*.sql"))), {})
        for folder in sorted(SHOP.iterdir())
        if folder.is_dir()
    ]


def sdist() -> Path:
    """The source distribution of sqlglot, downloaded by pip once.

    Raises:
        subprocess.CalledProcessError: It cannot be downloaded.
    """
    name = f"sqlglot-{version('sqlglot')}.tar.gz"
    path = DATA / name
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        wanted = f"sqlglot=={version('sqlglot')}"
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            "sqlglot",
            "-d",
            str(DATA),
        ]
        subprocess.run([*command, wanted], check=True)
    return path


def _read(archive: tarfile.TarFile, path: str) -> str:
    root = archive.getnames()[0].split("/")[0]
    member = archive.extractfile(f"{root}/{path}")
    assert member is not None
    return member.read().decode()


def _schema(source: str, name: str) -> dict[str, dict[str, str]]:
    """The value of a schema in the text of sqlglot's test helpers, without running them."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            value: dict[str, dict[str, str]] = ast.literal_eval(node.value)
            return value
    raise LookupError(f"sqlglot's test helpers hold no {name}")
