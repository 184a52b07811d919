"""The table of function facts: it reads, it is the only one, and what is derived from it agrees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from modules import PACKAGE, modules, tree
from sqlglot import exp

from govtool.capture.spark.build import call
from govtool.capture.spark.flow import flow_of
from govtool.capture.spark.plan import CONSTANT, Attribute, Named, Output, Project, Scan
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.functions import facts
from govtool.functions.facts import as_key, is_masking, lines, positions_of

ALLOWED = {
    "app/workflow_runs/programs/code_words.py": "methods of DataFrames",
    "capture/spark/analyzed/functions.py": "names of Catalyst's classes",
    "capture/sql/templates/packages/crossdb.py": "dbt's macros, which are called like functions",
    "capture/sql/walk/expressions/pseudo_columns.py": "pseudo-columns, which are written without parentheses",
    "records/plan/functions.py": "the calls that a plan may hold, by Catalyst's classes",
    "records/plan/sql_aggregates.py": "the calls that SQL text may hold to become a plan",
    "records/plan/sql_typed.py": "the arguments of sqlglot's classes that are read",
    "records/plan/sql_types.py": "the type of a call's result",
    "records/replay/compare.py": "functions of windows whose value ties leave open",
    "records/sql/duckdb.py": "the calls that DuckDB evaluates as Spark does",
    "records/sql/duckdb_functions.py": "the calls that DuckDB evaluates as Spark does",
    "records/sql/duckdb_text.py": "the calls that DuckDB evaluates as Spark does",
    "records/sql/expressions.py": "the calls that are written in a place of their own",
    "records/sql/spark.py": "the calls that Spark writes in another way",
    "records/trace/rounding.py": "aggregates of floats whose last digits depend on the order of rows",
    "records/trace/measure_terms.py": "aggregates that return a cell as one row has it",
    "records/trace/ties.py": "aggregates that may return another value another time",
    "records/trace/undetermined.py": "aggregates that may return another value another time",
    "query/changes/types.py": "types, some of which are called like functions",
    "spark/live/rdd_actions.py": "methods of RDDs",
    "spark/rdd/functions.py": "functions of Python that a log may name",
    "spark/rdd/lineage_rdd.py": "methods of RDDs",
    "workflow/annotate/failing.py": "the calls of a plan that have a result for every value",
    "workflow/annotate/groups.py": "aggregates whose value does not depend on the order of rows",
    "records/trace/list_order.py": "functions of lists by whether the order of the list counts",
    "workflow/annotate/list_order.py": "functions of collected lists by whether the order of the list counts",
    "workflow/evaluation.py": "aggregates that a graph is evaluated for again",
    "workflow/modules/circuit_graph.py": "labels of aggregates in a graph",
    "workflow/vocabulary.py": "labels of aggregates in a graph",
    "spark/live/plans/signature.py": "runs inside of jobs, where nothing of govtool can be imported",
}
"""Modules that list such names for another reason."""

NAMES = frozenset().union(*(line.names for line in lines() if line.facts - {"series", "table"} or line.undoes))
"""Functions of values and rows. How rows of a table function look is for each reader to know."""


def listed(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Lines of a file with the texts that a collection there holds: a display, or words in one text."""
    for node in ast.walk(tree(file)):
        items: list[ast.expr | None] = []
        if isinstance(node, ast.Set | ast.List | ast.Tuple):
            items = [*node.elts]
        elif isinstance(node, ast.Dict):
            items = [*node.keys]
        texts = {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not set(node.value) & set(".,;()\n"):
            texts = set(node.value.split())
        yield getattr(node, "lineno", 0), {text.lower() for text in texts}


def test_no_other_module_lists_functions():
    found = {}
    for file in modules():
        name = file.relative_to(PACKAGE).as_posix()
        if not name.startswith("functions/"):
            hits = [
                f"{name}:{line}: {sorted(texts & NAMES)}" for line, texts in listed(file) if len(texts & NAMES) >= 3
            ]
            if hits:
                found[name] = hits
    assert {name: hits for name, hits in found.items() if name not in ALLOWED} == {}
    assert found.keys() == ALLOWED.keys()  # an exception that is not needed any more


@pytest.mark.parametrize("text", ["f: hidden", ": hash", "f g = h: hash", "f: value", "f: key=x", "f: undoes="])
def test_a_line_that_is_wrong_is_an_error(text):
    with pytest.raises(ValueError, match="functions: "):
        list(lines(text))


def test_a_line_reads_as_documented():
    one, other = lines(
        "# a section\n\nsubstr = mid: partial  # of the text\nf g: keyed value=2 key=1 clickhouse/key=3\n"
    )
    assert (one.names, one.is_alias, one.facts) == (("substr", "mid"), True, {"partial"})
    assert (other.names, other.is_alias) == (("f", "g"), False)
    assert other.positions == {("", "value"): 2, ("", "key"): 1, ("clickhouse", "key"): 3}


def test_a_function_hides_a_value_or_keeps_it():
    assert set() == facts.MASKING & facts.REAL
    assert not facts.MASKING & facts.UNDOES.keys()
    assert not facts.AGGREGATES & facts.MASKING


def test_what_is_undone_hides_with_a_key():
    assert facts.REVERSIBLE <= facts.KEYED


def test_facts_that_need_each_other():
    assert facts.COLLECTING <= facts.MEMBERS & facts.AGGREGATES
    assert facts.NUMBERS <= facts.AGGREGATES
    assert facts.ROW_COUNTS <= facts.AGGREGATES
    assert facts.having("window") >= facts.RANKS
    assert facts.ROW_VALUES <= facts.MEMBERS
    assert facts.GENERATORS <= facts.NON_DETERMINISTIC
    assert not facts.NON_DETERMINISTIC & facts.AGGREGATES


def test_positions_are_of_functions_with_a_key():
    for line in lines():
        assert not line.positions or line.undoes or line.facts & {"keyed", "hash"}, line.names
        for name in line.names:
            positions = positions_of(name)
            assert positions is None or positions.value != positions.key, name


def test_nodes_are_classes_of_the_parser():
    assert all(issubclass(getattr(exp, node), exp.Func) for node in facts.NODE_NAMES)


@pytest.mark.parametrize(
    ("functions", "masking"),
    [
        (("mask_show_last_n",), False),
        (("mask_show_first_n",), False),
        (("mask_last_n",), True),
        (("hmac_sha1",), True),
        (("keyed_hash",), True),
        (("try_aes_encrypt",), True),
        (("dlp_deterministic_encrypt",), True),
        (("aead.encrypt",), True),
        (("etl.tokenize",), True),
        (("lower", "md5", "substring"), True),
        (("aes_encrypt", "aes_decrypt"), False),
        (("tokenize", "upper", "dbo.detokenize"), False),
        (("aes_decrypt", "aes_encrypt"), True),
        (("md5", "aes_encrypt", "aes_decrypt"), True),
        (("max",), False),
        ((), False),
    ],
)
def test_masking(functions, masking):
    assert is_masking(functions) is masking
    assert not is_masking((*map(as_key, functions[:1]),))


@pytest.mark.parametrize(
    ("dialect", "call", "masking"),
    [
        ("hive", "mask_show_last_n(ssn, 4)", False),
        ("hive", "hmac_sha1(ssn, 'k')", True),
        ("hive", "keyed_hash(ssn, 'k')", True),
        ("bigquery", "DLP_DETERMINISTIC_ENCRYPT(k, ssn, '')", True),
        ("bigquery", "DLP_DETERMINISTIC_DECRYPT(k, DLP_DETERMINISTIC_ENCRYPT(k, ssn, ''), '')", False),
        ("bigquery", "AEAD.DECRYPT_STRING(k, AEAD.ENCRYPT(k, ssn, ''), '')", False),
        ("bigquery", "AEAD.DECRYPT_STRING(k, SHA256(ssn), '')", True),
        ("snowflake", "DECRYPT(ENCRYPT(ssn, 'k'), 'k')", False),
        ("snowflake", "DECRYPT_RAW(ENCRYPT_RAW(ssn, k, i), k, i)", False),
        ("tsql", "ENCRYPTBYPASSPHRASE('k', ssn)", True),
        ("oracle", "DBMS_CRYPTO.ENCRYPT(ssn, 1, k)", True),
        ("oracle", "DBMS_CRYPTO.DECRYPT(DBMS_CRYPTO.ENCRYPT(ssn, 1, k), 1, k)", False),
    ],
)
def test_masking_of_an_edge(dialect, call, masking):
    (derivation,) = extract([Script("q.sql", f"SELECT {call} AS x FROM t")], Options(dialect=dialect)).derivations
    (edge,) = (e for e in derivation.edges if e.target_path == "x" and e.source.path.lower() == "ssn")
    assert edge.masking is masking


@pytest.mark.parametrize(
    ("arguments", "functions"),
    [
        ((Attribute(1), CONSTANT), {("aes_encrypt",)}),
        ((CONSTANT, Attribute(1)), {("aes_encrypt(key)",)}),
        ((Attribute(1), Attribute(1)), {("aes_encrypt",), ("aes_encrypt(key)",)}),
    ],
)
def test_the_key_of_a_call_in_a_plan(arguments, functions):
    scan = Scan("t", (Named(1, "ssn"),))
    flow = flow_of(Project(scan, (Output(2, "x", call("AES_ENCRYPT", arguments)),)))
    assert {found[2] for found in flow.columns[0].dependencies} == functions
