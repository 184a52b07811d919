"""Traces of random RDD programs compared with the definition: ``python tests/spark/rdd/rdd_differential.py COUNT SEED``.

Each program is traced back at once and by single boundaries, forward from results and from source records, replayed
with and without what was traced, verified, and traced from the files that it wrote.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import rdd_functions as fn
import rdd_random
import rdd_spans as ref


def _short(error):
    """What went wrong, and where here; Spark's own account is long."""
    lines = [line for line in str(error).splitlines() if "Error" in line or "rdd" in line]
    places = [f"{each.filename.rsplit('/')[-1]}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
    return " ".join([type(error).__name__, *lines[:6], *places[-6:]])


class Wrong(AssertionError):
    """A trace is not that of the definition."""


def expect(condition, what, *details):
    if not condition:
        raise Wrong(f"{what}: {'; '.join(map(str, details))}")


def texts(values):
    return Counter(map(fn.text, values))


def between(found, least, most, exactness, what):
    """What was found holds what must be there and, where it claims to be exact, no more than may be."""
    expect(least <= found, f"{what} misses", least - found, exactness)
    if exactness == "exact":
        expect(found <= most, f"{what} is too much for exact", found - most)


def is_like(wanted):
    return lambda value: fn.text(value) in wanted


# ---- source records -------------------------------------------------------------------------------------------------


def tokens(position, program):
    """The records of a position at the sources, as the reference names them."""
    found = set()
    for node in program.sources():
        for each in position.within([node.tracked._node]).ids(10**6):
            token = (node.number, Path(each.file).name, each.record)
            expect(token not in found, "a record twice", token)
            found.add(token)
    return found


def check_back(program, number, selected, position):
    span = ref.all_of(each.sources for each in selected)
    back = position.go_back_all()
    expect(back.exactness in ("exact", "superset") or program.odd, "exactness", back.exactness, back.reasons)
    if program.without_order(number):
        expect(back.exactness == "exact", "exactness", back.exactness, back.reasons)
    found = tokens(back, program)
    between(found, span.least, span.most, back.exactness, "back")
    return back, found


# ---- one boundary at a time -----------------------------------------------------------------------------------------


def _values(position, node):
    return Counter(
        fn.text(value)
        for place in position.places()
        if place.node is node.tracked._node
        for value in place.rows.map(lambda row: row[1]).collect()
    )


def _compare_places(program, position, least, most, what):
    numbers = {place.node for place in position.places()}
    known = {node.tracked._node for node in program.nodes}
    expect(numbers <= known, f"{what} is at unknown places", numbers - known)
    for node in filter(lambda each: each.stop, program.nodes):
        wanted = [
            texts(node.direct[at].value for number, at in span if number == node.number) for span in (least, most)
        ]
        between(_values(position, node), *wanted, position.exactness, f"{what} at {node.number}")


def check_steps(program, number, selected, position):
    """Go back boundary by boundary until only sources are left."""
    span = ref.all_of(each.before for each in selected)
    if program.nodes[number].stop:
        span = ref.all_of(program.nodes[number].direct[at].before for _, at in span.most)
    for step in range(len(program.nodes) + 1):
        position = position.go_back()
        _compare_places(program, position, span.least, span.most, f"step {step}")
        if all(not program.nodes[at].inputs for at, _ in span.most):
            return
        span = ref.Span(*(_stepped(program, side, least) for side, least in ((span.least, True), (span.most, False))))


def _stepped(program, tokens_, least):
    found = set()
    for number, at in tokens_:
        node = program.nodes[number]
        before = node.direct[at].before
        found |= (before.least if least else before.most) if node.inputs else {(number, at)}
    return frozenset(found)


# ---- forward --------------------------------------------------------------------------------------------------------


def _reached(program, number, least, most):
    records = program.nodes[number].side.records
    if program.nodes[number].stop:
        records = [program.nodes[number].direct[at] for at in sorted(program.nodes[number].direct)]
    return (
        texts(each.value for each in records if each.sources.least & least),
        texts(each.value for each in records if each.sources.most & most),
    )


def check_forward(program, number, back, found):
    on = back.go_next_all()
    between(texts(on.collect()), *_reached(program, number, found, found), on.exactness, "on from the trace")


def check_from_source(program, targets, random_):
    """From some records of a source to every result of an action."""
    source = random_.choice(program.sources())
    records = source.side.records
    if not records:
        return
    wanted = {fn.text(each.value) for each in random_.sample(records, min(2, len(records)))}
    sources = [source.direct[at] for at in source.direct if fn.text(source.direct[at].value) in wanted]
    start = ref.all_of(each.sources for each in sources).least
    on = source.tracked.get_lineage().where(is_like(wanted)).go_next_all()
    for number in targets:
        if source.number in program.behind(number) and number != source.number:
            node = program.nodes[number]
            here = on.within([node.tracked._node])
            between(
                _values(on, node),
                *_reached(program, number, start, start),
                here.exactness,
                f"from a source to {number}",
            )


# ---- replay ---------------------------------------------------------------------------------------------------------


def check_replay(program, number, selected, position, back, found):
    every = {token for node in program.sources() for each in node.direct.values() for token in each.sources.least}
    for without in (False, True):
        wanted = rdd_random.replayed(program, number, every - found if without else found)
        if wanted is None:
            continue
        again = texts(back.replay(without=without).collect())
        expect(again == texts(wanted), f"replay(without={without})", again, texts(wanted))
        if not without:
            right = texts(each.value for each in selected) <= texts(wanted)
            expect(position.verify() == right, "verify", not right)


# ---- files ----------------------------------------------------------------------------------------------------------


def check_file(program, number, context, folder, random_):
    node = program.nodes[number]
    node.tracked.map(fn.lines).saveAsTextFile(str(folder / "out"))
    written = [
        (line, each) for each in node.side.records for line in fn.lines(each.value).replace("\r\n", "\n").split("\n")
    ]
    if not written:
        return
    wanted = random_.choice(written)[0]
    position = context.get_lineage(str(folder / "out")).where(lambda line: line == wanted)
    records = [each for line, each in written if line == wanted]
    expect(position.count() == len(records), "lines", wanted, position.count(), len(records))
    if node.stop:
        span = ref.all_of(node.direct[at].sources for each in records for _, at in each.before.most)
    else:
        span = ref.all_of(each.sources for each in records)
    back = position.go_back_all()
    expect(back.exactness != "break" or program.odd, "a break", back.reasons)
    between(tokens(back, program), span.least, span.most, back.exactness, "back from a line")


# ---- a program ------------------------------------------------------------------------------------------------------


def check(seed, context, folder: Path, files=True):
    """Check the program of a seed.

    Raises:
        Wrong: A trace is not that of the definition.
    """
    program = rdd_random.generated(seed, context, folder)
    try:
        _check(program, context, folder, files)
    except Exception as error:
        raise Wrong(
            f"{error if isinstance(error, Wrong) else _short(error)}\n  {program.text(len(program.nodes) - 1)}"
        ) from error
    finally:
        for node in program.nodes:
            node.tracked.rdd.unpersist()


def _check(program, context, folder, files):
    random_ = random.Random(program.seed)
    number = len(program.nodes) - 1
    targets = sorted({number, random_.randrange(len(program.sources()) - 1, number + 1)})
    for each in targets:
        node = program.nodes[each]
        action = random_.choice(("collect", "count", "take"))
        found = node.tracked.take(3) if action == "take" else getattr(node.tracked, action)()
        if action == "collect":
            expect(texts(found) == texts(each.value for each in node.side.records), "the program", texts(found))
        elif action == "count":
            expect(found == len(node.side.records), "the count", found, len(node.side.records))
    node = program.nodes[number]
    records = node.side.records
    wanted = {fn.text(each.value) for each in random_.sample(records, min(len(records), random_.choice((1, 1, 2))))}
    selected = [each for each in records if fn.text(each.value) in wanted]
    position = node.tracked.get_lineage().where(is_like(wanted))
    expect(texts(position.collect()) == texts(each.value for each in selected), "the selection", position.collect())
    back, found = check_back(program, number, selected, position)
    if random_.random() < 0.5:
        check_steps(program, number, selected, position)
    if random_.random() < 0.5:
        check_forward(program, number, back, found)
    if random_.random() < 0.5:
        check_from_source(program, targets, random_)
    if random_.random() < 0.6:
        check_replay(program, number, selected, position, back, found)
    if files and random_.random() < 0.4:
        check_file(program, number, context, folder, random_)


def ship():
    """Send the functions of these modules to tasks by value."""
    from pyspark import cloudpickle

    for name in ("rdd_functions", "rdd_random", "rdd_spans", "rdd_differential"):
        if name in sys.modules:
            cloudpickle.register_pickle_by_value(sys.modules[name])


def main():
    from pyspark.sql import SparkSession

    import govtool.spark

    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    ship()
    context = govtool.spark.lineage_context(session)
    wrong, began = 0, time.time()
    for seed in range(first, first + count):
        print(seed, end="\r", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(seed, context, Path(folder))
            except Exception as error:
                wrong += 1
                print(f"{seed}: {error}", flush=True)
    print(f"{count} programs, {wrong} wrong, {time.time() - began:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
