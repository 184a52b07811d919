"""Policy files, and rules of packages, to one checked set. Every mistake has a place, and the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from govtool.errors import UsageError
from govtool.policy.files.document import Key, PolicyDocument, read_document
from govtool.policy.files.model import Policy
from govtool.policy.files.policy_set import PolicyFile, PolicySet
from govtool.policy.files.terms import NONE, PlacePattern

GROUP = "govtool.rules"
"""The group of the entry points."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that a package offers."""

    point: EntryPoint

    @property
    def package(self) -> str:
        """The package and its version: ``acme-rules 1.2``."""
        dist = self.point.dist
        return "an unknown package" if dist is None else f"{dist.name} {dist.version}"

    def __str__(self) -> str:
        return f"{self.package} ({self.point.value})"


def offers() -> dict[str, tuple[Offer, ...]]:
    """The rules that can be named; several rules with one name are a mistake."""
    found: dict[str, tuple[Offer, ...]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        found[point.name] = (*found.get(point.name, ()), Offer(point))
    return found


SUFFIXES = (".yml", ".yaml")
_MOST_PLACES = 20
"""Number of further mistakes that are listed with their place."""


def load(paths: Iterable[tuple[Path, str]]) -> PolicySet:
    """Read policy files and check them against each other.

    Args:
        paths: Each file with the name that messages call it by.

    Raises:
        UsageError: The first mistake (``policy.*``); the hint counts the others.
    """
    files: list[PolicyFile] = []
    problems: list[UsageError] = []
    for path, shown in paths:
        try:
            document = read_document(path, shown)
        except UsageError as error:
            problems.append(error)
            continue
        file = validated(document, problems)
        if file is not None:
            files.append(file)
    if not problems:
        problems = list(mistakes(files))
    if problems:
        raise first_of(problems)
    return PolicySet(tuple(files))


def first_of(problems: Sequence[UsageError]) -> UsageError:
    """The first of several mistakes, with a hint that there are more."""
    first = problems[0]
    if len(problems) > 1:
        others = len(problems) - 1
        places = ", ".join(p.location or "" for p in problems[1 : 1 + _MOST_PLACES])
        more = f"{others} more: {places}{f' and {others - _MOST_PLACES} others' if others > _MOST_PLACES else ''}"
        first.hint = f"{first.hint}; {more}" if first.hint else more
    return first


def files_below(path: Path) -> list[Path]:
    """A file itself, or the policy files of a folder and the folders in it, sorted; hidden ones left out.

    Raises:
        UsageError: A folder cannot be read (``policy.unreadable``).
    """
    if not path.is_dir():
        return [path]
    try:
        found = [p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file()]
    except OSError as error:
        raise UsageError(str(error.strerror), code="policy.unreadable", location=path.as_posix()) from error
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(path).parts))


def validated(document: PolicyDocument, problems: list[UsageError]) -> PolicyFile | None:
    """A document as a policy; None after adding to the problems."""
    if not isinstance(document.value, dict):
        problems.append(
            UsageError(
                "a policy file is a mapping with the key version", code="policy.type", location=document.place(())
            )
        )
        return None
    try:
        return PolicyFile(document, Policy.model_validate(document.value))
    except ValidationError as error:
        problems += [_problem(document, item) for item in _misspelled_first(error.errors(include_url=False))]
    except RecursionError:
        problems.append(UsageError("nested too deeply", code="policy.type", location=document.file))
    return None


def _misspelled_first(items: Sequence[Any]) -> list[Any]:
    """Report unknown keys before missing ones: ``clas`` is one mistake, not also a missing ``class``."""
    extra = [item for item in items if item["type"] == "extra_forbidden"]
    misspelled = {(*item["loc"][:-1], near) for item in extra for near in _near_keys(item["loc"])[:1]}
    rest = [
        i for i in items if i["type"] != "extra_forbidden" and not (i["type"] == "missing" and i["loc"] in misspelled)
    ]
    return [*extra, *rest]


def _near_keys(path: Key) -> list[str]:
    """The keys that may have been meant by one that no model allows."""
    return difflib.get_close_matches(str(path[-1]), _keys_at(path[:-1]), 3, 0.6)


_SHAPES = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""The expected form of a value, by the kind of pydantic's error."""
_CODES = {"extra_forbidden": "policy.key", "missing": "policy.missing-key"}
"""Codes of problems that are about a key; others are about its value."""
_GIVEN = (
    (bool, "true or false"),
    (str, "text"),
    ((int, float), "a number"),
    ((list, tuple), "a list"),
    (dict, "a mapping"),
)


def _problem(document: PolicyDocument, item: Any) -> UsageError:
    """Describe pydantic's finding in plain words."""
    path: Key = tuple(item["loc"])
    kind = item["type"]
    nearest: tuple[str, ...] = ()
    code = _CODES.get(kind, "policy.date" if kind.startswith("date") else "policy.value")
    if kind == "extra_forbidden":
        nearest = tuple(_near_keys(path)) or tuple(_keys_at(path[:-1])[:8])
    elif kind == "literal_error":
        expected = [word.strip("' ") for word in _expected(item).replace(" or ", ", ").split(",")]
        nearest = tuple(difflib.get_close_matches(str(item["input"]), expected, 1, 0.5)) or tuple(expected)
    hint = None if nearest else "govtool policy schema describes the keys and their values"
    return UsageError(_message(item, path), code=code, location=document.place(path), nearest=nearest, hint=hint)


def _message(item: Any, path: Key) -> str:
    """The words for pydantic's finding at a path."""
    kind, given = item["type"], item["input"]
    named = ".".join(str(part) for part in path if part != "[key]")
    around = named.rpartition(".")[0] or "the file"
    if kind == "extra_forbidden":
        return f"unknown key {path[-1]!r} in {around}"
    if kind == "missing":
        return f"{around} lacks the key {path[-1]!r}"
    if kind == "literal_error":
        return f"{named}: {str(given)[:80]!r} is not one of {_expected(item)}"
    if kind == "string_pattern_mismatch":
        return f"{named}: {str(given)[:80]!r} is not a name; letters, digits, - and _ (classes: with dots)"
    if kind.startswith("date"):
        return f"{named}: {str(given)[:80]!r} is not a date; write 2027-03-31"
    if kind in _SHAPES:
        is_ = next((word for types, word in _GIVEN if isinstance(given, types)), "nothing" if given is None else "")
        unlike = f", not {is_}" if is_ and is_ != _SHAPES[kind] else ""
        return f"{named or 'the file'} must be {_SHAPES[kind]}{unlike}"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{named}: {message[:1].lower()}{message[1:]}" if named else message


def _expected(item: Any) -> str:
    return str(item.get("ctx", {}).get("expected", ""))


def _keys_at(path: Key) -> list[str]:
    """The keys that the models allow at a path."""
    model: Any = Policy
    for part in path:
        if isinstance(part, int) or model is None:
            continue
        fields = {(f.alias or n): f for n, f in model.model_fields.items()} if _is_model(model) else {}
        # A key that is no field is one of the user's own, below a mapping: the model stays what the mapping holds.
        if part in fields:
            model = _model_in(fields[part].annotation)
    return [f.alias or n for n, f in model.model_fields.items()] if _is_model(model) else []


def _is_model(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, BaseModel)


def _model_in(annotation: Any) -> Any:
    """The model that an annotation such as ``tuple[Rule, ...] | None`` speaks of."""
    if _is_model(annotation):
        return annotation
    return next((found for item in get_args(annotation) if (found := _model_in(item))), None)


def mistakes(files: Sequence[PolicyFile]) -> Iterator[UsageError]:
    """Return mistakes across files: names that nothing defines, names defined twice, cycles."""
    policies = PolicySet(tuple(files))
    yield from _twice(files)
    cycle = policies.lattice.cycle()
    if cycle:
        place = next(f.place("classes", cycle[0]) for f in files if cycle[0] in f.policy.classes)
        text = " → ".join((*cycle, cycle[0]))
        yield UsageError(f"classes imply each other in a circle: {text}", code="policy.class-cycle", location=place)
    known = {
        "class": policies.lattice.names,
        "zone": set(policies.zones),
        "declassifier": {d.value.name for d in policies.declassify},
        "rule": {r.value.id for r in policies.rules},
    }
    offered = offers() if any(r.value.python is not None for r in policies.rules) else {}
    known["python rule"] = set(offered)
    for file in files:
        for kind, name, path in _references(file.policy):
            if name not in known[kind]:
                yield UsageError(
                    f"no {kind} {name}",
                    code=f"policy.unknown-{kind.replace(' ', '-')}",
                    location=file.place(*path),
                    nearest=tuple(difflib.get_close_matches(name, sorted(known[kind]), 3)),
                    hint=_hint(kind, known[kind]),
                )
            elif kind == "python rule" and len(offered[name]) > 1:
                yield UsageError(
                    f"several packages offer the python rule {name}: {', '.join(map(str, offered[name]))}",
                    code="policy.ambiguous-python-rule",
                    location=file.place(*path),
                    hint="uninstall one of them",
                )


def _hint(kind: str, known: Collection[str]) -> str | None:
    """Return a hint about a name that nothing defines."""
    if kind == "python rule":
        return "install the package that offers it" + (f"; there are {', '.join(sorted(known))}" if known else "")
    return None if known else f"the policy defines no {kind}"


def _references(policy: Policy) -> Iterator[tuple[str, str, Key]]:
    """Every name that must be defined somewhere, with its kind and its path."""
    for name, definition in policy.classes.items():
        yield from (("class", other, ("classes", name, "implies")) for other in definition.implies)
    for i, item in enumerate(policy.classify):
        yield "class", item.class_, ("classify", i, "class")
    for i, one in enumerate(policy.declassify):
        yield from (("class", name, ("declassify", i, "from")) for name in one.from_)
        if one.to != NONE:
            yield "class", one.to, ("declassify", i, "to")
    for i, rule in enumerate(policy.rules):
        at: Key = ("rules", i, "deny" if rule.deny else "require", rule.form)
        if rule.python is not None:
            yield "python rule", rule.python, ("rules", i, "python")
        body = rule.body
        yield from (("class", name, (*at, "classes" if rule.form == "join" else "class")) for name in rule.classes)
        for key, field in (("from", "from_"), ("to", "to")):
            place = getattr(body, field, None)
            if isinstance(place, PlacePattern) and place.zone:
                yield "zone", place.zone.removeprefix("!"), (*at, key, "zone")
        for n, unless in enumerate(rule.unless):
            yield from (("declassifier", name, ("rules", i, "unless", n)) for name in unless.declassified)
    for i, waiver in enumerate(policy.waivers):
        yield "rule", waiver.rule, ("waivers", i, "rule")
    for i, test in enumerate(policy.tests):
        yield from (("rule", e.rule, ("tests", i, "expect", n, "rule")) for n, e in enumerate(test.expect))


def _twice(files: Sequence[PolicyFile]) -> Iterator[UsageError]:
    """Names that two parts bear; a zone of a pack gives way to one that is no pack's."""
    kinds: tuple[tuple[str, Callable[[Policy], Iterable[tuple[str, Key]]]], ...] = (
        ("rule", lambda p: ((r.id, ("rules", i, "id")) for i, r in enumerate(p.rules))),
        ("declassifier", lambda p: ((d.name, ("declassify", i, "name")) for i, d in enumerate(p.declassify))),
        ("zone", lambda p: ((name, ("zones", name)) for name in p.zones)),
    )
    for kind, names in kinds:
        seen: dict[tuple[str, bool], str] = {}
        for file in files:
            for name, path in names(file.policy):
                place = file.place(*path)
                key = (name, kind == "zone" and file.is_pack)
                if key in seen:
                    yield UsageError(
                        f"the {kind} {name} is defined twice; first at {seen[key]}",
                        code=f"policy.duplicate-{kind}",
                        location=place,
                    )
                seen.setdefault(key, place)
