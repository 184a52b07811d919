"""Example 1 of Zhang, Miao, Wang, "LineageX": three views, in any order, without a schema."""

from __future__ import annotations

from itertools import permutations

import pytest
from lineage_cases import lines_of

from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.model import CONTRIBUTED, ROW_SET

QUERIES = {
    "info": """
        CREATE VIEW info AS SELECT c.name, c.age, o.oid, w.*
        FROM customers c JOIN orders o ON c.cid = o.cid JOIN webact w ON c.cid = w.wcid""",
    "webact": """
        CREATE VIEW webact AS SELECT w.wcid, w.wdate, w.wpage, w.wreg FROM webinfo w
        INTERSECT SELECT w1.cid, w1.date, w1.page, w1.reg FROM web w1""",
    "webinfo": """
        CREATE VIEW webinfo AS SELECT c.cid AS wcid, w.date AS wdate, w.page AS wpage, w.reg AS wreg
        FROM customers c JOIN web w ON c.cid = w.cid WHERE EXTRACT(YEAR FROM w.date) = 2022""",
}

EXPECTED = [
    "info.* <- customers read, customers.cid join, orders read, orders.cid join, webact read, webact.wcid join",
    "info.age <- customers.age identity",
    "info.name <- customers.name identity",
    "info.oid <- orders.oid identity",
    "info.wcid <- webact.wcid identity",
    "info.wdate <- webact.wdate identity",
    "info.wpage <- webact.wpage identity",
    "info.wreg <- webact.wreg identity",
    "webact.* <- web read, web.cid set_operation, web.date set_operation, web.page set_operation, "
    "web.reg set_operation, "
    "webinfo read, webinfo.wcid set_operation, webinfo.wdate set_operation, webinfo.wpage set_operation, "
    "webinfo.wreg set_operation",
    "webact.wcid <- webinfo.wcid identity",
    "webact.wdate <- webinfo.wdate identity",
    "webact.wpage <- webinfo.wpage identity",
    "webact.wreg <- webinfo.wreg identity",
    "webinfo.* <- customers read, customers.cid join, web read, web.cid join, web.date filter",
    "webinfo.wcid <- customers.cid identity",
    "webinfo.wdate <- web.date identity",
    "webinfo.wpage <- web.page identity",
    "webinfo.wreg <- web.reg identity",
]

COLUMNS = {
    "info": ["name", "age", "oid", "wcid", "wdate", "wpage", "wreg"],
    "webact": ["wcid", "wdate", "wpage", "wreg"],
    "webinfo": ["wcid", "wdate", "wpage", "wreg"],
}

ORDERS = list(permutations(QUERIES))


def one_file(order: tuple[str, ...]) -> Extraction:
    return extract([Script("all.sql", ";\n".join(QUERIES[name] for name in order))], Options(dialect="postgres"))


def separate_files(order: tuple[str, ...]) -> Extraction:
    return extract([Script(f"{name}.sql", QUERIES[name]) for name in order], Options(dialect="postgres"))


def affected(extraction: Extraction, column: str) -> set[str]:
    """The columns that a change of ``column`` may reach: by value, or with every column of a row set it decides."""
    reached, todo = set(), [column]
    while todo:
        source = todo.pop()
        for derivation in extraction.derivations:
            for edge in derivation.edges:
                if edge.source.text != source or edge.kind not in CONTRIBUTED | ROW_SET:
                    continue
                paths = [c.path for c in derivation.columns] if edge.kind in ROW_SET else [edge.target_path]
                new = {f"{derivation.target}.{path}" for path in paths} - reached
                reached |= new
                todo.extend(new)
    return reached


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("read", [one_file, separate_files])
class TestPaperExample:
    def test_lineage(self, order, read) -> None:
        extraction = read(order)
        assert lines_of(extraction) == EXPECTED
        assert (extraction.statements, extraction.understood) == (3, 3)

    def test_columns_are_in_order(self, order, read) -> None:
        extraction = read(order)
        assert {d.target: [c.path for c in d.columns] for d in extraction.derivations} == COLUMNS
        assert all(d.columns_complete and not d.diagnostics for d in extraction.derivations)

    def test_impact_of_web_page(self, order, read) -> None:
        everything = {f"{view}.{column}" for view in ("webact", "info") for column in COLUMNS[view]}
        assert affected(read(order), "web.page") == everything | {"webinfo.wpage"}
