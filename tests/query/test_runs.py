"""The history of runs: what was read, what lives on, what follows, and why two runs differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.errors import UsageError
from govtool.model.run import Run, RunInput, RunOutput, Software
from govtool.model.version import ContentIdentity
from govtool.query.runs.diff import diff_runs
from govtool.query.runs.history import History, WrittenVersion
from govtool.query.selection.software import SoftwareSpec


def content(text):
    return ContentIdentity("listing", None, text, 1, 1)


def run(number, job="job", reads=(), writes=(), mode="overwrite", **more):
    """A run that takes from minute ``number`` to half a minute later."""
    start = f"2026-11-20T{number // 60:02d}:{number % 60:02d}"
    return Run(
        id=f"{job}-{number}", job=job, status="complete", how="plan", started=f"{start}:00Z", ended=f"{start}:30Z",
        inputs=tuple(RunInput(r) if isinstance(r, str) else r for r in reads),
        outputs=tuple(RunOutput(w, mode) if isinstance(w, str) else w for w in writes),
        **more,
    )  # fmt: skip


def test_a_run_reads_what_was_there_when_it_started():
    history = History(
        [run(1, "a", writes=["x"]), run(2, "b", ["x"], ["y"]), run(3, "a", writes=["x"]), run(4, "b", ["x"], ["y"])]
    )
    read = {r.id: [reading.version for reading in history.readings(r)] for r in history.runs}
    assert read == {"a-1": [], "b-2": [WrittenVersion("x", 1)], "a-3": [], "b-4": [WrittenVersion("x", 2)]}


def test_content_tells_more_than_time():
    late = replace(run(2, "b"), inputs=(RunInput("x", identity=content("one")),))
    history = History(
        [
            replace(run(0, "a"), outputs=(RunOutput("x", "overwrite", identity=content("one")),)),
            replace(run(1, "a"), outputs=(RunOutput("x", "overwrite", identity=content("two")),)),
            late,
        ]
    )
    (reading,) = history.readings(late)
    assert (reading.version, reading.exact) == (WrittenVersion("x", 1), True)


def test_a_run_does_not_read_what_it_wrote():
    both = run(1, "a", ["x"], ["x"])
    assert [r.version for r in History([both]).readings(both)] == [None]


def test_replaced_content_is_gone_but_not_what_was_made_of_it():
    bad, good = (Software("parser", "1.4"),), (Software("parser", "1.5"),)
    history = History(
        [
            run(1, "parse", writes=["clean"], software=bad),
            run(2, "report", ["clean"], ["report"]),
            run(3, "archive", ["report"], ["archive"]),
            run(4, "parse", writes=["clean"], software=good),
            run(5, "report", ["clean"], ["report"]),
        ]
    )
    flawed = [r for r in history.runs if SoftwareSpec.parse("parser==1.4").used_by(r)]
    assert history.present(history.derived(history.made_by(flawed))) == {"archive"}
    assert history.tainted(flawed) == {"archive"}
    assert history.tainted([r for r in history.runs if SoftwareSpec.parse("parser").used_by(r)]) == {"clean"}


def test_an_overwrite_of_some_partitions_keeps_the_others():
    flawed = run(1, "a", writes=["x"], software=(Software("parser", "1.4"),))
    sound = run(2, "a", writes=["x"], mode="overwrite_some", software=(Software("parser", "1.5"),))
    history = History([flawed, sound, run(3, "b", ["x"], ["y"])])
    assert history.tainted([flawed]) == {"x"}  # and what is made of it
    assert History([flawed, run(2, "a", writes=["x"]), run(3, "b", ["x"], ["y"])]).tainted([flawed]) == set()


def test_an_append_keeps_what_was_there():
    first, second = run(1, "a", writes=["x"], mode="append"), run(2, "a", writes=["x"], mode="append")
    history = History([first, second])
    assert history.made_by([first]) == {WrittenVersion("x", 1), WrittenVersion("x", 2)}
    assert [w.run.id for w in history.parts(WrittenVersion("x", 2))] == ["a-2", "a-1"]
    failed = History([first, replace(run(2, "a", writes=["x"]), status="failed")])
    assert failed.present(failed.made_by([first])) == {"x"}


names = st.sampled_from("uvwxyz")
steps = st.lists(
    st.tuples(
        st.lists(names, max_size=2, unique=True),
        st.lists(names, max_size=2, unique=True),
        st.sampled_from(["overwrite", "append", ""]),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(steps, st.sets(st.integers(0, 13)))
def test_it_is_what_a_replay_of_the_runs_gives(stated, chosen):
    """Play the runs one after another on datasets that are sets of the runs behind their content."""
    runs = [run(n, "job", reads, writes, mode) for n, (reads, writes, mode) in enumerate(stated)]
    behind: dict[str, set[int]] = {}
    for n, (reads, writes, mode) in enumerate(stated):
        given_ = set().union({n}, *(behind.get(name, set()) for name in reads))
        for name in writes:
            behind[name] = given_ | (set() if mode == "overwrite" else behind.get(name, set()))
    seeds = [runs[n] for n in chosen if n < len(runs)]
    history = History(runs)
    wanted = {name for name, origin in behind.items() if origin & chosen}
    assert history.present(history.derived(history.made_by(seeds))) == wanted
    assert history.tainted(seeds) <= wanted
    for name, origin in behind.items():
        last = WrittenVersion(name, len(history.versions(name)))
        made_of = {history.writing(v).run.id for v in history.ancestors(last)}
        assert made_of == {f"job-{n}" for n in origin}


@pytest.mark.parametrize(
    ("spec", "version", "meant"),
    [
        ("pandas", "2.0", True),
        ("pandas<2.1", "2.0.3", True),
        ("pandas<2.1", "2.1", False),
        ("pandas==2.0.0", "2.0", True),
        ("pandas==2.*", "2.7", True),
        ("pandas~=2.1.0", "2.1.9", True),
        ("pandas<2.1", "2.1rc1", False),
        ("pandas<2.1", "nightly", False),
        ("pandas==nightly", "nightly", True),
        ("pandas!=nightly", "2.0", True),
        ("Pandas", "2.0", True),
        ("pan*>=2", "2.0", True),
        ("numpy", "2.0", False),
    ],
)
def test_software(spec, version, meant):
    assert SoftwareSpec.parse(spec).matches(Software("pandas", version)) is meant


@pytest.mark.parametrize("text", ["", "<2", "pandas<", "pandas<abc def", "pandas<nightly"])
def test_no_software(text):
    with pytest.raises(UsageError):
        SoftwareSpec.parse(text)


# ---- why two runs differ ----------------------------------------------------------------------------


def wrote(name, text, rows=1):
    return RunOutput(name, "overwrite", rows, identity=content(text))


def read(name, text, rows=1):
    return RunInput(name, rows, identity=content(text))


CODE = (Software("script:job.py", "aa"), Software("spark", "4.0"))


def chain(second_parser="1.4", second_raw="r1", second_plan="plan"):
    """raw → parse → clean → report → report, twice."""
    return [
        run(1, "parse", [read("raw", "r1")], [wrote("clean", "c1")], software=(*CODE, Software("parser", "1.4"))),
        run(2, "report", [read("clean", "c1")], [wrote("report", "p1")], software=CODE, plan="plan"),
        run(3, "parse", [read("raw", second_raw)], [wrote("clean", "c2", 2)],
            software=(*CODE, Software("parser", second_parser))),
        run(4, "report", [read("clean", "c2", 2)], [wrote("report", "p2")], software=CODE, plan=second_plan),
    ]  # fmt: skip


def causes(runs):
    history = History(runs)
    result = diff_runs(history, runs[1], runs[3])
    return {(c.aspect, c.what): (c.cause.kind, c.cause.text, c.cause.way) for c in result.changes if c.cause}


def test_the_first_cause_is_found_upstream():
    assert causes(chain(second_parser="1.5")) == {
        ("input", "content"): ("environment", "parser 1.4 → 1.5", ("clean",)),
        ("input", "rows"): ("environment", "parser 1.4 → 1.5", ("clean",)),
        ("output", "content"): ("environment", "parser 1.4 → 1.5", ("clean",)),
    }
    kind, text, way = causes(chain(second_raw="r2"))["input", "content"]
    assert (kind, way) == ("no-provenance", ("clean", "raw"))
    assert "raw" in text


def test_nothing_told_differs():
    assert causes(chain())["input", "content"] == (
        "unknown", "nothing that was compared differs; not compared: plan, config, arguments, literals", ("clean",),
    )  # fmt: skip


def test_chance_is_named():
    one = run(1, "j", [read("raw", "r")], [wrote("x", "1")], software=CODE, plan="SELECT rand() FROM raw")
    other = run(2, "j", [read("raw", "r")], [wrote("x", "2")], software=CODE, plan="SELECT rand() FROM raw")
    (change,) = diff_runs(History([one, other]), one, other).changes
    assert (change.cause.kind, change.cause.text) == ("chance", "rand()")
    one, other = (
        replace(each, config={"spark.sql.ansi.enabled": on}) for each, on in ((one, "true"), (other, "false"))
    )
    found = diff_runs(History([one, other]), one, other)
    (cause,) = {change.cause for change in found.changes if change.aspect == "output"}
    assert (cause.kind, cause.text.partition("; ")[2]) == ("config", "each run may also differ by rand()")


def test_rows_that_were_added_are_the_cause():
    loads = [replace(run(n, "load"), outputs=(RunOutput("raw", "append", identity=content(f"r{n}")),)) for n in (1, 3)]
    one = run(2, "j", [read("raw", "r1")], [wrote("x", "1")], software=CODE)
    other = run(4, "j", [read("raw", "r3")], [wrote("x", "2")], software=CODE)
    result = diff_runs(History([*loads, one, other]), one, other)
    assert {(c.cause.kind, c.cause.runs) for c in result.changes} == {("added", (None, "load-3"))}


def test_what_only_one_run_tells_is_unknown_and_not_equal():
    one = run(1, "j", ["raw"], [wrote("x", "1")], plan="p")
    other = run(2, "j", ["raw"], [wrote("x", "1")], software=CODE)
    result = diff_runs(History([one, other]), one, other)
    assert result.changes == ()
    assert {(u.aspect, u.which) for u in result.not_comparable} == {
        ("input", "both"), ("code", "first"), ("plan", "second"), ("config", "both"), ("environment", "first"),
    }  # fmt: skip


def test_schema_mode_plan_config_and_status():
    one = run(
        1, "j", [replace(read("raw", "r"), fields=(("a", "int"),))], [wrote("x", "1")], plan="p\nq", config={"a": "1"}
    )
    two = run(2, "j", [replace(read("raw", "r"), fields=(("a", "bigint"),))], [replace(wrote("x", "1"), mode="append")],
              plan="p\nr", config={"a": "2", "b": "3"})  # fmt: skip
    result = diff_runs(History([one, two]), one, replace(two, status="failed"))
    assert [(c.aspect, c.name, c.what, c.before, c.after) for c in result.changes] == [
        ("input", "raw", "schema", "a int", "a bigint"),
        ("config", "a", "value", "1", "2"),
        ("config", "b", "added", None, "3"),
        ("plan", "j", "text", "q", "r"),
        ("output", "x", "mode", "overwrite", "append"),
        ("status", "j", "value", "complete", "failed"),
    ]
