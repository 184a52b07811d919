"""The form of policy files: pydantic models, which also print its JSON Schema (``govtool policy schema``).

See docs/policies.md for what each part means. Nothing here knows of graphs.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from govtool.policy.files.terms import (
    ClassDefinition,
    Classify,
    ClassName,
    ClassNames,
    Declassify,
    Duration,
    Metadata,
    OneOrMore,
    PatternList,
    PlacePattern,
    PolicyPart,
    Severity,
    Strength,
    Texts,
    Zone,
)


class FlowRule(PolicyPart):
    """Data of a class reaches a place."""

    class_: ClassNames = Field(alias="class")
    from_: PlacePattern | None = Field(default=None, alias="from")
    to: PlacePattern
    via: Literal["direct", "indirect", "any"] = "direct"


class JoinRule(PolicyPart):
    """Data of several classes comes together in one dataset, from different datasets."""

    classes: Annotated[tuple[ClassName, ...], Field(min_length=2, max_length=2)]
    in_: PatternList = Field(default=("**",), alias="in")


class OpaqueStep(PolicyPart):
    """A step that could not be understood lies between data of a class and a place."""

    class_: ClassNames = Field(alias="class")
    from_: PlacePattern | None = Field(default=None, alias="from")
    to: PlacePattern


class ColumnChange(PolicyPart):
    """Columns change between ``--base`` and the version that is checked."""

    class_: Annotated[tuple[ClassName, ...], OneOrMore] = Field(default=(), alias="class")
    columns: PatternList = ()
    to: PlacePattern | None = None
    kinds: tuple[Literal["add", "drop", "retype", "logic"], ...] = ("drop", "retype")

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not self.class_ and not self.columns and not self.to:
            raise ValueError("needs class, columns or to")
        return self


class Purpose(PolicyPart):
    """Data of a class lies only where one of these purposes is pursued."""

    class_: ClassNames = Field(alias="class")
    any_of: Texts = Field(min_length=1)


class Described(PolicyPart):
    """Datasets with data of a class have these facts."""

    class_: ClassNames = Field(alias="class")
    keys: tuple[Literal["owner", "retention", "description"], ...] = Field(min_length=1)
    retention_max: Duration | None = None


def _only_one(part: PolicyPart) -> None:
    if len(part.model_fields_set) != 1:
        raise ValueError(f"needs exactly one of {', '.join(type(part).model_fields)}")


class Deny(PolicyPart):
    """Forbidden flows: one of these."""

    flow: FlowRule | None = None
    join: JoinRule | None = None
    opaque: OpaqueStep | None = None
    change: ColumnChange | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one(self)
        return self


class Require(PolicyPart):
    """Requirements: one of these."""

    purpose: Purpose | None = None
    metadata: Described | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one(self)
        return self


class PythonRule(PolicyPart):
    """A rule in a package: an entry point of the group ``govtool.rules``, and its options."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class Approval(PolicyPart):
    """Someone's consent to a rule's exception; part of the rule, unlike a waiver."""

    columns: PatternList = Field(min_length=1)
    by: str = Field(min_length=1)
    reason: str = ""
    expires: date | None = None


class Unless(PolicyPart):
    """An exception of a rule: data that went through a declassifier, or columns that someone approved."""

    declassified: Texts = ()
    approved: tuple[Approval, ...] = ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        _only_one(self)
        return self


class Rule(PolicyPart):
    """One rule; exactly one of ``deny``, ``require`` and ``python``."""

    id: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,63}$")
    title: str = Field(min_length=1)
    severity: Severity = "error"
    description: str = ""
    fix: str = ""
    deny: Deny | None = None
    require: Require | None = None
    python: str | None = Field(
        default=None, min_length=1, description="An entry point of the group govtool.rules that judges."
    )
    with_: dict[str, Any] = Field(default_factory=dict, alias="with", description="The options of a rule in Python.")
    unless: tuple[Unless, ...] = ()

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.deny, self.require, self.python)) != 1:
            raise ValueError("needs one of deny, require and python")
        if self.python is None and self.with_:
            raise ValueError("with is for rules in python")
        if self.python is not None and self.accepted:
            raise ValueError("a rule in python has no unless declassified: it sees what a class went through")
        return self

    @property
    def form(self) -> str:
        """``flow``, ``join``, ``opaque``, ``change``, ``purpose``, ``metadata`` or ``python``."""
        part = self.deny or self.require
        return next(iter(part.model_fields_set)) if part is not None else "python"

    @property
    def body(self) -> Any:
        """The part that ``form`` names."""
        if self.python is not None:
            return PythonRule(name=self.python, options=self.with_)
        return getattr(self.deny or self.require, self.form)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the rule speaks of; of one in Python nobody knows."""
        if self.python is not None:
            return ()
        body = self.body
        return tuple(body.classes if self.form == "join" else body.class_)

    @property
    def accepted(self) -> frozenset[str]:
        """Names of the declassifiers that the rule accepts."""
        return frozenset(name for item in self.unless for name in item.declassified)


class Waiver(PolicyPart):
    """Findings that are accepted until a day."""

    rule: str
    columns: PatternList = Field(min_length=1)
    reason: str = Field(min_length=1)
    approved_by: str = Field(min_length=1)
    expires: date
    at_most: Strength | None = Field(
        default=None, description="How much of a value it accepts; what lets more through is not waived."
    )
    min_group: int | None = Field(
        default=None, ge=1, description="The smallest measured group that it accepts; smaller ones are not waived."
    )


class Given(PolicyPart):
    """The starting point of a test."""

    sql: str = Field(min_length=1)
    schema_: dict[str, dict[str, str] | list[str]] = Field(default_factory=dict, alias="schema")
    dialect: str = ""
    metadata: tuple[Metadata, ...] = ()
    base: str | None = Field(default=None, description="The SQL before the change, for rules about changes.")


class Expectation(PolicyPart):
    """A finding that a test expects."""

    rule: str
    column: str
    verdict: Literal["violated", "unknown", "waived"] = "violated"


class PolicyTest(PolicyPart):
    """A test beside the rules: every error is expected, and everything expected is found."""

    name: str = Field(min_length=1)
    given: Given
    expect: tuple[Expectation, ...]
    today: date | None = None


class Policy(PolicyPart):
    """A policy file."""

    version: Literal[1]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")
    description: str = ""
    classes: dict[ClassName, ClassDefinition] = Field(default_factory=dict)
    classify: tuple[Classify, ...] = ()
    declassify: tuple[Declassify, ...] = ()
    zones: dict[str, Zone] = Field(default_factory=dict)
    metadata: tuple[Metadata, ...] = ()
    rules: tuple[Rule, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    tests: tuple[PolicyTest, ...] = ()


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a policy file."""
    schema = Policy.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "govtool policy", **schema}
