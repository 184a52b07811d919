"""Templates that would run without end stop after the same number of steps everywhere, and say so."""

from __future__ import annotations

import pytest

from govtool.capture.sql.templates import budget
from govtool.capture.sql.templates.template import render

NEST = "{%% set ns = namespace(x='a', y='a') %%}{%% for i in range(60) %%}%s{%% endfor %%}"
LISTS = NEST % "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}"
TUPLES = NEST % "{% set ns.x = (ns.x, ns.x) %}"
DICTS = NEST % "{% set ns.x = {'a': ns.x, 'b': ns.x} %}"
SPACES = NEST % "{% set ns.x = namespace(a=ns.x, b=ns.x) %}"
MANY = "{% set x = range(9999)|list %}{% for i in range(9999) %}%s{% endfor %}select 1"


@pytest.mark.parametrize(
    "text",
    [
        LISTS + "select {{ ns.x }}",
        LISTS + "select {{ ns.x|tojson }}",
        LISTS + "select {{ ns.x|pprint }}",
        LISTS + "select {{ ns.x ~ 'a' }}",
        LISTS + "select {{ '%s' % ns.x }}",
        LISTS + "select {{ '{}'.format(ns.x) }}",
        LISTS + "select {% if ns.x == ns.y %}1{% endif %}",
        LISTS + "select {% if ns.x < ns.y %}1{% endif %}",
        LISTS + "select {{ [ns.x, ns.y]|sort }}",
        LISTS + "select {% if ns.x in [ns.y] %}1{% endif %}",
        LISTS + "select {% if ns.x is eq ns.y %}1{% endif %}",
        TUPLES + "select {% set d = {ns.x: 1} %}{{ d|length }}",
        TUPLES + "select {% set d = {} %}{{ d[ns.x] }}",
        DICTS + "select {{ ns.x|string|length }}",
        SPACES + "select {{ ns.x }}",
        MANY.replace("%s", "{% set y = x|sort %}"),
        MANY.replace("%s", "{% if 'a' in x %}a{% endif %}"),
        MANY.replace("%s", "{% set y = x|map('string')|join(',') %}"),
        MANY.replace("%s", "{% set y = x.index(9998) %}"),
        "{% set x = 'a' * 900000 %}{% for i in range(9999) %}{% set y = x|replace('b', 'c') %}{% endfor %}select 1",
        "{% set x = [] %}{% for i in range(9999) %}{% do x.append('a' * 90000) %}{% endfor %}select 1",
        "{% set ns = namespace(x=['a']) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x]|sum(start=[]) %}{% endfor %}select 1",
    ],
)
def test_a_template_without_end_ends_with_a_diagnostic(text, monkeypatch):
    monkeypatch.setattr(budget, "MAX_STEPS", 200_000)
    first, again = (render(text, file="a.sql").diagnostics for _ in range(2))
    assert [(d.code, d.message) for d in first] == [("template", "cannot be rendered: more than 200000 steps")]
    assert again == first


def test_the_clock_is_the_last_guard(monkeypatch):
    monkeypatch.setenv("GOVTOOL_FILE_SECONDS", "0.001")
    (found,) = render(MANY.replace("%s", "{% set y = x|first %}"), file="a.sql").diagnostics
    assert found.message == "cannot be rendered: more than 0.001 seconds of CPU; GOVTOOL_FILE_SECONDS allows more"


def test_a_large_template_is_within_its_bounds():
    columns = "{% set columns = range(400)|list %}{% for t in range(20) %}select "
    text = columns + "{% for c in columns %}c{{ c }}{{ ', ' if not loop.last }}{% endfor %} from t{{ t }};{% endfor %}"
    assert render(text, file="a.sql").diagnostics == ()


@pytest.mark.parametrize(
    "value",
    [
        "range(99999)|join('a' * 99999)",
        "range(99999)|join(d='a' * 99999)",
        "('a' * 99999).join(range(99999)|map('string'))",
        "zip(range(99999), range(99999))|join('a' * 99999)",
        "'{:1000000000}'.format(1)",
        "'{:{}}'.format(1, 10 ** 9)",
        "'{a:{b}}'.format_map({'a': 1, 'b': 10 ** 9})",
        "'%*d' % (10 ** 9, 1)",
        "(1).to_bytes(10 ** 9, 'big')",
        "'a'.encode().ljust(10 ** 9)",
    ],
)
def test_a_value_that_would_fill_the_memory_is_not_made(value):
    first, *_ = render(f"select '{{{{ {value} }}}}'", file="a.sql").diagnostics
    assert first.message in (
        "cannot be rendered: a value that is too long",
        "cannot be rendered: a format that is too wide",
    )


def test_formats_of_ordinary_width_are_made():
    text = "select '{{ '{:>{}}'.format('x', 5) }}', '{{ '%05d' % 3 }}', '{{ '{}-{}'.format(20240101, 'x') }}'"
    assert render(text).variants[0].text == "select '    x', '00003', '20240101-x'"
