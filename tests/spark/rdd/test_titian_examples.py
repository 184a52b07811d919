"""The log analysis of Titian (Interlandi et al., PVLDB 9(3), Figures 1, 5 to 7, 9, 10 and 12), as a tracked program.

Lines of a log have an error code; a table has a description for each code; errors are counted by description. Codes 3
and 4 share a description; nothing in the log has code 5, and nothing describes code 7.
"""

from __future__ import annotations

from operator import add

import pytest

LOG = """\
INFO 0 start
ERROR 3 disk of node-1
ERROR 4 disk of node-2
INFO 0 heartbeat
ERROR 3 disk of node-1
ERROR 2 network of node-7
ERROR 7 unknown
"""
CODES = [(2, "network failure"), (3, "disk failure"), (4, "disk failure"), (5, "power failure")]


def _failed(line):
    return line.startswith("ERROR")


def _code(line):
    return int(line.split()[1])


def _one(pair):
    return pair[1][1], 1


@pytest.fixture(scope="module")
def program(lineage, tmp_path_factory):
    """The program of Figure 1: lines, errors, codes, joined pairs, counts; and the file."""
    path = tmp_path_factory.mktemp("titian") / "log.txt"
    path.write_text(LOG)
    lines = lineage.textFile(str(path))
    errors = lines.filter(_failed)
    codes = lineage.parallelize(CODES, 3)
    pairs = errors.keyBy(_code).join(codes)
    counts = pairs.map(_one).reduceByKey(add)
    assert sorted(counts.collect()) == [("disk failure", 3), ("network failure", 1)]
    return lines, errors, codes, pairs, counts, path


def test_back_from_the_largest_count_to_the_lines_of_the_log(program):
    """Figure 5: the most frequent error, traced to the raw lines; two codes share its description."""
    lines, _, codes, _, counts, path = program
    top = max(counts.collect(), key=lambda pair: pair[1])
    position = counts.get_lineage().where(lambda pair: pair == top)
    back = position.go_back_all()
    assert back.at(lines).collect() == ["ERROR 3 disk of node-1", "ERROR 4 disk of node-2", "ERROR 3 disk of node-1"]
    assert back.at(codes).collect() == [(3, "disk failure"), (4, "disk failure")]
    assert [(each.file, each.record) for each in back.at(lines).ids()] == [
        (str(path), 1),
        (str(path), 2),
        (str(path), 4),
    ]
    assert [each.record for each in back.at(codes).ids()] == [1, 2]
    assert back.exactness == "exact"
    assert position.verify()


def test_a_count_that_is_not_there_has_no_lines(program):
    *_, counts, _ = program
    back = counts.get_lineage().where(lambda pair: pair[0] == "power failure").go_back_all()
    assert (back.collect(), back.count(), back.ids(), back.exactness) == ([], 0, [], "exact")
    assert back.go_next_all().collect() == []


def test_one_boundary_at_a_time_in_any_order(program):
    """Figures 6 and 7: back step by step, a choice among what is there, and on to the results again."""
    lines, _, codes, _, counts, _ = program
    pairs = counts.get_lineage().where(lambda pair: pair[0] == "disk failure").go_back()
    assert sorted(pairs.collect()) == [
        (3, ("ERROR 3 disk of node-1", "disk failure")),
        (3, ("ERROR 3 disk of node-1", "disk failure")),
        (4, ("ERROR 4 disk of node-2", "disk failure")),
    ]
    fours = pairs.where(lambda pair: pair[0] == 4)
    assert fours.go_back().at(lines).collect() == ["ERROR 4 disk of node-2"]
    assert fours.go_back().at(codes).collect() == [(4, "disk failure")]
    assert fours.go_back().at(lines).go_next().collect() == fours.collect()
    assert fours.go_back().go_next().go_next().collect() == [("disk failure", 3)]
    # The record at both ends is the same, yet it has more behind it than the choice.
    assert fours.go_next().go_back_all().at(lines).count() == 3


def test_on_from_a_line_of_the_log_to_the_counts(program):
    """Figure 9: forward, from where the program begins to where actions ran."""
    lines, _, _, _, counts, _ = program
    start = lines.get_lineage().where(lambda line: "node-7" in line)
    assert start.go_next_all().collect() == [("network failure", 1)]
    assert lines.get_lineage().where(lambda line: "unknown" in line).go_next_all().at(counts).collect() == []


def test_on_from_a_description_shows_all_that_it_explains(program):
    _, _, codes, _, counts, _ = program
    start = counts.get_lineage().go_back_all().at(codes).where(lambda pair: pair[0] == 3)
    assert start.go_next_all().collect() == [("disk failure", 3)]
    assert start.go_next().count() == 2


def test_raw_records_take_any_transformation(program):
    """Figure 10: work goes on with the raw lines, as with any RDD."""
    lines, _, _, _, counts, _ = program
    back = counts.get_lineage().where(lambda pair: pair[1] > 1).go_back_all().at(lines)
    nodes = back.map(lambda line: line.split()[-1]).map(lambda node: (node, 1)).reduceByKey(add)
    assert sorted(nodes.collect()) == [("node-1", 2), ("node-2", 1)]
    assert back.filter(lambda line: "node-2" in line).count() == 1


def test_the_program_runs_again_without_bad_lines(program):
    """Figure 12: selective replay."""
    lines, _, _, _, counts, _ = program
    bad = counts.get_lineage().go_back_all().at(lines).where(lambda line: line.startswith("ERROR 3"))
    assert sorted(bad.replay(without=True).collect()) == [("disk failure", 1), ("network failure", 1)]
    disk = counts.get_lineage().where(lambda pair: pair[0] == "disk failure").go_back_all()
    assert disk.replay().collect() == [("disk failure", 3)]


def test_a_mark_is_a_place_inside_of_a_stage(lineage, program):
    lines, errors, _, _, _, _ = program
    marked = errors.map(_code).mark()
    doubled = marked.map(lambda code: (code, 1)).reduceByKey(add)
    position = doubled.get_lineage().where(lambda pair: pair[0] == 3).go_back()
    assert position.collect() == [3, 3]
    assert position.go_back().collect() == ["ERROR 3 disk of node-1"] * 2
    assert position.go_next().collect() == [(3, 2)]
    assert lines.get_lineage().where(lambda line: "node-7" in line).at(lines).count() == 1


def test_an_intermediate_has_a_lineage_of_its_own(program):
    _, errors, _, pairs, _, _ = program
    assert errors.get_lineage().where(lambda line: "node-2" in line).go_back().collect() == ["ERROR 4 disk of node-2"]
    described = pairs.get_lineage().where(lambda pair: pair[0] == 2).go_back_all()
    assert sorted(map(str, described.collect())) == ["(2, 'network failure')", "ERROR 2 network of node-7"]


def test_on_from_the_middle_of_a_stage(lineage):
    """A record of an intermediate goes on alone, though its line made others too."""
    words = lineage.parallelize(["a b", "b c"], 2).flatMap(str.split)
    counts = words.map(lambda word: (word, 1)).reduceByKey(add)
    result = counts.filter(lambda pair: pair[1] > 0).union(counts.filter(lambda pair: pair[0] == "a"))
    assert len(result.collect()) == 4
    start = words.get_lineage().where(lambda word: word == "a")
    assert start.go_next_all().collect() == [("a", 1), ("a", 1)]
    assert start.go_next().collect() == [("a", 1)]
    assert start.go_next().go_next().at(result).count() == 2
    assert start.go_next_all().go_back().go_back().collect() == ["a"]
    assert start.go_next_all().go_back_all().collect() == ["a b"]
    middle = counts.get_lineage().where(lambda pair: pair[0] == "c")
    assert middle.go_next_all().collect() == [("c", 1)]
    assert middle.go_back_all().collect() == ["b c"]
