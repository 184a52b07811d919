"""Whatever goes wrong on our side, a job prints what it prints and ends as it ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from govtool.app.runs import job as job_module
from govtool.app.runs.job import command_of, environment, exit_as, read_captured, repository_state
from govtool.errors import UsageError
from govtool.spark.live.spool import Spool

GOVTOOL = [sys.executable, "-c", "import sys; from govtool.cli.main import main; sys.exit(main())"]
TROUBLE = Path(__file__).parent / "live_trouble.py"


def govtool(folder, *words, **options):
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([*GOVTOOL, *words], cwd=folder, **options)


def script(folder, text):
    (folder / "job.py").write_text(text)
    return str(folder / "job.py")


# ---- without Spark: what passes through -----------------------------------------------------------------------------


def test_streams_arguments_and_exit_code_pass_through(tmp_path):
    job = script(
        tmp_path,
        "import sys\nprint(sys.argv[1:], sys.stdin.read())\nprint('aside', file=sys.stderr)\nsys.exit(5)",
    )
    done = govtool(tmp_path, "run", "--", job, "--day", "-x", input="in")
    assert (done.returncode, done.stdout) == (5, "['--day', '-x'] in\n")
    assert done.stderr.splitlines()[:2] == ["aside", "warning: no Spark session was seen: nothing to commit"]
    assert "pip install pyspark" in done.stderr.splitlines()[2]


@pytest.mark.parametrize(("java_home", "says"), [("/no/such/java", "JAVA_HOME is /no/such/java, which has no bin/java"),
                                                ("", "there is no Java")])  # fmt: skip
def test_a_job_without_java_says_what_is_missing(tmp_path, monkeypatch, java_home, says):
    monkeypatch.setenv("JAVA_HOME", java_home)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = govtool(tmp_path, "run", "--", script(tmp_path, "raise SystemExit(1)"))
    assert f"hint: {says}" in done.stderr


def test_a_command_of_spark_without_pyspark_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(job_module, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as raised:
        job_module.run_job(["spark-submit", "etl.py"], tmp_path / "spool")
    assert raised.value.hint.startswith("PySpark is not installed: pip install 'govtool[spark]'")


def test_a_job_ends_us_as_it_ended_itself(tmp_path):
    job = script(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert govtool(tmp_path, "run", "--", job).returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_handed_on(tmp_path, number):
    job = script(
        tmp_path,
        "import signal, sys\n"
        "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
        "    signal.signal(n, lambda n, _: (print('got', n), sys.exit(40 + n)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()",
    )
    with subprocess.Popen(
        [*GOVTOOL, "run", "--", job], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        stated, _ = process.communicate(timeout=60)
    assert (stated, process.returncode) == (f"got {int(number)}\n", 40 + number)


def test_a_job_keeps_its_own_sitecustomize(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.MINE = 1")
    job = script(tmp_path, "print(MINE)")
    done = govtool(tmp_path, "run", "--", job, env={**os.environ, "PYTHONPATH": str(tmp_path / "own")})
    assert done.stdout == "1\n"


def test_modules_code_and_other_commands_run_too(tmp_path):
    (tmp_path / "tool.py").write_text("import sys\nprint('module', sys.argv[1:])")
    assert govtool(tmp_path, "run", "--", "-m", "tool", "x").stdout == "module ['x']\n"
    assert govtool(tmp_path, "run", "--", "sh", "-c", "echo $0; exit 4", "y").returncode == 4
    spools = tmp_path / "spools"
    spools.mkdir()
    missing = govtool(tmp_path, "run", "--", "no-such-command", env={**os.environ, "TMPDIR": str(spools)})
    assert missing.returncode == 2
    assert "usage.command" in missing.stderr
    assert not list(spools.iterdir())
    with pytest.raises(UsageError, match="no job"):
        command_of([])


def test_nothing_is_imported_before_pyspark_is(tmp_path):
    job = script(
        tmp_path,
        "import sys\nprint(sorted(m for m in sys.modules if m.startswith(('govtool', 'pyspark', 'numpy', 'pyarrow'))))",
    )
    done = govtool(tmp_path, "run", "--", job)
    assert done.stdout == (
        "['govtool', 'govtool.release', 'govtool.spark', 'govtool.spark.live', 'govtool.spark.live.hook', 'govtool.spark.live.process', 'govtool.spark.live.spool']\n"
    )


def test_workers_of_spark_are_left_alone(tmp_path):
    program = "import sys; print(any(m.startswith('govtool') for m in sys.modules))"
    worker = {**environment(tmp_path), "PYTHON_WORKER_FACTORY_SECRET": "x"}
    stated = subprocess.run([sys.executable, "-c", program], env=worker, capture_output=True, text=True, check=True)
    assert stated.stdout == "False\n"


def test_the_state_of_a_repository(tmp_path):
    assert repository_state(tmp_path) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "a").write_text("1")
    subprocess.run([*git, "add", "a"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    state = repository_state(tmp_path)
    assert len(state) == 40
    (tmp_path / "a").write_text("2")
    assert repository_state(tmp_path) == f"{state}+"


def test_exit_codes():
    assert [exit_as(code) for code in (0, 3, 255)] == [0, 3, 255]


# ---- the spool -------------------------------------------------------------------------------------------------------


def test_a_spool_that_cannot_be_written_loses_lines_and_says_how_many(tmp_path):
    spool = Spool(str(tmp_path / "gone"))
    assert not spool.write({"e": "process"})
    assert spool.lost == 1
    (tmp_path / "gone").mkdir()
    assert spool.write({"e": "process"})


def test_a_full_disk_tears_one_line_and_the_next_is_whole_again(tmp_path):
    spool = Spool(str(tmp_path))
    assert spool.write({"e": "process", "pid": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, hard))
    try:
        assert not spool.write({"e": "session", "application": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert spool.write({"e": "session", "application": "app"})
    assert spool.write({"e": "end"})
    (process,) = __import__("govtool.capture.spark.live.spool", fromlist=["read_spool"]).read_spool(tmp_path)
    assert (process.torn, [s["application"] for s in process.sessions], spool.lost) == (1, ["app"], 1)
    assert "1 records were cut off" in read_captured(tmp_path).warnings


def test_a_line_beyond_all_measure_becomes_a_break(tmp_path):
    spool = Spool(str(tmp_path))
    assert spool.write({"e": "session", "application": "a"})
    assert spool.write({"e": "execution", "n": 1, "ok": True, "plan": ["x" * (9 << 20)]})
    gathered = read_captured(tmp_path).gathered
    assert [note.code for run in gathered.runs for note in run.breaks] == ["break.plan"]
    assert "too large" in gathered.runs[0].breaks[0].message


def test_a_spool_of_anything_is_read_without_an_error(tmp_path):
    lines = [
        '{"e": "session", "application": "a"}',
        '{"e": "execution", "n": 1, "ok": true, "plan": [{"c": "Project", "n": 3}]}',
        '{"e": "execution", "n": 2, "ok": true, "plan": [1, 2]}',
        '{"e": "execution", "n": 3, "ok": true, "plan": [{"c": "Filter", "n": 0}]}',
        '{"e": "execution", "n": 4, "ok": false, "error": "AnalysisException: x", "break": "plan-unanalyzed"}',
        '{"e": "stream", "stream": "s", "plan": [{}]}',
        '{"e": "progress", "query": "q", "run": 3, "batch": "x", "sources": 4}',
        '{"e": "progress", "query": "q", "run": "r", "batch": 1, "sources": [3, {"rows": "many"}], "sink": []}',
        '{"e": "execution", "n": "x", "execution": 4, "root": 4, "batch": [1, 2], "plan": [{}]}',
        '{"e": "batch", "stream": "s", "ids": ["x", 1]}',
        "[1]", "{", "\x00", "",
    ]  # fmt: skip
    (tmp_path / "1-1.jsonl").write_text("\n".join(lines))
    captured = read_captured(tmp_path)
    assert captured.gathered.outcomes == {"opaque": 3, "ignored": 2}
    assert "3 records were cut off" in captured.warnings
    assert any("killed" in warning for warning in captured.warnings)


def test_what_cannot_be_committed_is_kept(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "1-1.jsonl").write_text('{"e": "session", "application": "a"}\n{"e": "end", "lost": 0}\n')
    job = script(tmp_path, "print('ran')")
    done = govtool(tmp_path, "run", "--spool", str(spool), "--", job)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "there is no store" in done.stderr
    assert "hint: make one: govtool init --store" in done.stderr
    assert f"govtool run --commit {spool}" in done.stderr
    assert list(spool.iterdir())
    assert govtool(tmp_path, "init").returncode == 0
    assert govtool(tmp_path, "run", "--commit", str(spool)).returncode == 0
    assert not spool.exists()


# ---- with Spark ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_job_does_not_notice_what_happens_to_its_records(tmp_path):
    settings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    govtool(tmp_path, "init")
    plain = subprocess.run(
        [sys.executable, str(TROUBLE), "plain"], env=settings, capture_output=True, text=True, check=False
    )
    done = govtool(tmp_path, "run", "--", str(TROUBLE), "trouble", env=settings)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (7, "2\n10\n4\n0\n7\n")
    assert "warning: no Spark session was seen" in done.stderr  # the spool is gone
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_spark_submit_is_recorded(tmp_path):
    settings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    govtool(tmp_path, "init")
    submit = str(Path(sys.executable).parent / "spark-submit")
    spool = tmp_path / "spool"
    spool.mkdir()
    done = govtool(tmp_path, "run", "--spool", str(spool), "--", submit, str(TROUBLE), "plain", env=settings)
    assert (done.returncode, done.stdout) == (7, "2\n10\n4\n0\n7\n")
    assert "run:live_trouble.py" in done.stderr or "1 application" in done.stderr


ATTACHED = """
import sys
from pyspark.sql import SparkSession, functions as F
import govtool.spark
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.range(3).write.parquet("before")
capture = govtool.spark.attach(spark, source="notebook")
spark.read.parquet("before").select((F.col("id") + 1).alias("x")).write.parquet("one")
first = capture.commit()
spark.read.parquet("one").select(F.max("x").alias("y")).write.parquet("two")
second = capture.commit()
print(first.commit.seq, second.commit.seq, second.counts["applications"], capture.commit().created)
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_notebook_attaches_and_commits_as_often_as_it_likes(tmp_path):
    govtool(tmp_path, "init")
    settings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", ATTACHED], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1 2 1 False\n"), done.stderr
    runs = govtool(tmp_path, "runs", "-f", "json")
    assert runs.stdout.count('"complete"') == 2
    impact = govtool(tmp_path, "impact", "before.id")
    assert "two.y" in impact.stdout.replace("\n", "")
