"""Patterns from repositories match in linear time, and as Python's ``re`` where both can."""

from __future__ import annotations

import re

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.project.aliases import Aliases
from govtool.linear import LinearRegex, _is_simple
from govtool.query.selection.patterns import Pattern

LONG = "a" * 5_000 + "!"


@pytest.mark.parametrize(
    "text",
    [
        "/(a|a)*b/",
        "/(a+)+$/",
        "/^(([a-z])+.)+[A-Z]([a-z])+$/",
        "/(.*)*x/",
        "/" + "a?" * 100 + "a" * 100 + "b/",
        "/(a|b|ab)*c/",
        "*a" * 100 + "*b",
        "**." * 100 + "b",
        "**." + "*a" * 60 + ".**." + "*b" * 60,
    ],
)
@pytest.mark.parametrize("name", [LONG, "a." * 2_000 + "d", '"' * 2_000, "[" * 2_000, "é" * 3_000], ids=range(5))
def test_patterns_that_backtrack_without_end_elsewhere_end(text, name):
    assert Pattern(text).matches(name) is False


@pytest.mark.parametrize("text", ["(?=a)b", r"(a)\1", "(?<!a)b", "(", "(a{1000}){1000}", "[z-a]", "a" + "(" * 200])
def test_what_cannot_be_matched_in_linear_time_is_refused(text):
    with pytest.raises(ValueError, match="is not a regular expression"):
        Pattern(f"/{text}/")


ATOMS = st.sampled_from(["a", "b", ".", "_", "[ab]", "[^a]", "(?:a|b)", "(a|ab)", r"\.", "^", "$", "(^|[._])", "x"])
REPEATS = st.sampled_from(["", "", "?", "*", "+", "{2}"])


@settings(deadline=None, max_examples=examples(400))
@given(
    st.lists(st.tuples(ATOMS, REPEATS), max_size=5),
    st.booleans(),
    st.text(alphabet="abxA._é\n", max_size=12),
)
def test_both_engines_find_the_same(parts, ignore, name):
    text = ("(?i)" if ignore else "") + "".join(atom if atom in "^$" else atom + repeat for atom, repeat in parts)
    regex = LinearRegex(text)
    dollar = re.compile(text.replace("$", r"\Z"))
    assert regex.search(name) == bool(dollar.search(name))
    assert regex.fullmatch(name) == bool(dollar.fullmatch(name))


NAMES = st.lists(st.sampled_from(["a", "ab", "b_c", '"x.y"', '"q""r"', "items[]", "p['k.z']"]), min_size=1, max_size=5)
GLOBS = st.lists(
    st.sampled_from(["a", "ab", "*", "**", "a*", "*b", "?", "b_?", "*_*", '"x.y"', "items[]"]), min_size=1, max_size=5
)


def by_hand(parts: list[str], names: list[str]) -> bool:
    """A glob's parts against a name's."""
    if not parts:
        return not names
    if parts[0] == "**":
        if len(parts) == 1:
            return bool(names)
        return any(by_hand(parts[1:], names[i:]) for i in range(len(names) + 1))
    return bool(names) and within(parts[0], names[0]) and by_hand(parts[1:], names[1:])


def within(part: str, name: str) -> bool:
    if part.startswith('"') or not ("*" in part or "?" in part):
        return part == name
    if name.startswith('"') or "[" in name:
        return part == "*" or (part == "?" and False)
    return re.fullmatch(part.replace("*", ".*").replace("?", "."), name, re.DOTALL) is not None


@settings(deadline=None, max_examples=examples(400))
@given(GLOBS, NAMES)
def test_globs_match_part_by_part(parts, names):
    assert Pattern(".".join(parts)).matches(".".join(names)) == by_hand(parts, names)


def test_what_is_simple():
    for pack in ("(?i)(^|[._])e?_?mail(_?addr(ess)?)?$", "^user", "mart_.*_v[0-9]$"):
        assert _is_simple(pack)
    for nested in (
        "(?:a?){60}a{60}",
        "a{0,99}a{0,99}b",
        "(a{1,9}){9}b",
        "((a|a){2}){9}b",
        "(.*a){25}",
        "a*" + "a?" * 10,
    ):
        assert not _is_simple(nested)
    for other in ("(a|a)*b", r"\w+", "a*b*", "é", "(?P<n>a)", "(?m)^a", "a*?", "[[:alpha:]]", "a?" * 20):
        assert not _is_simple(other)


def test_aliases_with_many_stars():
    aliases = Aliases([("*a" * 60 + "*b", "x")])
    assert aliases.dataset(LONG) == LONG
    assert Aliases([("s3://*/y=*/z", "lake.*.*")]).dataset("s3://b/c/y=1/z") == "lake.b/c.1"


def test_names_without_bytes_in_utf8():
    assert Pattern("/^a/").matches("a\udc80") is True
    assert Pattern("**.b").matches("a\udc80.b") is True


@pytest.mark.parametrize(
    ("text", "name"), [("/a(?i)b/", "aB"), ("/b$?/", "b"), ("/b$+/", "ab"), ("/a(?:(?i)b)/", "aB")]
)
def test_what_only_re_refuses_is_matched(text, name):
    assert Pattern(text).matches(name)
    assert not Pattern(text).matches("c")
