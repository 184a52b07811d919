"""Masking policies of columns and access policies of rows, as scripts declare them.

    [WITH | SET] MASKING POLICY p [USING (…)], UNSET MASKING POLICY                Snowflake
    [WITH | ADD | DROP] ROW ACCESS POLICY p ON (…), DROP ALL ROW ACCESS POLICIES   Snowflake
    [SET | DROP] MASK f, [SET | DROP] ROW FILTER f ON (…)                          Databricks
    CREATE | DROP ROW ACCESS POLICY p ON t                                         BigQuery
    OPTIONS (data_policies = ["{'name': 'p.us.mask'}"]) of a column                BigQuery

They are the facts ``masking_policy`` and ``row_access_policy``, with the policy's name.
"""

from __future__ import annotations

import re
from typing import Final

from govtool.capture.sql.properties.statement_names import NameReader
from govtool.model.fact import MASKING_POLICY, ROW_ACCESS_POLICY
from govtool.names import fold, join_name

_POLICY_NAME: Final = re.compile(r"""['"]?name['"]?\s*:\s*['"]([^'"]+)""")
_EXISTENCE: Final = ("IF", "NOT", "EXISTS", "NOT EXISTS")


def read_clause(reader: NameReader, dataset: str, column: str | None, at: int) -> int:
    """Read a clause of a definition; the place behind it, or 0 if another one is there."""
    return _read_mask(reader, dataset, column, at) or _read_rows(reader, dataset, at)


def read_action(reader: NameReader, dataset: str, column: str | None, at: int) -> int:
    """Read an action of an ALTER that sets or lifts a policy; the place behind it, or 0 if it does something else."""
    verb, following = reader.words[at], at + 1
    if verb == "SET":
        return read_clause(reader, dataset, column, following)
    if verb == "ADD":
        return _read_rows(reader, dataset, following)
    return _lift(reader, dataset, column, following) if verb in ("DROP", "UNSET") else 0


def read_row_policy(reader: NameReader) -> bool:
    """Read ``CREATE [OR REPLACE] | DROP ROW ACCESS POLICY [IF [NOT] EXISTS] p ON t``; False if it is none.

    Snowflake's statement of the same words names no table.
    """
    if reader.words[0] not in ("CREATE", "DROP") or " ROW ACCESS POLICY" not in " ".join(reader.words[:8]):
        return False
    at = reader.words.index("POLICY") + 1
    while reader.words[at] in _EXISTENCE:
        at += 1
    policy, end = _policy(reader, at)
    parts = reader.name(end + 1)[0] if reader.words[end] == "ON" else []
    if policy and parts:
        stated = reader.stated.setdefault(reader.dataset(parts), {})
        if reader.words[0] == "CREATE":
            stated[None, ROW_ACCESS_POLICY, policy] = [(ROW_ACCESS_POLICY, policy)]
        else:
            stated.pop((None, ROW_ACCESS_POLICY, policy), None)
    return True


def read_data_policies(
    stated: dict[tuple[str | None, str, str], list[tuple[str, str]]], column: str | None, texts: list[str]
) -> None:
    """Enter the data policies of a column of BigQuery; those that it had before end.

    Args:
        stated: What is stated of the table.
        column: The column; None: nothing is entered.
        texts: The strings of the option: objects with a name, or names.
    """
    if column is None:
        return
    stated.pop((column, MASKING_POLICY, ""), None)
    names = [found[1] if (found := _POLICY_NAME.search(text)) else text.strip() for text in texts]
    if any(names):
        stated[column, MASKING_POLICY, ""] = [(MASKING_POLICY, name) for name in names if name]


def _read_mask(reader: NameReader, dataset: str, column: str | None, at: int) -> int:
    named = reader.words[at : at + 2] == ["MASKING", "POLICY"]
    if column is None or not (named or reader.words[at] == "MASK"):
        return 0
    policy, behind = _policy(reader, at + 2 if named else at + 1)
    if policy:
        reader.stated.setdefault(dataset, {})[column, MASKING_POLICY, ""] = [(MASKING_POLICY, policy)]
    return behind if policy else 0


def _read_rows(reader: NameReader, dataset: str, at: int) -> int:
    named = reader.words[at : at + 3] == ["ROW", "ACCESS", "POLICY"]
    if not named and reader.words[at : at + 2] != ["ROW", "FILTER"]:
        return 0
    policy, behind = _policy(reader, at + 3 if named else at + 2)
    if policy:
        key = policy if named else ""  # a table of Databricks has one row filter
        reader.stated.setdefault(dataset, {})[None, ROW_ACCESS_POLICY, key] = [(ROW_ACCESS_POLICY, policy)]
    return behind if policy else 0


def _lift(reader: NameReader, dataset: str, column: str | None, at: int) -> int:
    """Read what follows DROP or UNSET."""
    stated = reader.stated.setdefault(dataset, {})
    if reader.words[at] in ("MASK", "MASKING"):
        stated.pop((column, MASKING_POLICY, ""), None)
        return at + (2 if reader.words[at] == "MASKING" else 1)
    if reader.words[at : at + 4] == ["ALL", "ROW", "ACCESS", "POLICIES"]:
        for key in [key for key in stated if key[1] == ROW_ACCESS_POLICY]:
            del stated[key]
        return at + 4
    if reader.words[at] != "ROW":
        return 0
    policy, behind = _policy(reader, at + 3) if reader.words[at + 1] == "ACCESS" else ("", at + 2)
    stated.pop((None, ROW_ACCESS_POLICY, policy), None)
    return behind


def _policy(reader: NameReader, at: int) -> tuple[str, int]:
    """The name of a policy, empty if there is none, and the place behind it."""
    parts, behind = reader.name(at)
    return join_name([fold(text, quoted=quoted, dialect=reader.dialect) for text, quoted in parts]), behind
