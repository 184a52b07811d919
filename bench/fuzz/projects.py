"""Readers of what a checkout holds beside SQL: settings, dbt's own files, baselines, lists of tokens, sidecars."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

_SETTINGS = """store = ".govtool"
[sql]
dialect = "postgres"
schema = ["ddl.sql"]
[sql.variables]
target = "prod"
[spark]
records = true
[keys]
"crm.users" = ["id", "day"]
[erasure]
no_subject = ["geo.*"]
[paths]
root = "."
[aliases]
"spark_catalog.sales.*" = "sales.*"
[[sources]]
kind = "sql"
path = ["models"]
[[sources]]
kind = "catalog"
url = "duckdb:///a.duckdb"
min_coverage = 95
"""
_FILES = {
    "govtool.toml": _SETTINGS,
    ".sqlfluff": "[sqlfluff]\ndialect = sparksql\ntemplater = dbt\n",
    "pyproject.toml": "[tool.sqlfluff.core]\ndialect = 'bigquery'\n",
    "dbt_project.yml": "name: shop\nprofile: shop\nmodel-paths: [models]\nmacro-paths: ['macros']\nvars:\n  a: 1\n"
    "models:\n  shop:\n    +schema: mart\n    +alias: b\n"
    "dispatch:\n  - macro_namespace: dbt\n    search_order: [shop]\n",
    "packages.yml": "packages:\n  - local: lib\n  - package: dbt-labs/dbt_utils\n    version: [1.0.0]\n",
    "dependencies.yml": "packages:\n  - git: https://x/y.git\n    subdirectory: z\n",
    "profiles.yml": "shop:\n  target: dev\n  outputs:\n    dev:\n      type: postgres\n",
    "models/schema.yml": "version: 2\nsources:\n  - name: crm\n    schema: raw\n    tables:\n      - name: users\n"
    "        columns:\n          - name: id\n            data_type: int\n"
    "models:\n  - name: v\n    config:\n      alias: w\n",
    "seeds/codes.csv": "code,name\n1,a\n",
}
"""The files of a project, by path."""


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def project(data: bytes) -> object:
    """Read a checkout of which one file is spoiled: its settings, the sources it lists and shows, and its SQL."""
    from govtool.api.lineage import lineage
    from govtool.app.ingest.all_sources import chosen_sources
    from govtool.app.project.discover import write_config
    from govtool.app.project.source_trust import outside_sources
    from govtool.config import load_config, settings

    name, _, content = data.partition(b"\0")
    at = name.decode("utf-8", "replace")
    spoiled = at if at in _FILES else sorted(_FILES)[len(data) % len(_FILES)]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, _working_in(folder):
        place = Path(folder)
        for each, text in _FILES.items():
            (place / each).parent.mkdir(exist_ok=True)
            (place / each).write_bytes(content if each == spoiled else text.encode())
        (place / "models" / "v.sql").write_text("select id from {{ source('crm', 'users') }}")
        (place / "ddl.sql").write_text("create table raw.users (id int)")

        def ask_settings() -> object:
            found = load_config(place)
            return settings(None, found), outside_sources(found), chosen_sources(())

        def discovered() -> object:
            (place / "govtool.toml").unlink()
            return write_config(place, None)

        _each(ask_settings, lambda: list(lineage(paths=["models"]).rows()), discovered)
    return None


def project_corpus() -> list[bytes]:
    """The sound files; an input is a file's path, NUL, and its bytes."""
    return [f"{name}\0{text}".encode() for name, text in _FILES.items()]


def _each(*asks: Callable[[], object]) -> None:
    from govtool.errors import GovtoolError

    for ask in asks:
        try:
            ask()
        except GovtoolError:
            continue


# ---- baselines, lists of tokens -------------------------------------------------------------------------------------


def given(data: bytes) -> object:
    """Read the files that a user hands over: a baseline, a list of tokens, agreements."""
    from govtool.app.project.agreements import trusted
    from govtool.app.records.token_lists import read_deletions
    from govtool.policy.rules.baseline import read_baseline

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "govtool", "trusted.json")
        path.parent.mkdir()
        path.write_bytes(data)
        trusted({"XDG_CONFIG_HOME": folder})
        _each(lambda: read_baseline(path), lambda: read_deletions(str(path)))
    return None


def given_corpus() -> list[bytes]:
    """A baseline, a list of tokens, and agreements."""
    finding: dict[str, Any] = {"fingerprint": "0" * 16, "verdict": "error", "strength": "sure", "measured": 3}
    finding |= {"classes": ["personal"], "severity": "error"}
    baseline = {"schema": "baseline/1", "findings": [finding]}
    agreed = {"trusted": [{"file": "/a/govtool.toml", "store": "s3://b"}, {"file": "/a/govtool.toml", "source": "/x"}]}
    tokens = '["crm.users[id=1]", "file:///data/x@0:0/1"]\n{"tokens": ["a:0/0"]}\n'
    return [json.dumps(baseline).encode(), tokens.encode(), json.dumps(agreed).encode()]


# ---- key sidecars ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _sidecar() -> tuple[bytes, str, Any]:
    """A sound sidecar of 100 rows, the file that it is of, and its columns."""
    import numpy as np

    from govtool.records.sidecar.keyfile import KeySet, identity, write

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    file = folder / "data.parquet"
    file.write_bytes(b"x")
    keys = KeySet((("id", "long"),), "own")
    packed = np.sort(
        (np.arange(100, dtype=np.uint64) * np.uint64(40_000_000) << np.uint64(32)) | np.arange(100).astype("u8")
    )
    write(folder / "a.keys", file.as_uri(), keys, identity(file.as_uri()) or (), packed)
    return (folder / "a.keys").read_bytes(), file.as_uri(), keys


def sidecar(data: bytes) -> object:
    """Look hashes up in a spoiled sidecar: none may be answered with rows that the file does not have."""
    import numpy as np

    from govtool.records.sidecar.keyfile import opened

    _, uri, keys = _sidecar()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        place = Path(folder, "a.keys")
        place.write_bytes(data)
        found = opened(place, uri, keys)
        if found is None:
            return None
        wanted = np.array([0, 40_000_000, 7, 99 * 40_000_000 % (1 << 32)], "<u4")
        return found.found(np.unique(wanted), 1_000)


def sidecar_corpus() -> list[bytes]:
    """A sound sidecar."""
    return [_sidecar()[0]]
