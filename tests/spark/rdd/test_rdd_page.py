"""Every block of docs/rdd.md runs, and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "rdd.md"
LOG = """\
INFO 0 start
ERROR 3 disk of node-1
ERROR 4 disk of node-2
ERROR 3 disk of node-1
ERROR 2 network of node-7
"""
_BLOCK = re.compile(r"^```py\n(.*?)^```\n\n((?:    [^\n]*\n|\n)*)", re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_the_page(spark, tmp_path):
    (tmp_path / "log.txt").write_text(LOG)
    page = PAGE.read_text()
    for name in (
        "log.txt",
        "counts",
        "counts.lineage.json",
        "job.py",
    ):  # the folder in which Spark was started is not ours
        page = page.replace(f'"{name}"', f'"{tmp_path / name}"').replace(f"'{name}'", f"'{tmp_path / name}'")
    found = _BLOCK.findall(page)
    assert len(found) == 9
    script = tmp_path / "job.py"
    script.write_text("\n".join(code for code, _ in found))
    names = {"spark": spark, "__name__": "__main__", "__file__": str(script)}
    line = 0
    for code, expected in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(script), "exec"), names)
        line += code.count("\n") + 1
        assert printed.getvalue().strip() == textwrap.dedent(expected).strip(), code
