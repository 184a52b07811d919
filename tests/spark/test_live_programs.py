"""The hard set: what a live session and its event log say of each program, against lineage written by hand."""

from __future__ import annotations

import pytest

from bench import programs

HARD = programs.load()


@pytest.fixture(scope="module")
def heard(spark, spark_home, tmp_path_factory):
    """All programs, run in a session of their own: what its spool and its event log say, by program."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    spool = tmp_path_factory.mktemp("spool")
    session = spark.newSession()
    # Compiling code takes longer than running any of these.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    programs.prepare(session)
    recorder = Recorder(Spool(str(spool)))
    recorder.attach(session)
    ran = programs.run_all(session, recorder, HARD)
    recorder.finish(60)
    assert (recorder.lost, recorder.spool.lost) == (0, 0)
    live, logged = programs.live(spool), programs.logged(spark_home / "events")
    return {
        each.program.name: (programs.stated(live, each.numbers), programs.stated(logged, each.numbers)) for each in ran
    }


def test_the_set_is_large_and_half_of_it_has_no_sql():
    assert len(HARD) >= 80
    assert len({program.name for program in HARD}) == len(HARD)
    assert sum("spark.sql(" not in program.code for program in HARD) * 2 >= len(HARD)


@pytest.mark.slow
@pytest.mark.parametrize("program", HARD, ids=lambda program: program.name)
def test_the_analyzed_plan_says_what_is_true(heard, program):
    live, _ = heard[program.name]
    assert programs.differences(program, live) == []


SAME_PLAN = frozenset(
    {
        "frames: a column of another DataFrame in a correlated EXISTS", "frames: lateralJoin",
        "sql: a comma join is a filter", "sql: EXISTS, correlated", "sql: IN and NOT IN",
        "sql: a scalar subquery in the select list, correlated", "sql: LATERAL subquery",
        "sql: UNION ALL with types that are widened", "writes: INSERT INTO fits types and nobody wrote a cast",
    }
)  # fmt: skip
"""Programs whose optimized plan another program, with another lineage, may have; ``docs/spark.md`` has them."""


@pytest.mark.slow
def test_event_logs_say_all_that_their_plans_tell(heard):
    wrong = {
        program.name: found for program in HARD if (found := programs.differences(program, heard[program.name][1]))
    }
    assert wrong.keys() == SAME_PLAN, wrong


@pytest.mark.slow
def test_event_logs_state_what_another_program_may_have_meant(heard):
    for program in HARD:
        if program.name in SAME_PLAN:
            derivations = [made for made in heard[program.name][1] if made.edges]
            assert "plan.optimized" in {note.code for made in derivations for note in made.diagnostics}, program.name
            assert all(made.status == "understood" for made in derivations), program.name
