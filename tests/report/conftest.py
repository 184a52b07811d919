from __future__ import annotations

import pytest
from report_graphs import SHOP, Opened

import govtool
from bench import chromium


@pytest.fixture(scope="session")
def browser():
    """A running Chromium; without one, tests that need it are skipped."""
    try:
        with chromium.Browser() as running:
            yield running
    except chromium.Missing as error:
        pytest.skip(str(error))


@pytest.fixture
def page(browser):
    """A new page of 1,400 × 900."""
    try:
        with browser.page() as opened:
            yield opened
    except chromium.Missing as error:
        pytest.skip(str(error))


@pytest.fixture
def opened(page, tmp_path):
    """Open a report in a page: ``opened(answer)``."""

    def show(answer) -> chromium.Page:
        file = tmp_path / "report.html"
        file.write_text(answer.to_html(), encoding="utf-8")
        page.open(file.as_uri())
        return page

    return show


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> govtool.Graph:
    """The graph of fixtures/shop, both dialects."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOVTOOL_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        store = str(folder / "store")
        govtool.init(store)
        govtool.ingest_sql(SHOP / "postgres", store=store, dialect="postgres", schema=[SHOP / "postgres" / "ddl.sql"])
        govtool.ingest_sql(SHOP / "snowflake", store=store, dialect="snowflake")
        graph = govtool.open(store)
        graph.snapshot()
        yield graph


@pytest.fixture
def ingest(tmp_path, monkeypatch):
    """Ingest SQL by file name and open the graph: ``ingest({"a.sql": "create …"})``; again to replace it."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    govtool.init(str(tmp_path / "store"))
    return Opened(tmp_path)
