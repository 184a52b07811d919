"""The glossary explains every verdict that an answer can give, the worst first."""

from pathlib import Path

from govtool.query.changes.whatif import VERDICTS

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_glossary_lists_the_verdicts_in_their_order():
    section = GLOSSARY.read_text("utf-8").split("## Verdicts")[1].split("\n## ")[0]
    rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert tuple(rows) == VERDICTS
