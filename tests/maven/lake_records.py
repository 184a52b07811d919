"""Jobs over tables of a lake format whose rows are recorded, and traces of them against the data in plain Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lake_jobs import run_job

from govtool.cli.main import main


class Traced:
    """A recorded job: questions about it, from its folder."""

    def __init__(self, folder: Path, capsys: Any) -> None:
        self.folder, self._capsys = folder, capsys

    def ask(self, *words: str) -> tuple[int, Any]:
        """A command's exit code and its answer; what it printed to stderr where it has none."""
        self._capsys.readouterr()
        code = main([*words, "--format", "json", "--store", str(self.folder / ".govtool")])
        shown = self._capsys.readouterr()
        return code, json.loads(shown.out) if shown.out else shown.err

    def back(self, output: str, where: str, *more: str) -> dict[str, Any]:
        """A trace back that is exact, by DuckDB, and whose plan gives the written rows again."""
        code, answer = self.ask("trace", "back", output, "--where", where, "--verify", *more)
        assert code == 0, answer
        assert answer["engine"] == "DuckDB", answer["engine"]
        return answer

    def rows(self, answer: Mapping[str, Any], part: str = "inputs") -> dict[str, list[tuple[Any, ...]]]:
        """Rows by dataset, without their places, sorted; those of the runs before count, too."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        for each in [*answer[part], *(each for hop in answer["hops"] for each in hop[part])]:
            assert each["exactness"] == "exact", each
            name = each["dataset"].removeprefix(f"file://{self.folder}/")
            values = [tuple(v for k, v in row.items() if not k.startswith("_")) for row in each["rows"]]
            found[name] = sorted(values, key=repr)
        return found


def record(folder: Path, script: str, jars: Sequence[Path], settings: Mapping[str, str]) -> str:
    """Run a script under ``govtool run --records``; what it said at the end."""
    own = [sys.executable, "-m", "govtool"]
    ran = run_job(
        folder, script, jars, settings, command=[*own, "run", "--records", "--", "job.py"], before=[*own, "init"]
    )
    assert ran.code == 0, ran.err
    return ran.err + ran.out
