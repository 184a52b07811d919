"""MySQL's conditional comments, and words that the parser takes for something else."""

from __future__ import annotations

import pytest

from govtool.capture.sql.scripts.clients.mysql import with_conditional_code, without_modifiers


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("/*!50001 CREATE */ /*!50013 x=`a*/`*/ VIEW", "CREATE x=`a*/` VIEW"),
        ("/*! a */ b", "a b"),
        ("/*M!100100 a */", "a"),
        ("/*!50003 a /* b */ c */ d", "a /* b */ c d"),
        ("/*!50003 '*/' */", "'*/'"),
    ],
)
def test_conditional_comments_are_code(text: str, code: str) -> None:
    found = with_conditional_code(text)
    assert " ".join(found.split()) == code
    assert len(found) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "/*!999999\\- enable the sandbox mode */",
        "SELECT '/*!50001 x */', \"/*! */\", `/*!`",
        "/* a /*! b */ c",
        "-- /*! a\nSELECT 1 # /*! b\n",
        "SELECT /*+ hint */ a",
        "SELECT a */ b",
    ],
)
def test_other_comments_stay(text: str) -> None:
    assert with_conditional_code(text) == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("DELETE QUICK FROM t", "DELETE FROM t"),
        ("delete low_priority\n quick ignore from t", "delete from t"),
        ("DELETE quick FROM t", "DELETE FROM t"),
        ("DELETE quick.* FROM t", "DELETE quick.* FROM t"),
        ("DELETE ignore_me FROM ignore_me", "DELETE ignore_me FROM ignore_me"),
        ("DELETE FROM quick", "DELETE FROM quick"),
    ],
)
def test_modifiers_of_delete(text: str, code: str) -> None:
    found = without_modifiers(text)
    assert " ".join(found.split()) == code
    assert (len(found), found.count("\n")) == (len(text), text.count("\n"))
