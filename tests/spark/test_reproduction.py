"""`govtool run` twice: unchanged runs are equal, and of runs with one change the first cause is that change."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.cli.main import main

JOB = Path(__file__).parents[2] / "fixtures" / "spark" / "jobs" / "reproduction.py"
GOVTOOL = [sys.executable, "-c", "import sys; from govtool.cli.main import main; sys.exit(main())"]


class Project:
    """A folder with a job, its helper, a package and an input; each run starts from the same state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        self.orders(folder / "in" / "orders.parquet", 7919)
        self.orders(folder / "other.parquet", 7877)
        shutil.copy2(folder / "in" / "orders.parquet", folder / "kept.parquet")
        self.reset()
        self.govtool("init", "-q")

    @staticmethod
    def orders(file: Path, factor: int) -> None:
        rows = range(4000)
        pq.write_table(
            pa.table({"customer": [n % 41 for n in rows], "amount": [n * factor % 1000 for n in rows]}), file
        )

    def reset(self) -> None:
        shutil.copyfile(JOB, self.folder / "job.py")
        (self.folder / "helper.py").write_text("MOST = 900\n")
        self.package("1.0", 2)
        shutil.copy2(self.folder / "kept.parquet", self.folder / "in" / "orders.parquet")

    def package(self, version: str, factor: int) -> None:
        packages = self.folder / "site-packages"
        shutil.rmtree(packages, ignore_errors=True)
        (packages / f"acme-{version}.dist-info").mkdir(parents=True)
        (packages / "acme.py").write_text(f"FACTOR = {factor}\n")
        about = packages / f"acme-{version}.dist-info"
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme\nVersion: {version}\n")
        (about / "RECORD").write_text("acme.py,,\n")

    def edit(self, old: str, new: str) -> None:
        text = (self.folder / "job.py").read_text()
        assert old in text
        (self.folder / "job.py").write_text(text.replace(old, new))

    def govtool(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        paths = [str(self.folder / "site-packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "TZ": "UTC",
            "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
            "GOVTOOL_DIGEST_KEY": str(self.folder / "digest.key"), **more,
        }  # fmt: skip
        return subprocess.run(
            [*GOVTOOL, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def run(self, argument: str = "10", **environment: str) -> dict[str, str]:
        """Run the job; the ids of its runs by output."""
        done = self.govtool("run", "--", "job.py", argument, **environment)
        assert done.returncode == 0, done.stderr
        found: dict[str, str] = {}
        for run in self.answer("runs", "--all")["runs"]:
            for output in run["outputs"]:
                found.setdefault(output["dataset"].rpartition("/")[2].strip('"'), run["id"])
        return found

    def diff(self, old: str, new: str) -> dict:
        return self.answer("diff", old, new)

    def answer(self, *words: str) -> dict:
        """What a question answers as JSON; it needs no process of its own."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            assert main([*words, "-f", "json"]) == 0
        return json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("reproduction"))


@pytest.fixture(scope="module")
def base(project):
    return project.run()


@pytest.fixture
def fresh(project, base):
    project.reset()
    yield project
    project.reset()


def first_cause(answer: dict) -> tuple[str, str]:
    causes = [change["cause"] for change in answer["changes"] if change["aspect"] == "output" and change["cause"]]
    assert causes, answer
    return causes[0]["kind"], causes[0]["text"]


@pytest.mark.slow
def test_an_unchanged_run_is_equal(fresh, base):
    again = fresh.run()
    for output in ("agg", "counts", "days", "made"):
        answer = fresh.diff(base[output], again[output])
        assert (answer["verdict"], answer["changes"], answer["unknown"]) == ("equal", [], []), output
    assert first_cause(fresh.diff(base["drawn"], again["drawn"])) == ("chance", "rand()")


@pytest.mark.slow
def test_what_a_job_sets_after_an_action_is_not_a_setting_of_it(fresh, base):
    run = fresh.answer("show", base["made"])
    assert run["run"]["config"]["spark.sql.session.timeZone"] == "UTC"


CAUSES = {
    "argument": (lambda p: p.run("400"), {"agg": ("arguments", "argument 1 differs"), "counts": ("arguments", "")}),
    "operator, zone": (
        lambda p: p.edit('"amount") > limit', '"amount") <= limit') or p.run(TZ="Asia/Tokyo"),
        {"agg": ("code", "<="), "days": ("config", "spark.sql.session.timeZone UTC → Asia/Tokyo")},
    ),
    "literal": (lambda p: p.edit("total >= 100", "total >= 80000"), {"agg": ("code", "a literal of the plan")}),
    "helper": (lambda p: (p.folder / "helper.py").write_text("MOST = 500\n"), {"agg": ("code", "module:helper")}),
    "package": (lambda p: p.package("2.0", 3), {"agg": ("environment", "acme 1.0 → 2.0")}),
    "swapped": (lambda p: p.run(SWAP="before"), {"agg": ("no-provenance", "/in")}),
    "driver": (lambda p: p.run(NAME="eins", SWAP="after"), {"made": ("data", "data of the driver")}),
}  # fmt: skip
"""What is changed; by output, the kind of the first cause of its difference and a part of its text.

Two changes share a run where no output depends on both.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [name if name == "operator, zone" else pytest.param(name, marks=pytest.mark.long) for name in CAUSES],
)
def test_the_first_cause_is_what_was_changed(fresh, base, change):
    act, causes = CAUSES[change]
    done = act(fresh)
    runs = done if isinstance(done, dict) else fresh.run()
    for output, (kind, text) in causes.items():
        answer = fresh.diff(base[output], runs[output])
        found = first_cause(answer)
        assert found[0] == kind, answer
        assert text in found[1], answer
    if change == "driver":  # the input was replaced after it was read: what was read is what counts
        answer = fresh.diff(base["agg"], runs["agg"])
        assert (answer["verdict"], answer["changes"]) == ("equal", [])


@pytest.mark.long
def test_an_input_that_is_replaced_between_its_listing_and_the_read_is_unknown(fresh, base):
    answer = fresh.diff(base["agg"], fresh.run(SWAP="between")["agg"])
    assert ("input", "second") in [(each["aspect"], each["which"]) for each in answer["unknown"]]
    kind, text = first_cause(answer)
    assert kind == "unknown"
    assert "input" in text
