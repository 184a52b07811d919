"""Redaction of secrets in text: passwords, tokens, keys in URIs, signatures of presigned URLs.

Every path by which text of others reaches the store or a screen goes through here: names of files and stages, SQL
text, diagnostics and their source lines, settings of jobs, error messages of events. Literals of people in SQL are
another matter (``govtool.capture.sql.syntax.redact.redact``).
"""

from __future__ import annotations

import re

SECRET = "***"
"""What stands in place of a secret."""

WORD = (
    r"(?:pass(?:word|wd|phrase)?|passw|pwd|secret|token|key[-_]?id|credentials?|sig|signature"
    r"|(?:api|access|account|master|private|storage|encryption)[-_.]?key)"
)
"""A regular expression of what the name of a secret has in it."""
_SECRET_NAME = re.compile(
    r"passw|passphrase|pass(?:wd)?\Z|pwd|secret|token|credential|private|signature|authorization|cookie|keytab"
    r"|truststore|sas\Z|sas[-_.]|sig\Z|key[-_.]?(?:id|list|material)"
    r"|(?:api|access|account|master|storage|shared|encrypt(?:ion)?)[-_.]?keys?|encryption[\w.-]{0,100}?[-_.]keys?\Z",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?:(?<=://)|(?<=\w:/)(?!/))[^/@\s:'\"]*:[^/@\s'\"]*@")
"""A user and password; also where a path was made of the address, which leaves one slash."""
_ORACLE = re.compile(r"(\boracle:\w+:)[^/@\s'\"]+/[^@\s'\"]*(?=@)", re.IGNORECASE)
"""A user and password as Oracle's driver takes them: ``jdbc:oracle:thin:scott/tiger@//host``."""
_USERS = re.compile(r"(?<=://)[^/@\s:'\"`]*:[^/@\s'\"`]*@")
_NAMED = rf"(?<![\w.-])(?=[\w.-]*?{WORD})[\w.-]++"
"""A name with such a word in it, whole. Each is looked at once, from its beginning: text may be one long name."""
_IN_TEXT = re.compile(rf"({_NAMED}\s*+[=:]\s*+)[^\s,;&\"']+", re.IGNORECASE)
_PROSE_WORD = WORD.replace("|sig|", r"|(?<![A-Za-z])sig(?![A-Za-z])|")
"""As `WORD`; but ``sig`` is a whole word, for prose has *assigned* and *design*."""
_IN_PROSE = re.compile(
    rf"((?<![\w.-])(?=[\w.-]*?{_PROSE_WORD})[\w.-]++\s*+=\s*+|\b(?:password|passwd|pwd)\s*+:\s*+)[^\s,;&\"']+",
    re.IGNORECASE,
)
_LAST_IS_SECRET = re.compile(
    r"(?:\A|[._-])(?:pass(?:word|wd|phrase)|pwd|token|(?:api|access|secret|account|master)[-_]?key)\Z", re.IGNORECASE
)
_LOGIN = re.compile(r"((?<![\w-])(?:-u|--user)(?:\s+|=)[^\s:'\"]{1,200}:)[^\s'\"]+")
"""A user and password as curl takes them."""
_IDENTIFIED = re.compile(r"(\bidentified\s+by\s+)(?!'\*\*\*')[^\s'\"]\S*", re.IGNORECASE)
_REPLACED = re.compile(r"(\bidentified\s+by\s+\S+\s+replace\s+)\S+", re.IGNORECASE)
"""Oracle's old password, behind the new one."""
_COMMENT = re.compile(r"/\*|--\s")
"""The beginning of a comment; see `_without_comments`."""
_BEARER = re.compile(r"\b(bearer\s+)\S+", re.IGNORECASE)
_QUOTED = re.compile(
    rf"((?:{_NAMED}|\bidentified\s+by|\bprogram|\bxp_cmdshell)['\"]?\s*+(?:(?:=>?|:|,|\bis\b|\bby\b|\bvalues\b)\s*+)?[NEUB]?)"
    r"(''[^'\s]+''|'(?:[^'\\\n]|\\.|'')*'?|\"(?:[^\"\\\n]|\\.|\"\")*\"?|\$(\w*)\$[^$\n]+\$\3\$)",
    re.IGNORECASE,
)
"""A literal (also within one) behind a word that announces a secret; where the line ends in it, the rest of it."""
_REMOTE_CALL = re.compile(
    r"\b(?:s3|s3cluster|gcs|cosn|oss|azureblobstorage|mysql|postgresql|mongodb|redis|remote|remotesecure)\s*"
    r"\(((?:[^()'\"\n]|'(?:[^'\\\n]|\\.|'')*'?)*)",
    re.IGNORECASE,
)
"""ClickHouse's table functions, whose keys and passwords have no names; the arguments as a group."""
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.|'')*'?")
_PERSONAL = re.compile(
    r"'(?:[^'\n]*@|(?=[^'\n]*[A-Za-z])(?=[^'\n]*\d)[^'\s/]{8,}(?=['\n]|\Z))[^'\n]*'?"
    r'|"(?=[^"@\n]*@)[^"\n]*+"|\$(\w*)\$[^$\n]+\$\1\$'
)
"""A literal with an ``@``, or of letters and digits without a space: of a person, or a key; and text in ``$$``."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z]+:)*//)([^/?#]*)([^?#]*)(\?[^#]*)?", re.DOTALL)
_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
"""Schemes in which the part before ``@`` is a container, no user (Azure's ``abfss://container@account``)."""
_SIGNED = re.compile(r"[?&](?:sig|signature|x-amz-signature|x-goog-signature|x-oss-signature)=", re.IGNORECASE)
_SETTING = re.compile(rf";(?=[^;=]*?{WORD})[^;=]++=[^;]*", re.IGNORECASE)
"""A secret among the settings of a JDBC address: ``jdbc:sqlserver://host;user=u;password=…``."""
_PARAMETER = re.compile(rf"(?:^|(?<=&))(?:code|auth|(?=[^=&]*?{WORD})[^=&]++)=[^&]*+&?", re.IGNORECASE)

_SQLSTATE = re.compile(r"\bSQLSTATE: (\w{5})\b")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
"""The name of an error of Spark, which stands before its text."""
_VALUES_IN_QUOTES = re.compile(
    r"CAST_INVALID_INPUT|CANNOT_PARSE_TIMESTAMP|CONVERSION_INVALID_INPUT|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW"
    r"|SCALAR_SUBQUERY_TOO_MANY_ROWS|TABLE_OR_VIEW_NOT_FOUND|PATH_NOT_FOUND"
)
"""Errors of Spark whose text has values of rows in quotes, or none."""
_DUCKDB = re.compile(r"([A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} Error): ")
_DATA_ERRORS = ("Conversion Error", "Out of Range Error", "Constraint Error", "Invalid Input Error", "Data Error")
"""Errors of DuckDB about a value, which they repeat; others name tables, columns and files."""
_NO_VALUES = re.compile(
    r"Error when sniffing file|Malformed JSON (?:in file|at)|Could not parse string|Map keys must|No magic bytes"
    r"|More than one row|govtool: |(?:\w+ )*(?:Could not convert|out of range)"
)
"""Beginnings of an *Invalid Input Error* that is not a text of a query's own (``error('…')``)."""
_OF_FILES = ("Error when sniffing file", "Malformed JSON in file", "No magic bytes")
_ARROW = re.compile(
    r"CSV parse error: (?:Row #\d+: )?Expected \d+ columns, got \d+"
    r"|(?:In CSV column #\d+: )?CSV conversion error to \S+: invalid value|Integer value|Float value|Could not convert"
    r"|Failed to parse string|Casting from|Value \S+ (?:out of|too)|Decimal value|time data"
)
"""Errors of pyarrow, and of Python's `strptime`, about a value."""
_VALUE_ERROR = re.compile(
    r"(?:\w+\.)*(?:ValueError|AssertionError|InvalidOperation|Unicode\w+Error|OverflowError"
    r"|NumberFormatException|DateTimeParseException|DateTimeException)\b"
)
_VALUE = re.compile(r"(?<!\w)'(?:.*'(?!\w)|.*\Z)", re.DOTALL)
_ESCAPES = re.compile(r"\\x\S*")
_DOUBLE_QUOTED = re.compile(r'(?<!\w)"(?:.*"(?!\w)|.*\Z)', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.(,])[+-]?\d[\w.:+-]*|(?<=\()[+-]?\d[\w.]* [*+/-] [+-]?\d[\w.]*(?=\))")
"""A number that is no part of a name or a type: ``INT32``, ``DECIMAL(3,1)``."""


def clean_text(text: str) -> str:
    """Return text without passwords, tokens and signatures: ``***`` stands in place of each."""
    text = _QUOTED.sub(lambda found: f"{found.group(1)}'{SECRET}'", text)
    text = _IN_TEXT.sub(rf"\1{SECRET}", _IN_URL.sub(f"{SECRET}@", text))
    for pattern in (_LOGIN, _ORACLE, _IDENTIFIED, _REPLACED, _BEARER):
        text = pattern.sub(rf"\1{SECRET}", text)
    return text


def clean_prose(text: str) -> str:
    """Return what a person wrote, or an error that repeats it, without users in addresses and values of secrets."""
    return _BEARER.sub(rf"\1{SECRET}", _IN_PROSE.sub(rf"\1{SECRET}", _IN_URL.sub(f"{SECRET}@", text)))


def clean_stated(name: str, value: str) -> str:
    """Return what a person wrote under a name, without secrets; nothing of it under the name of a password or key."""
    return SECRET if value and _LAST_IS_SECRET.search(name) else clean_prose(value)


def clean_message(text: str) -> str:
    """Return the message of an error without secrets, and without the literals of people in SQL that it repeats."""
    return _PERSONAL.sub(f"'{SECRET}'", _without_comments(_REMOTE_CALL.sub(_masked_call, clean_text(text))))


def clean_failure(failure: BaseException | str) -> str:
    """Return the first line of an error of an engine, a library or a program without secrets and values of rows.

    Engines repeat the value that they could not convert: ``Could not convert string 'Ann' to INT32``.
    """
    text = str(failure).strip()
    if type(failure).__module__.startswith("govtool."):  # what it repeats of an engine was cleaned as it was raised
        return text.split("\n", 1)[0]
    line = text.split("\n", 1)[0].rstrip()
    if not line:
        return type(failure).__name__ if isinstance(failure, BaseException) else ""
    return clean_message(_without_values(line, text))


def raised_in_worker(text: str) -> str:
    """What a function raised in a Python worker of Spark: the line below the last traceback; empty if there is none."""
    _, found, trace = text.rpartition("Traceback (most recent call last):\n")
    lines = trace.splitlines() if found else []
    return next((line for line in lines if line.strip() and not line[0].isspace()), "")


def failure_of(error: BaseException) -> str:
    """Return an error that nobody foresaw as its class and `clean_failure` of its text."""
    return clean_failure(f"{type(error).__name__}: {error}")


def clean_location(location: str) -> str:
    """Return the address of a file, folder or database without its user, password and signature.

    What names the data stays: containers of Azure (``abfss://container@account``) and parameters of the query that are
    no secrets. Where a signature is among these, all of them belong to it.
    """
    found = _SCHEME.match(location)
    if found is None:
        path, mark, query = _ORACLE.sub(rf"\1{SECRET}", location).partition("?")
        return path + _without_secrets(mark + query)
    scheme, authority, path, query = found.group(1), found.group(2), found.group(3), found.group(4) or ""
    user, at, host = authority.rpartition("@")
    if at and (":" in user or scheme.lower() not in _CONTAINERS):
        authority = host
    if ";" in authority:
        authority = _SETTING.sub("", authority)
    return scheme + authority + path + _without_secrets(query) + _without_secrets(location[found.end() :])


def _without_secrets(query: str) -> str:
    """The part of an address from its ``?`` or ``#`` on, without parameters that are secrets."""
    if _SIGNED.search(query):
        return ""
    kept = query[:1] + _PARAMETER.sub("", query[1:])
    return query if kept == query else kept.rstrip("&") if len(kept) > 1 else ""


def without_users(text: str) -> str:
    """Return SQL text without users and passwords in the addresses that it names."""
    return _USERS.sub("", text) if "://" in text else text


def is_secret_name(name: str) -> bool:
    """Return whether the name of a setting, option or parameter says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def clean_value(name: str, value: object) -> object:
    """Return the value of a setting without secrets: of one that is called like a secret, nothing."""
    if isinstance(value, str) and value:
        return SECRET if is_secret_name(name) else clean_text(clean_location(value))
    return value


def masked_line(line: str) -> str:
    """Return a line of source text of the same length, each character of a secret a ``*``, so that carets still fit."""
    line = _QUOTED.sub(lambda found: found.group(1) + _stars(found.group(2)), line)
    for pattern in (_IN_URL, _BEARER, _IN_TEXT, _LOGIN, _ORACLE, _IDENTIFIED, _REPLACED):
        line = pattern.sub(_masked_value, line)
    return _PERSONAL.sub(lambda found: _stars(found.group()), _REMOTE_CALL.sub(_masked_call, line))


def _without_values(line: str, text: str) -> str:
    spark = _CONDITION.search(line[:200])
    if spark is not None:
        state = _SQLSTATE.search(text[:10_000])
        is_about_names = state is not None and state[1].startswith(("42", "0A")) and "INVALID_FORMAT" not in spark[1]
        if is_about_names or _VALUES_IN_QUOTES.match(spark[1]):
            return _VALUE.sub(f"'{SECRET}'", line)
        return line[: spark.end()]
    duckdb = _DUCKDB.search(line[:200])
    if duckdb is not None:
        return line[: duckdb.end()] + _of_duckdb(duckdb[1], line[duckdb.end() :])
    found = _ARROW.search(line[:200]) or _VALUE_ERROR.search(line[:2000])
    if found is None:
        return line
    if found[0].startswith("CSV parse error"):  # the rest is the row
        return line[: found.end()]
    masked = _without_quoted(line[found.end() :])
    return line[: found.end()] + (masked if found.re is _VALUE_ERROR else _NUMBER.sub(SECRET, masked))


def _of_duckdb(kind: str, text: str) -> str:
    if not kind.endswith(_DATA_ERRORS):
        return _VALUE.sub(f"'{SECRET}'", text) if kind.startswith("Not implemented") else text
    if kind.endswith("Invalid Input Error") and not _NO_VALUES.match(text):
        return SECRET
    if text.startswith(_OF_FILES):
        return text
    text = _ESCAPES.sub(SECRET, text)
    return _NUMBER.sub(SECRET, _without_quoted(text))


def _without_quoted(text: str) -> str:
    return _DOUBLE_QUOTED.sub(f'"{SECRET}"', _VALUE.sub(f"'{SECRET}'", text))


def _without_comments(text: str) -> str:
    """The text with ``***`` for each comment; an open block is not a comment, as in ``s3://b/*.csv``."""
    parts, at, last = [], 0, text.rfind("*/")
    for found in _COMMENT.finditer(text):
        start = found.start()
        if start < at or (found.group() == "/*" and start + 2 > last):
            continue
        parts += [text[at:start], SECRET]
        line = text.find("\n", found.end())
        at = text.find("*/", start + 2) + 2 if found.group() == "/*" else len(text) if line < 0 else line
    return "".join((*parts, text[at:]))


def _masked_value(found: re.Match[str]) -> str:
    kept = found.group(1) if found.re.groups else ""
    end = "@" if found.group().endswith("@") and not kept else ""
    return kept + "*" * (len(found.group()) - len(kept) - len(end)) + end


def _masked_call(found: re.Match[str]) -> str:
    """The call, with all literals but the first masked: that is the address."""
    head, arguments = found.group()[: -len(found.group(1))] if found.group(1) else found.group(), found.group(1)
    first = _LITERAL.search(arguments)
    if first is None:
        return found.group()
    return head + arguments[: first.end()] + _LITERAL.sub(lambda x: _stars(x.group()), arguments[first.end() :])


def _stars(literal: str) -> str:
    """The literal with its quotes, its text masked."""
    end = literal[-1] if len(literal) > 1 and literal[-1] == literal[0] else ""
    return literal[0] + "*" * (len(literal) - 1 - len(end)) + end
