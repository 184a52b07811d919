"""Calls of routines that no script of a batch defines: statements of unknown reach.

A call of a routine that is read has no lineage by itself; what the routine writes is read where it is defined.
Procedures of the database systems that only administer (``sp_addextendedproperty``, ``DBMS_STATS``) move no data.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final

from govtool.capture.sql.resolve.states import ScriptState, StatementState
from govtool.capture.sql.scripts.control.dynamic import CALLS_ROUTINE
from govtool.capture.sql.syntax.lexer import word_set
from govtool.model import Diagnostic

_PART: Final = r"""(?:[\w$#]+|"[^"]+"|`[^`]+`|\[[^\]]+\])"""
_NAME: Final = rf"({_PART}(?:\s*\.\.?\s*{_PART})*)"
_HEADS: Final = frozenset(
    f"create {kind}" for kind in ("procedure", "proc", "function", "task", "event", "package", "macro", "aggregate")
)
_DEFINED: Final = re.compile(
    rf"[^(;]*?\b(?:PROCEDURE|PROC|FUNCTION|TASK|EVENT|PACKAGE|MACRO|AGGREGATE)\s+(?:BODY\s+)?"
    rf"(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}",
    re.IGNORECASE,
)
_PREPARED: Final = re.compile(rf"\s*PREPARE\s+{_NAME}", re.IGNORECASE)
_CALLED: Final = re.compile(
    rf"\s*(?:(?:CALL|EXECUTE|EXEC)\s+)?(?:@\w+\s*=\s*)?(?:(?:TASK|ALERT)\s+)?{_NAME}", re.IGNORECASE
)
_NOBODY_DEFINES: Final = "which no script here defines: what it reads and writes is not known"
_NAME_PART: Final = re.compile(rf"{_PART}")
_MAX_HEAD: Final = 400
"""Characters of a CREATE in which the name of the routine is looked for."""

_OF_SQL_SERVER: Final = word_set(
    """SP_HELP SP_HELPTEXT SP_HELPINDEX SP_HELPCONSTRAINT SP_HELPDB SP_HELPFILE SP_HELPFILEGROUP SP_HELPUSER
    SP_HELPROLE SP_HELPROLEMEMBER SP_HELPLOGINS SP_HELPTRIGGER SP_HELPSTATS SP_HELPEXTENDEDPROC SP_ADDEXTENDEDPROPERTY
    SP_UPDATEEXTENDEDPROPERTY SP_DROPEXTENDEDPROPERTY SP_ADDLOGIN SP_ADDROLE SP_ADDROLEMEMBER SP_ADDSRVROLEMEMBER
    SP_ADDUSER SP_ADDTYPE SP_ADDMESSAGE SP_DROPLOGIN SP_DROPROLE SP_DROPROLEMEMBER SP_DROPSRVROLEMEMBER SP_DROPUSER
    SP_DROPTYPE SP_DROPMESSAGE SP_GRANTLOGIN SP_GRANTDBACCESS SP_REVOKELOGIN SP_REVOKEDBACCESS SP_BINDRULE
    SP_UNBINDRULE SP_BINDEFAULT SP_UNBINDEFAULT SP_TRACE_CREATE SP_TRACE_SETEVENT SP_TRACE_SETFILTER
    SP_TRACE_SETSTATUS SP_CDC_ENABLE_DB SP_CDC_ENABLE_TABLE SP_CDC_DISABLE_DB SP_CDC_DISABLE_TABLE
    SP_FULLTEXT_CATALOG SP_FULLTEXT_COLUMN SP_FULLTEXT_DATABASE SP_FULLTEXT_SERVICE SP_FULLTEXT_TABLE
    SP_XML_PREPAREDOCUMENT SP_XML_REMOVEDOCUMENT SP_SETAPPROLE SP_SETTRIGGERORDER SP_SET_SESSION_CONTEXT
    SP_GETAPPLOCK SP_RELEASEAPPLOCK SP_GETBINDTOKEN SP_CHANGEDBOWNER SP_CHANGEOBJECTOWNER SP_CHANGE_USERS_LOGIN
    SP_UPDATESTATS SP_CREATESTATS SP_AUTOSTATS SP_DBOPTION SP_DBCMPTLEVEL SP_RECOMPILE SP_REFRESHVIEW
    SP_REFRESHSQLMODULE SP_CONFIGURE SP_WHO SP_WHO2 SP_LOCK SP_DEPENDS SP_SPACEUSED SP_TABLEOPTION SP_INDEXOPTION
    SP_SERVEROPTION SP_PROCOPTION SP_ESTIMATE_DATA_COMPRESSION_SAVINGS SP_COLUMNS SP_TABLES SP_DATABASES SP_PKEYS
    SP_FKEYS SP_STATISTICS SP_STORED_PROCEDURES SP_DESCRIBE_FIRST_RESULT_SET SP_MONITOR SP_ADD_JOB SP_ADD_JOBSERVER
    SP_ADD_JOBSCHEDULE SP_ADD_SCHEDULE SP_ATTACH_SCHEDULE SP_UPDATE_JOB SP_DELETE_JOB"""
)
"""Stored procedures of the system, by Microsoft's reference of Transact-SQL: others may be called ``sp_…`` as well."""
_SYSTEM_SCHEMA: Final = re.compile(r"(?:(?:master|msdb|tempdb)\.(?:\.|dbo\.|sys\.)?|dbo\.|sys\.)?", re.IGNORECASE)
_ADMINISTERS: Final = r"""system\$\w+|bq\.(?:refresh_materialized_view|abort_session|jobs\.cancel)|mysql\.rds_\w+|
    refresh_continuous_aggregate|(?:add|remove)_(?:retention|compression|columnstore|reorder|continuous_aggregate)_policy|
    raise_application_error|
    (?:sys\.)?dbms_(?:output|stats|lock|session|application_info|random|lob|utility|metadata|mview|snapshot|assert|
    crypto|alert|profiler|space|rls|refresh|transaction|flashback|monitor|trace|obfuscation)\.\w+|apex_util\.\w+|
    (?:\w+\.)?system\.(?:runtime\.kill_query|rewrite_\w+|expire_snapshots|remove_orphan_files|rollback_to_\w+|
    set_current_snapshot|cherrypick_snapshot|fast_forward|publish_changes|ancestors_of|compute_table_stats|
    sync_partition_metadata|flush_metadata_cache|drop_stats|unregister_table)"""
"""Procedures that other systems bring with them and that hand on no data of tables."""


_EFFECT: Final = re.compile(rf"\s*(SELECT|PERFORM)\s+{_NAME}\s*\(", re.IGNORECASE)
_RUN_BY_TRIGGER: Final = re.compile(rf".*?\bEXECUTE\s+(?:FUNCTION|PROCEDURE)\s+{_NAME}", re.IGNORECASE | re.DOTALL)
_FROM: Final = re.compile(r"\b(?:FROM|INTO)\b", re.IGNORECASE)
_LITERAL: Final = re.compile(r"'[^']*'")
_OF_POSTGRES: Final = r"""
    pg_catalog\.\w+|pg_\w+|set_config|current_setting|(?:set|next|curr|last)val|lo_\w+|txid_\w+|has_\w+_privilege|
    (?:obj|col|shobj)_description|inet_\w+|to_(?:char|date|timestamp|number|jsonb?|ts\w+|hex|reg\w+)|
    jsonb?_\w+|array_\w+|regexp_\w+|postgis_\w+|
    (?:\w+\.)?(?:add|drop|update)geometry\w+|uuid_generate_\w+|gen_(?:random_\w+|salt)|gin_\w+|
    brin_\w+|ts_(?:rank\w*|headline|lexize|debug|stat)|tsvector_\w+|set_limit|
    create_hypertable|create_distributed_table|suppress_redundant_updates_trigger|version|setseed|moddatetime|
    row|distinct|all|any|some|not|interval|(?:clock|statement|transaction)_timestamp|timeofday|\w+_agg|quote_\w+|digest|
    crypt|hmac|encode|decode|current_\w+|session_user|
    set_(?:chunk|integer|number)\w*|format"""
"""Functions of PostgreSQL and its common extensions that hand on no data but that of tables which they name."""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of names; compiled where a call is read, as most ingests read none."""
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


@cache
def _known_to_postgres() -> frozenset[str]:
    """The names of functions that the parser of PostgreSQL knows."""
    from sqlglot.dialects.postgres import Postgres

    return frozenset({*Postgres.Parser.FUNCTIONS, *Postgres.Parser.FUNCTION_PARSERS})


def defined_routines(scripts: Iterable[ScriptState]) -> frozenset[str]:
    """Return the names of all routines, tasks and prepared statements that scripts define, in lower case."""
    found: set[str] = set()
    for script in scripts:
        for statement in script.statements:
            parsed = statement.parsed
            if parsed.routine:
                found.add(_plain(parsed.routine))
            match = None
            if parsed.head in _HEADS or parsed.head.startswith("declare"):
                match = _DEFINED.match(parsed.text, 0, _MAX_HEAD)
            elif parsed.head.startswith("prepare"):
                match = _PREPARED.match(parsed.text)
            if match is not None:
                found.add(_plain(match[1]))
    return frozenset(found)


def is_call(statement: StatementState) -> bool:
    """Return whether a statement only calls a routine: one of PostgreSQL also by SELECT, PERFORM or a trigger."""
    parsed = statement.parsed
    if statement.script.dialect == "postgres" and _called_by_postgres(parsed.head, parsed.text):
        return True
    noted = any(note.message == CALLS_ROUTINE for note in parsed.diagnostics)
    return parsed.status == "ignored" and (noted or parsed.head == "call")


def _called_by_postgres(head: str, text: str) -> str | None:
    """Return the name of the function that a statement runs for what it does, if it reads nothing; else None."""
    if head.startswith("create") and "trigger" in head:
        found = _RUN_BY_TRIGGER.match(text)
        return found[1] if found is not None else None
    found = _EFFECT.match(text) if head.startswith(("select", "perform")) else None
    if found is None or (found[1].upper() == "SELECT" and _FROM.search(_LITERAL.sub("", text))):
        return None
    name = _plain(found[2])
    is_known = _last_part(name).upper() in _known_to_postgres() or _pattern(_OF_POSTGRES).fullmatch(name)
    return None if is_known else found[2]


def unknown_routine(statement: StatementState, defined: Mapping[str, Collection[str]]) -> str | None:
    """Return the name of the routine that a call runs, if what it does is unknown here; else None.

    Args:
        statement: A call (``is_call``).
        defined: Names of ``defined_routines``, by their last part.
    """
    name = called_name(statement)
    if name is None:
        return statement.parsed.text[:60]
    return None if _is_defined(name, defined) or _administers(name) else name


def called_name(statement: StatementState) -> str | None:
    """Return the name of the routine that a call runs; None if the text does not show it."""
    written = None
    if statement.script.dialect == "postgres":
        written = _called_by_postgres(statement.parsed.head, statement.parsed.text)
    if written is None:
        match = _CALLED.match(statement.parsed.text)
        written = None if match is None else match[1]
    return None if written is None else _plain(written)


def needed_routines(script: ScriptState) -> frozenset[str]:
    """Return the names of the routines that must be defined somewhere for the calls of a script to be understood.

    Args:
        script: One none of whose calls is of an unknown routine.
    """
    names = {called_name(statement) for statement in script.statements if is_call(statement)}
    return frozenset(name for name in names if name is not None and not _administers(name))


def missing_routines(needed: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Return those of the needed routines that are not among the known ones, as ``defined_routines`` names them."""
    defined = _by_last_part(known)
    return frozenset(name for name in needed if not _is_defined(name, defined))


def mark_unknown_calls(scripts: Iterable[ScriptState], known: frozenset[str]) -> None:
    """Make calls of routines that nobody defines statements that are not understood.

    Args:
        scripts: A batch.
        known: Routines that other batches define, as ``defined_routines`` names them.
    """
    every = list(scripts)
    calls = [statement for script in every for statement in script.statements if is_call(statement)]
    if not calls:
        return
    defined = _by_last_part(known | defined_routines(every))
    for statement in calls:
        unknown = unknown_routine(statement, defined)
        if unknown is None:
            continue
        kept = [note for note in statement.diagnostics if note.message != CALLS_ROUTINE]
        message = f"calls {unknown[:120]}, {_NOBODY_DEFINES}"
        statement.diagnostics = [*kept, Diagnostic("opaque", "warning", message)]
        statement.parsed = statement.parsed._replace(status="opaque")


def calls_unknown(statement: StatementState) -> bool:
    """Return whether a statement was found to call a routine that nobody defines."""
    return any(note.message.endswith(_NOBODY_DEFINES) for note in statement.diagnostics)


def _plain(name: str) -> str:
    """The parts of a name without quotes, in lower case; of ``db..name`` the last, as its schema is not written."""
    parts = [part.strip('"`[]').lower() for part in _NAME_PART.findall(name)]
    return ".".join(parts[-1:] if ".." in re.sub(r"\s", "", name) else parts)


def _by_last_part(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_last_part(name), []).append(name)
    return found


def _last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _is_defined(name: str, defined: Mapping[str, Collection[str]]) -> bool:
    """Return whether a name may stand for one of those that are defined: one of the two may leave out schemas."""
    others = defined.get(_last_part(name), ())
    return any(f".{other}".endswith(f".{name}") or name.endswith(f".{other}") for other in others)


def _administers(name: str) -> bool:
    """Return whether a routine is one of those that systems bring."""
    last = _last_part(name).upper()
    if last in _OF_SQL_SERVER and _SYSTEM_SCHEMA.fullmatch(name[: -len(last)]) is not None:
        return True
    return _pattern(_ADMINISTERS).fullmatch(name) is not None
