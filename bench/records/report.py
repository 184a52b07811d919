"""The page's sections, from the file of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from bench.page import table
from bench.records.results import Results, interval, mean_ratio
from bench.records.workloads import WORKLOADS

GOAL = 1.05
MIN_PAIRS = 3
"""With fewer there is no interval, and nothing is claimed."""
_PUBLISHED = """Published, on clusters, captured / plain: Titian 1.10 to 1.27 (grep), 1.14 to 1.29 (word count) and
below 1.26 (L2, L6, L7); RAMP 1.18 to 1.40 and 1.32 to 3.2; Newt 1.58 to 15 and 1.72 to 29. Size of their lineage:
Titian within 30% of the input, 50% for word count."""
_PUBLISHED_TRACES = """Published by Titian, by the clock and on clusters: back from one record 0.25 s (L6, 1 GB) to
55 s (1 TB), L7 about half of it; raw rows below 1 s up to 70 GB; a naive join about ten times slower than one that is
routed by partition (its Figure 15)."""
_SIZES = ["workload, rows", "input", "one action, plain", "actions", "lineage", "of the input", "whole store"]
_TRACED = ["run, rows", "back from 1", "100", "10,000", "forward from 1", "100 raw rows", "cold command", "memory"]
_WARM = {"warm": "", "warm with sidecars": ", with sidecars", "bare": ", bare DuckDB"}
"""Parts of an entry, and what their rows' titles end with."""
_RIVALS = [
    "run, rows",
    "back from 100, here",
    "naive join",
    "slower by (CPU)",
    "Spark's filter from 1",
    "100",
    "10,000",
    "replay of 1",
    "whole job",
]


_TURNS = ["workload, rows", "pairs", "one action, plain", "recorded / plain", "control"]
_TURNS += ["after it: plain", "recorded", "plain with that / plain"]


def sections(results: Results) -> Iterator[tuple[str, str]]:
    """The sections that there are results for, by name."""
    parts = (
        ("capture", "records", _capture),
        ("turns", "record-turns", _turns),
        ("actions", "record-actions", _actions),
        ("eager", "record-eager", _eager),
        ("trace", "record-traces", _trace),
    )
    for prefix, name, body in parts:
        entries = {key: entry for key, entry in results.entries.items() if key.startswith(f"{prefix}/") and entry}
        if entries:
            yield name, body(entries)


def _ratios(rounds: list[Mapping[str, Any]], how: str, figure: str) -> list[tuple[float, float]]:
    return [(each[how][figure], each["plain"][figure]) for each in rounds]


def _span(rounds: list[Mapping[str, Any]], how: str, figure: str) -> str:
    pairs = _ratios(rounds, how, figure)
    if len(pairs) < MIN_PAIRS:
        return f"{mean_ratio(pairs):.3f}"
    low, high = interval(pairs)
    return f"{mean_ratio(pairs):.3f} ({low:.3f}–{high:.3f})"


def _capture(entries: Mapping[str, Any]) -> str:
    names = list(WORKLOADS)
    ordered = sorted(entries.items(), key=lambda pair: _place(pair[0], names))
    done = [(key, entry) for key, entry in ordered if entry.get("rounds")]
    costs = [_cost_row(key, entry) for key, entry in done]
    sizes = [_size_row(key, entry) for key, entry in done if "verified" in entry]
    held = [key for key, entry in done if _upper(entry) <= GOAL]
    few = [key for key, entry in done if len(entry["rounds"]) < MIN_PAIRS]
    missed = [_title(key) for key, _ in done if key not in held and key not in few]
    return f"""## Records: what capture costs

Titian's workloads as DataFrame programs over generated Parquet (`bench/records`): each job plain, plain again and under
`govtool run --records`, in turns, as often as the table says. Ratios are recorded / plain, geometric means
with bootstrap intervals of 95% over the pairs (from {MIN_PAIRS} pairs on; fewer show no more than the size of things).
**CPU** is that of all processes. The actions' CPU holds all that the
recorder does about them; the process holds the start, the commit and its reading of the outputs too. Goal: the upper
end of the actions' CPU at most {GOAL}. It is met by {len(held)} of {len(done)}\
{"" if not missed else ", not by " + ", ".join(missed)}{"" if not few else f"; {len(few)} have too few pairs to tell"}.

{_PUBLISHED}

{
        table(
            [
                "workload, rows",
                "pairs",
                "actions, CPU",
                "actions, wall",
                "process, CPU",
                "process, wall",
                "control, actions' CPU",
            ],
            costs,
        )
    }

The last recorded job of each is the one that is checked: in a new process, `govtool trace back … --verify` evaluates
its recorded plan and compares all rows with the written ones. Lineage is all that a run leaves in the store for
records, of all its actions; the whole store holds the graph, too. Goal: at most 1% of the input.

{table([*_SIZES, "verified by", "trace"], sizes)}
"""


def _place(key: str, names: list[str]) -> tuple[int, int]:
    _, name, rows = key.split("/")
    return names.index(name), int(rows)


def _title(key: str) -> str:
    _, name, rows = key.split("/")
    return f"{name}, {int(rows):,}"


def _upper(entry: Mapping[str, Any], how: str = "recorded") -> float:
    pairs = _ratios(entry["rounds"], how, "cpu")
    return interval(pairs)[1] if len(pairs) >= MIN_PAIRS else inf


def _cost_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    figures = ("cpu", "wall", "process cpu", "process wall")
    first, *rest = (_span(entry["rounds"], "recorded", figure) for figure in figures)
    pairs = str(len(entry["rounds"]))
    return [_title(key), pairs, f"**{first}**", *rest, _span(entry["rounds"], "control", "cpu")]


def _size_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    plain = sum(each["plain"]["wall"] for each in entry["rounds"]) / len(entry["rounds"]) / entry["actions"]
    return [
        _title(key),
        f"{entry['input bytes'] / 1e6:,.0f} MB",
        f"{plain:.1f} s",
        str(entry["actions"]),
        f"{entry['record bytes'] / 1e3:,.1f} KB",
        f"**{entry['record bytes'] / entry['input bytes']:.4%}**",
        f"{entry['store bytes'] / 1e3:,.0f} KB",
        entry["engine"] if entry["verified"] else "**not verified**",
        entry["traced"],
    ]


def _turns(entries: Mapping[str, Any]) -> str:
    names = list(WORKLOADS)
    ordered = sorted(entries.items(), key=lambda pair: _place(pair[0], names))
    loads, rows = [entry["load"] for _, entry in ordered], [_turn_row(*each) for each in ordered]
    held = [key for key, entry in ordered if _upper(entry, "records") <= GOAL]
    alone = [key for key, entry in ordered if interval(_with_recorder(entry["rounds"]))[1] <= GOAL]
    return f"""## Records: what capture costs an action

The same workloads in one JVM: each action plain, with exact plans recorded, and plain again, each kind in a session of
its own, in turns. CPU of Python and the JVM, until the recorder has written down what it heard; ratios as above. These
actions are shorter than those of whole jobs, so that what an action costs shows more. The upper end is at most {GOAL}
for {len(held)} of {len(ordered)}. *After it* is the CPU from the return of the action on: the recorder works then, and
the noise of the action, which the control shows, is not in it. It follows the plan and the number of files, not the
rows. With it alone, the upper end is at most {GOAL} for {len(alone)} of {len(ordered)}. Processes that ran meanwhile:
{min(loads):.0f} to {max(loads):.0f}.

{table(_TURNS, rows)}
"""


def _turn_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    rounds = entry["rounds"]
    plain = sum(each["plain"]["cpu"] for each in rounds) / len(rounds)
    spans = (_span(rounds, how, "cpu") for how in ("records", "control"))
    after = [f"{1000 * _mean_after(rounds, kind):.0f} ms" for kind in ("plain", "records")]
    pairs = _with_recorder(rounds)
    low, high = interval(pairs)
    return [
        _title(key),
        str(len(rounds)),
        f"{plain:.2f} s",
        *spans,
        *after,
        f"{mean_ratio(pairs):.3f} ({low:.3f}–{high:.3f})",
    ]


def _mean_after(rounds: list[Mapping[str, Any]], kind: str) -> float:
    """Seconds of CPU after an action has returned."""
    return sum([float(each[kind]["after"]) for each in rounds]) / len(rounds)


def _with_recorder(rounds: list[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """The CPU of a plain action with what follows a recorded one, and without."""
    return [
        (each["plain"]["cpu"] - each["plain"]["after"] + each["records"]["after"], each["plain"]["cpu"])
        for each in rounds
    ]


def _actions(entries: Mapping[str, Any]) -> str:
    rows = [_action_row(key, entry) for key, entry in entries.items()]
    turns = sorted({len(entry["plain"]) for entry in entries.values()})
    return f"""## Records: CPU of a warm action

One write over 1,000 rows in four sessions of one JVM, in turns, {
        " to ".join(map(str, turns))
    } times: two plain ones, one
whose column lineage is recorded, one whose exact plans are recorded as well. CPU of Python and the JVM, in
milliseconds, means. What comes after an action is measured alone, as it is far steadier than the action: the
recorder works then. Goal: at most 50 ms at 100 operators.

{
        table(
            [
                "plan",
                "plain action",
                "control",
                "after it: plain",
                "with column lineage",
                "with exact plans",
                "exact plans alone",
                "bytes of a plan",
            ],
            rows,
        )
    }
"""


def _action_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    after = {kind: _mean(values) for kind, values in entry["after"].items()}
    alone = after["records"] - after["lineage"]
    size = entry["break"] or f"{entry['bytes']:,.0f}"
    return [
        key.partition("/")[2],
        f"{_mean(entry['plain']):.0f}",
        f"{_mean(entry['control']):.0f}",
        f"{after['plain']:.0f}",
        f"{after['lineage']:.0f}",
        f"**{after['records']:.0f}**",
        f"{alone:.0f}",
        size,
    ]


def _mean(values: list[float]) -> float:
    """Milliseconds."""
    return 1000 * sum(values) / len(values)


def _eager(entries: Mapping[str, Any]) -> str:
    rows = [_eager_row(key, entry) for key, entry in entries.items()]
    rounds = sorted({len(entry["rounds"]) for entry in entries.values()})
    return f"""## Records: an eager baseline

The same jobs with the ids of records packed into 64 bits, carried along, and collected at groups: what it costs to
write the associations while the job runs, beside the job without; warm, in turns, {" to ".join(map(str, rounds))}
times, geometric means and bootstrap intervals as above. A recorded run of these plans carries nothing.

{table(["workload, rows", "CPU", "wall", "written bytes", "associations, of the input"], rows)}
"""


def _eager_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    ratios = [_span(entry["rounds"], "eager", figure) for figure in ("cpu", "wall", "bytes")]
    last = entry["rounds"][-1]
    more = last["eager"]["bytes"] - last["plain"]["bytes"]
    return [_title(key), f"**{ratios[0]}**", *ratios[1:], f"{more / entry['input bytes']:.1%}"]


def _trace(entries: Mapping[str, Any]) -> str:
    given = list(entries.items())
    rows = [_warm_row(key, entry, group) for key, entry in given for group in _WARM if entry.get(group)]
    built = [_built_row(key, entry["index"]["sidecars"]) for key, entry in given if entry.get("index")]
    rivals = [_rival_row(key, entry) for key, entry in given if any(map(entry.get, ("spark", "naive", "replay")))]
    return f"""## Records: traces

Traces of recorded runs of L6 and L7, warm in one process; each with 20 rows of its answer read. Results are chosen by
users that are drawn at random. Median seconds by the clock and, in brackets, of CPU, which is what to read where other
programs share the machine. The cold command is `govtool trace back` of one result, from the start of its process.
Goals at 16M rows: back from one 0.5 s, with sidecars 0.1 s; forward 1 s, raw rows of 100 ids 0.2 s, the cold command
1.5 s, memory 1 GB.

{table(_TRACED, rows)}

*Bare DuckDB* is the floor: one scan of the column that chooses the results, without a plan, a second step or rows that
are shown, and `SELECT *` by file and row. Where a file has a page index, as Spark writes it, rows by place are taken
out of their pages; dictionaries that these are coded by, up to 1 MB each, are read once for all traces of an opened
run.

Sidecars, built by `govtool index RUN --records` (which is what the time is of) and, for the column that conditions
name, by a first trace; goal: at most 8 bytes a row and set of keys.

{table(["run, rows", "sets of keys", "bytes a row and set", "of the input", "build, seconds (CPU)"], built)}

The same rows without records: a Spark session that filters the input by the results' keys, warm and without its start
(1,000 rows read at most); a naive join, which makes all associations before it chooses, as in Titian's Figure 15; and
the replay of one result without the rows behind it, beside the whole job, run again in the warm session.

{table(_RIVALS, rivals)}

{_PUBLISHED_TRACES}
"""


def _warm_row(key: str, entry: Mapping[str, Any], group: str) -> list[str]:
    found = entry[group]
    names = ("back 1", "back 100", "back 10000", "forward", "raw 100")
    cold = _seconds(entry["cold"].get("command")) if group == "warm" and "cold" in entry else ""
    memory = f"{max(each['memory'] for each in found.values()) / 1e6:,.0f} MB"
    return [f"{_title(key)}{_WARM[group]}", *(_seconds(found.get(name)) for name in names), cold, memory]


def _seconds(found: Mapping[str, float] | None) -> str:
    """By the clock, and of CPU; nothing where it was not measured."""
    return "" if found is None else f"{found['seconds']:.2f} ({found['cpu']:.2f})"


def _built_row(key: str, found: Mapping[str, float]) -> list[str]:
    share = found["bytes"] / found["input bytes"]
    return [_title(key), f"{found['key sets']:.0f}", f"{found['bytes a row']:.2f}", f"{share:.1%}", _seconds(found)]


def _rival_row(key: str, entry: Mapping[str, Any]) -> list[str]:
    ours, naive = entry.get("warm", {}).get("back 100"), entry.get("naive", {}).get("naive")
    spark = entry.get("spark", {}).get("spark", {})
    slower = f"**{naive['cpu'] / ours['cpu']:.1f}**" if naive and ours else ""
    filters = [_seconds(spark.get(f"back {size}")) for size in (1, 100, 10_000)]
    replay = _seconds(entry.get("replay", {}).get("replay"))
    return [_title(key), _seconds(ours), _seconds(naive), slower, *filters, replay, _seconds(spark.get("whole job"))]
