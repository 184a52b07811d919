"""SQL that is made to take time or memory."""

from __future__ import annotations

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script


def doubled(times):
    ctes = ["c0 AS (SELECT a, b FROM t)"]
    ctes += [f"c{n} AS (SELECT x.*, y.* FROM c{n - 1} x, c{n - 1} y)" for n in range(1, times + 1)]
    return f"CREATE TABLE o AS WITH {', '.join(ctes)} SELECT * FROM c{times}"


def test_a_query_whose_columns_double_at_every_step_ends_and_is_not_understood():
    found = extract([Script("q.sql", doubled(39))], Options(dialect="postgres"))
    assert found.opaque == 1
    assert any("a query of more than 50,000 columns" in note.message for note in found.diagnostics)
    assert extract([Script("q.sql", doubled(8))], Options(dialect="postgres")).opaque == 0
