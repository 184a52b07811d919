"""Classes that columns may deserve, from their names, types and descriptions; hints to review, and no decision.

Each hint is a share of belief from 0 to 1. Hints of one kind do not add up: the strongest name, the strongest
description and the dataset count, as independent evidence: ``1 - (1 - a)(1 - b)``. A type that cannot hold the class,
such as a flag called ``email_opt_in``, takes most of it away.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.names import split_name, unquote

TEXTUAL, NUMERIC, TEMPORAL, LOGICAL = "text", "number", "time", "flag"
_UNFIT = 0.2
"""Belief that is left where the type does not fit."""
_PEOPLE = re.compile(
    r"(^|_)(customer|client|patient|person|people|member|employee|staff|contact|guest|student|passenger|applicant"
    r"|subscriber|user|account_holder|cardholder|lead|visitor|resident|driver|author)s?($|_)"
)
_TYPES = (
    (LOGICAL, re.compile(r"^bool|^bit$|^bit\(1\)")),
    (TEMPORAL, re.compile(r"^(date|time|smalldatetime|interval|year)")),
    (NUMERIC, re.compile(r"int|^(number|numeric|decimal|float|double|real|money|serial|bigserial)")),
    (TEXTUAL, re.compile(r"char|text|string|clob|varying|citext|uuid|inet|json|variant")),
)
_ABOUT = re.compile(
    r"^(is|has|num|n|count)_|_(count|cnt|flag|opt_?(in|out)|verified|sent|status|enabled|consent|preference)s?$"
)
"""Names of facts about such data that are not the data."""
_MARKED = re.compile(r"\b(pii|personal(ly identifiable)?( data| information)?|sensitive|confidential)\b", re.IGNORECASE)


class _Kind(NamedTuple):
    """The hints for one class."""

    name: str
    fits: frozenset[str]
    strong: str
    """Names that hardly mean anything else."""
    weak: str
    """Names that may mean something else; of a dataset about people they count more."""
    words: str
    """Words of a description."""


def _kind(name: str, fits: str, strong: str, weak: str = "", words: str = "") -> _Kind:
    return _Kind(name, frozenset(fits.split()), strong, weak, words)


_KINDS = (
    _kind("personal.contact.email", "text", r"e?_?mail(_?addr(ess)?)?", r".*e_?mail.*", r"e-?mail address|\be-?mail\b"),
    _kind(
        "personal.contact.phone",
        "text number",
        r"(tele)?(phone|fax|mobile|cell|msisdn)(_?(no|num|nr|number))?|.*_(phone|mobile|msisdn)(_number)?",
        r".*phone.*|tel",
        r"\b(tele|mobile |cell )?phone\b|\bmsisdn\b",
    ),
    _kind(
        "personal.contact.address",
        "text",
        r"street(_?(name|no|address))?|(home|postal|mailing|billing|shipping|delivery)_?addr(ess)?(_?[0-9])?",
        r"addr(ess)?(_?line)?_?[0-9]?|zip(_?code)?|post(al)?_?code|house_?number",
        r"\b(street|postal|mailing|home|billing|shipping) address\b|\bpost(al)? ?code\b|\bzip code\b",
    ),
    _kind(
        "personal.name",
        "text",
        r"(first|last|given|family|middle|maiden|full|legal|sur|nick)_?name"
        r"|(customer|client|patient|person|member|employee|contact|guest|student|passenger|applicant|cardholder)_name",
        r"name|user_?name|display_?name",
        r"\b(first|last|given|family|full|sur) ?names?\b|\bname of (the|a) (person|customer|patient|member|employee)\b",
    ),
    _kind(
        "personal.birth",
        "text time number",
        r"birth_?(date|day|year)|date_?of_?birth|dob|year_?of_?birth|place_?of_?birth|born(_on)?",
        r"age|.*birth.*",
        r"\b(date|year|place) of birth\b|\bbirth ?(date|day)\b",
    ),
    _kind(
        "personal.network",
        "text number",
        r"ip|ip_?v?[46]?_?addr(ess)?|(client|remote|source)_ip|mac_?addr(ess)?|device_?id|idfa|gaid|imei",
        r".*_ip|user_?agent|cookie(_?id)?|session_?id|(lat|long)itude|geo_?(point|location)",
        r"\bip address\b|\bmac address\b|\bdevice (id|identifier)\b|\bgeolocation\b",
    ),
    _kind(
        "personal.id.national",
        "text number",
        r"ssn|social_?security(_?(no|number))?|national_?(id|insurance)(_?(no|number))?|passport(_?(no|number))?"
        r"|tax_?(id|number)|nino|driver_?s?_?licen[cs]e(_?(no|number))?",
        r"id_?card|identity_?(no|number)",
        r"\bsocial security\b|\bpassport\b|\bnational (id|insurance)\b|\bdriver'?s? licen[cs]e\b",
    ),
    _kind(
        "personal.financial",
        "text number",
        r"iban|bic|(bank_?)?account_?(no|number)|(credit_?)?card_?(no|num|number)|pan|cvv2?|cvc|sort_?code|salary|wage",
        r"income|routing_?number|.*salary.*",
        r"\b(bank account|credit card|card number|iban|salary|salaries)\b",
    ),
    _kind(
        "personal.health",
        "text number",
        r"diagnos(is|es|tic_?code)|icd_?(9|10|code).*|medical_?record_?(no|number)|mrn|blood_?(type|group)|allerg(y|ies)",
        r"medication|prescription|symptoms?|disease|.*diagnosis.*",
        r"\b(diagnosis|medical|health condition|allerg(y|ies)|blood type|prescription)\b",
    ),
    _kind(
        "personal.special",
        "text number",
        r"religion|ethnicity|race|sexual_?orientation|political_?(party|opinion)|trade_?union|gender|sex|nationality",
        r"marital_?status|citizenship",
        r"\b(religion|ethnicity|ethnic origin|sexual orientation|gender|nationality)\b",
    ),
    _kind(
        "secret",
        "text",
        r"pass(word|wd|phrase)|pwd(_?hash)?|password_?(hash|salt)|api_?key|(access|refresh|auth|bearer)_?token"
        r"|private_?key|(client_?)?secret(_?key)?",
        r"token|credential(s)?|salt|pin",
        r"\b(password|api key|access token|private key|credential)s?\b",
    ),
)
CLASSES = tuple(kind.name for kind in _KINDS)
"""The classes that may be suggested."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A class that a column may deserve."""

    column: str
    class_: str
    confidence: float
    """From 0 to 1."""
    reasons: tuple[str, ...]
    """``name``, ``dataset``, ``description``, ``type``: what speaks for it, the strongest first."""


def suggestions(
    index: Index,
    nodes: Iterable[int],
    descriptions: Mapping[int, str],
    classified: Collection[int],
    least: float,
) -> Iterator[Suggestion]:
    """Yield a class for each column that may deserve one, the best of several, in the order of columns.

    A column that copies another gets none where that one has the same: classes are inherited.

    Args:
        index: The graph.
        nodes: The columns to look at.
        descriptions: Texts about columns, of their datasets too.
        classified: Columns that have a class already.
        least: Confidence from which on a class is suggested.
    """
    found: dict[int, Suggestion] = {}
    for node in sorted(nodes):
        if node not in classified and not index.is_unknown(node) and not index.is_rows(node):
            best = max(_of_column(index, node, descriptions.get(node, "")), key=_order, default=None)
            if best is not None and best.confidence >= least:
                found[node] = best
    heirs = _heirs(index, found, classified)
    yield from (one for node, one in found.items() if node not in heirs)


def _order(one: Suggestion) -> tuple[float, int]:
    return one.confidence, -CLASSES.index(one.class_)


def _heirs(index: Index, found: Mapping[int, Suggestion], classified: Collection[int]) -> set[int]:
    """The columns that copy one with the same class, or one that is classified; of columns that copy each other all but
    the first.
    """
    import networkx as nx

    copies: nx.DiGraph[int] = nx.DiGraph()
    heirs: set[int] = set()
    for node, one in found.items():
        for edge in index.in_edges(node):
            source = index.edge_source[edge]
            if index.kind(edge) is not EdgeKind.IDENTITY or source == node:
                continue
            other = found.get(source)
            if source in classified:
                heirs.add(node)
            elif other is not None and other.class_ == one.class_:
                copies.add_edge(source, node)
    for group in nx.strongly_connected_components(copies):
        first = min(group)
        from_others = any(source not in group for node in group for source in copies.predecessors(node))
        heirs |= group if from_others else group - {first}
    return heirs


def _of_column(index: Index, node: int, description: str) -> Iterator[Suggestion]:
    name = re.sub(r"[\s-]+", "_", unquote(split_name(index.path(node))[-1])).lower()
    dataset = unquote(split_name(index.dataset_name(index.node_dataset[node]))[-1]).lower()
    about_people = bool(_PEOPLE.search(dataset))
    type_ = _type_of(index.type(node))
    marked = bool(_MARKED.search(description))
    for kind in _KINDS:
        hints = _hints(kind, name, description, about_people=about_people, marked=marked)
        belief = 1.0
        for share in hints.values():
            belief *= 1 - share
        confidence = 1 - belief
        if (type_ and type_ not in kind.fits) or _ABOUT.search(name):
            confidence *= _UNFIT
        elif type_ and hints:
            hints["type"] = 0.0
        if hints:
            reasons = tuple(sorted(hints, key=lambda hint: (-hints[hint], hint)))
            yield Suggestion(index.name(node), kind.name, round(confidence, 2), reasons)


def _hints(kind: _Kind, name: str, description: str, *, about_people: bool, marked: bool) -> dict[str, float]:
    """The hints at a class, each with its share; a dataset about people hints only together with a name."""
    hints: dict[str, float] = {}
    if re.fullmatch(kind.strong, name):
        hints["name"] = 0.8
    elif kind.weak and re.fullmatch(kind.weak, name):
        hints["name"] = 0.4
    if kind.words and re.search(kind.words, description, re.IGNORECASE):
        hints["description"] = 0.5
    if hints and about_people:
        hints["dataset"] = 0.4
    if hints and marked:
        hints["marked as personal"] = 0.6
    return hints


def _type_of(declared: str | None) -> str:
    """The family of a type; empty where it is not known."""
    text = (declared or "").lower()
    return next((family for family, pattern in _TYPES if pattern.search(text)), "") if text else ""
