"""What the package imports is what a plain install brings; what only extras bring is named here."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPORTED_AS = {"ipython": "IPython", "google-re2": "re2", "PyYAML": "yaml", "psycopg": "psycopg"}
"""Distributions whose module is not called as they are."""

FOR_CONTRIBUTORS = frozenset({"test", "quick", "docs"})
"""Extras that the package itself never imports."""


def imported() -> dict[str, set[str]]:
    """The modules of others that the package imports, anywhere, and the files that do."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / "govtool").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            for name in {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"govtool"}:
                found.setdefault(name, set()).add(file.relative_to(ROOT).as_posix())
    return found


def modules(requirements: list[str]) -> set[str]:
    """The modules that a list of requirements brings by name."""
    names = [re.split(r"[\[<>=;~! ]", requirement, maxsplit=1)[0] for requirement in requirements]
    return {IMPORTED_AS.get(name, name) for name in names}


def test_every_import_is_of_a_plain_install_or_of_an_extra_for_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = modules(project["dependencies"])
    extras = {
        name: modules(needs) for name, needs in project["optional-dependencies"].items() if name not in FOR_CONTRIBUTORS
    }
    optional = set().union(*extras.values(), {"py4j"})  # comes with pyspark
    found = imported()
    assert {"sqlglot", "numpy", "pyspark"} <= set(found)
    assert not {name: files for name, files in found.items() if name not in plain | optional}
    # Whatever is only in an extra stays behind the doors that say which extra it is.
    doors = (
        "govtool/capture/catalog/",
        "govtool/spark/",
        "govtool/store/backends/aws.py",
        "govtool/app/ingest/logs/spark.py",
        "govtool/app/project/spark_session.py",
        "govtool/app/versions/spark_index/",
    )
    doors += ("govtool/app/spark_source/", "govtool/capture/spark/", "govtool/app/runs/job.py")
    doors += (
        "govtool/api/notebook.py",
        "govtool/app/runs/attach.py",
        "govtool/app/erasure/corrected.py",
        "govtool/app/records/frame_lineage.py",
        "govtool/app/records/engines.py",
        "govtool/app/workflow_graphs/",
        "govtool/app/workflow_runs/",
        "govtool/capture/prov/",
        "govtool/records/execute/",
        "govtool/records/sidecar/",
        "govtool/workflow/annotate/tables.py",
    )
    for name in set(found) & (optional - plain):
        assert not {file for file in found[name] if not file.startswith(doors)}, name
