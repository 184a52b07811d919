"""Other lineage tools over the same statements, each really installed, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.corpora import ROOT, tpc_ds
from bench.page import table
from govtool.build_form import form

TITLE = "## Other tools on the same statements"

PEERS = ROOT / "bench" / ".peers"
WORKER = ROOT / "bench" / "worker.py"

REQUIREMENTS = {
    "lineagex": ("lineagex==0.0.27", "ipython", "setuptools"),  # IPython is imported and not declared
    "sqllineage": ("sqllineage==1.5.9",),
    "openlineage-sql": ("openlineage-sql==1.54.0",),
    "sqllineage-rs": ("sqllineage-rs==0.2.0",),
    "pyvis": ("pyvis==0.3.2",),
}
LINEAGE = ("lineagex", "sqllineage", "openlineage-sql", "sqllineage-rs")
"""Those that read SQL."""

OWN = ("govtool", "sqlglot", "sqlglot-prepared", "sqlglot-by-column")
"""Measured in this environment."""

STATEMENTS = 40
"""The first of TPC-DS: what the slowest tool reads in a quarter of a minute."""

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Result:
    """Of one tool: statements a second (median of the rounds), and what failed."""

    name: str
    version: str
    per_second: float
    columns: int
    failures: dict[str, str]


def section(rounds: int = ROUNDS) -> str:
    """Measure, and write the section."""
    corpus = tpc_ds()
    job = {"statements": corpus.texts[:STATEMENTS], "dialect": corpus.dialect, "schema": corpus.schema}
    results = compare(job, rounds)
    own = results["govtool"].per_second
    labels = {
        "sqlglot": "sqlglot.lineage, all columns at once",
        "sqlglot-prepared": "sqlglot.lineage, prepared by hand",
        "sqlglot-by-column": "sqlglot.lineage, a call a column",
        "openlineage-sql": "openlineage-sql, in Rust",
        "sqllineage-rs": "sqllineage-rs, in Rust",
    }
    rows = [
        [
            labels.get(r.name, r.name),
            r.version,
            f"{r.per_second:.1f}" if r.per_second < 100 else f"{r.per_second:.0f}",
            "" if r.name == "govtool" else f"**{own / r.per_second:.1f}**",
            r.columns,
            len(r.failures),
        ]
        for r in sorted(results.values(), key=lambda r: -r.per_second)
    ]
    head = ["tool", "version", "statements/s", "govtool is faster by", "columns found", "statements failed"]
    return f"""{TITLE}

The first {STATEMENTS} queries of TPC-DS one at a time, from text to column lineage, one core, imports not counted;
{rounds} rounds in turn. sqlglot.lineage is called for all output columns at once, for one after another, and with
everything prepared once that its parameters allow (parsed, qualified, scoped, no copies, no trimming). sqllineage is
given `INSERT INTO …` before each query, as it reports nothing for a bare SELECT; sqllineage-rs has the schema as its
catalog, openlineage-sql takes none. Goals: 700 statements/s, 2 times sqlglot.lineage over all columns, 15 times
lineagex, 100 times sqllineage. govtool is run as {form()} here.

{table(head, rows)}

{_failures(results)}
"""


def compare(job: dict[str, Any], rounds: int) -> dict[str, Result]:
    """Run all tools over a job, in turn."""
    interpreters = dict.fromkeys(OWN, sys.executable) | {name: ensure(name) for name in LINEAGE}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in interpreters}
    for _ in range(rounds):
        for name, python in interpreters.items():
            answers[name].append(run(python, name, job))
    results = {}
    for name, given in answers.items():
        rate = statistics.median(len(a["seconds"]) / sum(a["seconds"]) for a in given)
        results[name] = Result(name, given[0]["version"], rate, sum(given[0]["columns"]), given[0]["failures"])
    return results


def ensure(name: str) -> str:
    """Make a peer's environment if there is none; returns its interpreter."""
    folder = PEERS / name
    python = folder / "bin" / "python"
    stamp = folder / ".requirements"
    wanted = "\n".join(REQUIREMENTS[name])
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
        if Path(uv).exists():
            subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
            subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *REQUIREMENTS[name]], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", *REQUIREMENTS[name]], check=True)
        stamp.write_text(wanted)
    return str(python)


def run(python: str, name: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run one tool over a job in its own process.

    Raises:
        RuntimeError: The process failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if python == sys.executable else ""}
    command = [python, str(WORKER), name]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} exited with {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _failures(results: dict[str, Result]) -> str:
    """What failed, by tool and reason."""
    lines = []
    for result in results.values():
        reasons = Counter(text.split(":")[0] for text in result.failures.values())
        examples = {text.split(":")[0]: text for text in reversed(result.failures.values())}
        for reason, count in reasons.most_common():
            text = examples[reason].replace("|", "\\|")
            lines.append(f"* {result.name}: {count} × {reason}" + (f", such as `{text}`" if text != reason else ""))
    return "Failures:\n\n" + "\n".join(lines) if lines else "No tool failed."
