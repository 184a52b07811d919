"""Two runs compared: content before names, rows before files, and nothing called equal that was not compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from govtool.model.diagnostic import Diagnostic
from govtool.model.file_listing import FileListing, ListedFile
from govtool.model.reproduction import FunctionCode, Reproduction
from govtool.model.run import Batches, Offsets, Run, RunInput, RunOutput, Software
from govtool.model.version import ContentIdentity
from govtool.query.runs.aspects import EQUAL, EQUAL_ROWS, UNKNOWN
from govtool.query.runs.diff import diff_runs
from govtool.query.runs.history import History

PLAN = "filter [(amount > ‹aa›)]\n  logical_relation [amount]"
FACTS = Reproduction("key", ("a1",), PLAN, (), ())
CODE = (Software("git", "c1"), Software("module:helper", "h1"), Software("script:job.py", "s1"), Software("spark", "4"))


def listing(*files):
    listed = tuple(ListedFile(*file) for file in files)
    return FileListing(len(listed), sum(f.size for f in listed), max(f.modified for f in listed), repr(listed),
                       repr([file[:2] for file in listed]), listed)  # fmt: skip


def read(name, *files, **more):
    found = listing(*files)
    return RunInput(name, 10, listing=found, identity=found.identity, **more)


def content(text):
    return ContentIdentity("content", None, text, 1, 1)


def wrote(name, text, rows="", **more):
    return RunOutput(name, "overwrite", 5, content=content(text), row_digest=rows, **more)


def a_run(minute, inputs, outputs, facts=FACTS, software=CODE, config=None, **more):
    start = f"2026-11-20T00:{minute:02d}"
    return Run(
        id=f"app/{minute}", job="job", status="complete", how="plan", started=f"{start}:00Z", ended=f"{start}:30Z",
        inputs=tuple(inputs), outputs=tuple(outputs), reproduction=facts, software=software, host="Linux",
        config=config or {"spark.sql.ansi.enabled": "true"}, plan="filter (amount, ?)", **more,
    )  # fmt: skip


IN = ("file:/in/a.parquet", 100, 1000)


def compared(second=None, *, first_out=None, second_out=None, history=(), **changes):
    """The first run and one that differs from it as given."""
    one = a_run(10, [read("in", IN)], [first_out or wrote("out", "c1")])
    two = replace(second or a_run(20, [read("in", IN)], [second_out or wrote("out", "c2")]), **changes)
    return diff_runs(History([*history, one, two]), one, two)


def cause(result):
    found = [change.cause for change in result.changes if change.aspect == "output" and change.cause]
    return found[0].kind, found[0].text


def facts(**more):
    return replace(FACTS, **more)


def test_equal_content_under_other_names_is_equal():
    result = compared(second_out=wrote("out", "c1"))
    assert (result.verdict, result.changes, result.not_comparable, result.reproduced) == (EQUAL, (), (), True)
    assert {result.state(aspect) for aspect in ("input", "code", "arguments", "plan", "data")} == {EQUAL}


def test_equal_rows_in_other_files_are_equal_rows():
    result = compared(first_out=wrote("out", "c1", "r1"), second_out=wrote("out", "c2", "r1"))
    assert (result.verdict, result.changes) == (EQUAL_ROWS, ())


def test_other_files_without_digests_of_rows_are_unknown_and_name_the_setting():
    result = compared(first_out=wrote("out", "c1"), second_out=wrote("out", "c2", "r2"))
    assert result.verdict == UNKNOWN
    assert [(u.aspect, u.name, u.which, u.why) for u in result.not_comparable] == [
        ("output", "rows of out", "first", "[spark] row_digests = true")
    ]


def test_an_output_that_was_never_read_is_unknown():
    result = compared(second_out=RunOutput("out", "overwrite", 5))
    assert result.verdict == UNKNOWN
    assert ("output", "out", "second") in [(u.aspect, u.name, u.which) for u in result.not_comparable]


NEW_PLAN = PLAN.replace(">", "<")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"software": (*CODE[:2], Software("script:job.py", "s2"), CODE[3]), "reproduction": facts(signature=NEW_PLAN)},
         ("code", "script:job.py s1 → s2; the plan of job: filter [(amount > ?)] → filter [(amount < ?)]")),
        ({"software": (CODE[0], Software("module:helper", "h2"), *CODE[2:]), "reproduction": facts(signature=PLAN + "udf")},
         ("code", "module:helper h1 → h2; the plan of job: logical_relation [amount] → logical_relation [amount]udf")),
        ({"reproduction": facts(arguments=("a2",), signature=PLAN.replace("aa", "bb"))},
         ("arguments", "argument 1 differs; a literal of the plan: filter [(amount > ?)]")),
        ({"config": {"spark.sql.ansi.enabled": "false"}}, ("config", "spark.sql.ansi.enabled true → false")),
        ({"software": (*CODE[:3], Software("spark", "5"))}, ("environment", "spark 4 → 5")),
        ({"reproduction": facts(signature=PLAN.replace("aa", "bb"))},
         ("plan", "a literal of the plan: filter [(amount > ?)]")),
        ({"reproduction": facts(driver_data=("d2",))}, ("data", "data of the driver absent → d2")),
        ({"reproduction": facts(functions=("rand(11)", "sum of floats"))}, ("chance", "rand(), sum of floats")),
    ],
    ids=["operator", "helper", "argument", "setting", "package", "literal", "driver", "chance"],
)  # fmt: skip
def test_the_first_cause_of_one_change(changes, expected):
    assert (
        cause(compared(first_out=wrote("out", "c1", "r1"), second_out=wrote("out", "c2", "r2"), **changes)) == expected
    )


def different(**changes):
    return compared(first_out=wrote("out", "c1", "r1"), second_out=wrote("out", "c2", "r2"), **changes)


def test_code_is_no_cause_where_the_whole_plan_is_the_same():
    software = (*CODE[:2], Software("script:job.py", "with a comment"), CODE[3])
    result = different(software=software, reproduction=facts(functions=("rand(1)",)))
    assert [change.aspect for change in result.changes] == ["code", "output"]
    assert cause(result) == ("chance", "rand()")


def test_code_is_a_cause_where_a_function_of_python_is_called():
    one = facts(signature=PLAN + "\npython_udf f(x)")
    runs = [a_run(n, [read("in", IN)], [wrote("out", str(n), str(n))], one) for n in (1, 2)]
    runs[1] = replace(runs[1], software=(*CODE[:2], Software("script:job.py", "s2"), CODE[3]))
    assert cause(diff_runs(History(runs), *runs))[0] == "code"


def test_what_a_function_of_python_reads_beside_its_arguments_is_not_compared():
    one = facts(signature=PLAN + "\npython_udf f(x)")
    runs = [a_run(n, [read("in", IN)], [wrote("out", str(n), str(n))], one) for n in (1, 2)]
    found = "nothing that was compared differs; not compared: the content of files, which are known by size and time"
    expected = f"{found}, what code outside of the plan reads (python_udf)"
    assert cause(diff_runs(History(runs), *runs)) == ("unknown", expected)


def test_a_commit_of_other_files_is_no_change_of_the_code():
    assert different(software=(Software("git", "c2"), *CODE[1:])).state("code") == EQUAL


def test_nothing_is_called_equal_that_was_thrown_away():
    old = a_run(1, [read("in", IN)], [wrote("out", "c1", "r1")], None)
    new = a_run(2, [read("in", IN)], [wrote("out", "c2", "r2")], None)
    kind, text = cause(diff_runs(History([old, new]), old, new))
    assert (kind, text) == ("unknown", "nothing that was compared differs; not compared: arguments, literals")


def test_digests_under_other_keys_are_not_compared():
    result = different(reproduction=facts(key="other", arguments=("x9",), signature=PLAN.replace("aa", "zz")))
    assert cause(result) == ("unknown", "nothing that was compared differs; not compared: arguments, plan")
    assert result.state("arguments") == "not compared"


def test_an_input_whose_reading_is_unsettled_is_unknown():
    unsettled = RunInput("in", 10, unsettled="a file changed while the run read it")
    result = different(inputs=(unsettled,))
    assert [(u.aspect, u.which, u.why) for u in result.not_comparable] == [
        ("input", "second", "a file changed while the run read it")
    ]
    words = "input in may have been other data: a file changed while the run read it"
    assert cause(result) == ("unknown", words)
    beside = (unsettled, read("more", ("file:/in/b.parquet", 100, 2000)))
    one = a_run(10, [read("in", IN), read("more", ("file:/in/b.parquet", 100, 1000))], [wrote("out", "c1")])
    two = a_run(20, beside, [wrote("out", "c2")])
    touched = diff_runs(History([one, two]), one, two)
    assert cause(touched) == ("unknown", words)  # that another input was written again says less


def test_an_input_that_was_only_written_again_is_the_last_cause():
    again = (read("in", ("file:/in/a.parquet", 100, 2000)),)
    assert cause(different(inputs=again)) == ("input", "in written again, with the same names and sizes")
    assert cause(different(inputs=again, config={"spark.sql.ansi.enabled": "false"}))[0] == "config"


def test_another_input_is_the_first_cause():
    other = (read("in", ("file:/in/a.parquet", 101, 2000)),)
    kind, _ = cause(different(inputs=other, config={"spark.sql.ansi.enabled": "false"}))
    assert kind == "no-provenance"


def test_what_a_plan_reads_of_the_same_files_is_no_change_of_the_input():
    fewer = (replace(read("in", IN), rows=3, fields=(("amount", "long"),)),)
    assert different(inputs=fewer).state("input") == EQUAL


def test_an_input_that_an_upstream_run_wrote_again_alike_is_the_same():
    files = [("file:/in/b.parquet", 100, minute) for minute in (1, 2)]
    makers = [
        a_run(minute, [], [replace(wrote("in", "same"), left=listing(file))])
        for minute, file in zip((1, 15), files, strict=True)
    ]
    one = a_run(10, [read("in", files[0])], [wrote("out", "c1")])
    two = a_run(20, [read("in", files[1])], [wrote("out", "c1")])
    history = History([*makers, one, two])
    assert [reading.exact for reading in history.readings(two)] == [True]
    assert diff_runs(history, one, two).changes == ()


def function(name="clean", code="c1", unknown=(), **captured):
    return FunctionCode(name, code, tuple(sorted(captured.items())), tuple(unknown))


def with_functions(*pairs):
    first, second = (facts(python=tuple(functions)) for functions in pairs)
    one = a_run(10, [read("in", IN)], [wrote("out", "c1")], first)
    two = a_run(20, [read("in", IN)], [wrote("out", "c2")], second)
    return diff_runs(History([one, two]), one, two)


def test_a_value_that_a_function_took_along_is_a_cause():
    result = with_functions([function(limit="1", table="2")], [function(limit="9", table="2")])
    assert cause(result) == ("plan", "captured value limit of function clean differs")
    assert cause(with_functions([function()], [function(limit="9")])) == (
        "plan",
        "captured value limit of function clean is only in one run",
    )


def test_the_code_of_a_function_is_a_cause():
    result = with_functions([function(code="c1")], [function(code="c2")])
    assert cause(result) == ("plan", "the code of function clean differs")


def test_functions_of_one_name_are_told_apart_by_what_they_are():
    one, two = function("<lambda>", k="1"), function("<lambda>", k="2")
    assert [c for c in with_functions([one, two], [two, one]).changes if c.aspect == "plan"] == []
    other = with_functions([one, two], [two, function("<lambda>", k="3")])
    assert [(c.name, c.before, c.after) for c in other.changes if c.aspect == "plan"] == [
        ("captured value k of function <lambda>", "1", "3")
    ]


def test_a_value_without_a_digest_is_not_comparable_and_no_cause():
    known, unknown = function(k="1", model="m"), function(k="1", unknown=[("model", "LinearRegression")])
    for pair, which in (((unknown, unknown), "both"), ((known, unknown), "second")):
        result = with_functions(*([each] for each in pair))
        gaps = [each for each in result.not_comparable if each.aspect == "plan"]
        assert [(each.name, each.which) for each in gaps] == [("captured value model of function clean", which)]
        assert "LinearRegression" in gaps[0].why
        assert result.state("plan") == "in part"
        assert cause(result)[0] == "unknown"
        assert "captured value model of function clean" in cause(result)[1]


def test_runs_of_before_have_no_functions_to_compare():
    first, second = facts(), facts(python=(function(k="1"),))
    one = a_run(10, [read("in", IN)], [wrote("out", "c1")], first)
    two = a_run(20, [read("in", IN)], [wrote("out", "c2")], second)
    result = diff_runs(History([one, two]), one, two)
    gaps = [(each.name, each.which) for each in result.not_comparable if each.aspect == "plan"]
    assert gaps == [("Python functions", "first")]


def test_functions_under_another_key_are_not_compared():
    result = with_functions([function(k="1")], [function(k="2")])
    assert cause(result)[0] == "plan"
    one = a_run(10, [read("in", IN)], [wrote("out", "c1")], facts(python=(function(k="1"),)))
    two = a_run(20, [read("in", IN)], [wrote("out", "c2")], facts(key="other", python=(function(k="2"),)))
    assert cause(diff_runs(History([one, two]), one, two))[0] == "unknown"


def test_what_a_database_answered_is_never_an_equal_input():
    note = Diagnostic("break.query", "warning", "a query that another database answers", "job.py")
    runs = [a_run(n, [], [wrote("out", text)], breaks=(note,)) for n, text in enumerate(("old", "new"))]
    found = diff_runs(History(runs), *runs)
    assert found.state("input") == "not compared"
    (output,) = found.changes
    assert output.cause.kind == "unknown"
    assert "not compared: input" in output.cause.text
    without = [replace(run, breaks=()) for run in runs]
    assert diff_runs(History(without), *without).state("input") == "equal"


FILES = "FileStreamSource[file:/in]"


def of_batch(number, query="q", start="s1", source=FILES, **more):
    batches = Batches(query, start, number, number, (Offsets(source, str(number), str(number + 1), 5),))
    name = more.pop("output", f"c{number}")
    return a_run(10 + number, [RunInput("in")], [wrote("out", name, name)], batches=batches, **more)


def of_batches(one, two):
    return diff_runs(History([one, two]), one, two)


def test_batches_of_a_stream_differ_first_by_what_they_read():
    result = of_batches(of_batch(0), of_batch(1, facts=facts(arguments=("a2",))))
    assert cause(result) == ("input", f"{FILES} 0 … 1 → 1 … 2")
    assert result.state("input") == "different"


def test_a_batch_that_ran_again_read_the_same():
    result = of_batches(of_batch(1), of_batch(1, start="s2", output="other"))
    assert [change.aspect for change in result.changes] == ["output"]
    assert cause(result)[0] == "unknown"
    assert "not compared: input" in cause(result)[1]


def test_positions_of_files_mean_nothing_to_another_checkpoint_and_those_of_a_log_do():
    topic = "KafkaV2[Subscribe[clicks]]"
    for source, expected in ((FILES, "unknown"), (topic, "input")):
        assert cause(of_batches(of_batch(0, source=source), of_batch(1, "other", "s2", source)))[0] == expected


def test_settings_that_a_checkpoint_kept_are_no_change_of_a_restart():
    kept = {"spark.sql.ansi.enabled": "true", "spark.sql.streaming.join.stateFormatVersion": "2"}
    assert of_batches(of_batch(1), of_batch(1, start="s2", config=kept)).changes == ()
    other = {**kept, "spark.sql.ansi.enabled": "false"}
    changes = of_batches(of_batch(1), of_batch(1, start="s2", config=other)).changes
    assert [(change.aspect, change.name) for change in changes] == [("config", "spark.sql.ansi.enabled")]
    assert of_batches(of_batch(1), of_batch(1, config=kept)).changes != ()


def stated(version):
    return RunInput("t", None, identity=ContentIdentity("stated", version, str(version), 0, 0))


def test_of_a_dataset_in_several_versions_equal_ones_are_no_change():
    one = a_run(10, [stated(6), stated(7)], [wrote("out", "c1")])
    two = a_run(20, [stated(7), stated(8)], [wrote("out", "c2")])
    changes = [each for each in diff_runs(History([one, two]), one, two).changes if each.aspect == "input"]
    assert [(each.before, each.after) for each in changes] == [("stated version 6", "stated version 8")]
