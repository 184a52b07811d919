"""Terms of policy files: classes, declassifiers, zones, facts and places, as pydantic models."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from govtool.query.selection.patterns import Pattern

NONE = "none"
"""The class that is no class: what a declassifier with ``to: none`` leaves."""
_CLASS = r"^[a-z][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*$"
_DURATION = re.compile(r"(\d{1,6})\s*([hdwmy])\Z")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.4375, "y": 365.25}


def _pattern(text: str) -> str:
    Pattern(text)
    return text


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _duration(text: str) -> str:
    if not _DURATION.match(text):
        raise ValueError("a duration is a number and h, d, w, m or y: 400d")
    return text


def days(duration: str) -> float:
    """The days of a duration such as ``400d``, ``13m`` or ``2y``.

    Raises:
        ValueError: It is not a duration.

    >>> days("2w"), days("400d")
    (14.0, 400.0)
    """
    found = _DURATION.match(duration.strip())
    if not found:
        raise ValueError(f"{duration!r} is not a duration")
    return int(found[1]) * _DAYS[found[2]]


def is_duration(text: str) -> bool:
    """Return whether ``days`` can read a text."""
    return bool(_DURATION.match(text.strip()))


PatternText = Annotated[str, AfterValidator(_pattern)]
PatternList = Annotated[tuple[PatternText, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]
ClassName = Annotated[str, Field(pattern=_CLASS)]
OneOrMore = BeforeValidator(_listed, json_schema_input_type=ClassName | tuple[ClassName, ...])
ClassNames = Annotated[tuple[ClassName, ...], Field(min_length=1), OneOrMore]
Duration = Annotated[str, AfterValidator(_duration)]
Severity = Literal["error", "warning", "note"]
Strength = Literal["influence", "hidden", "aggregate", "part", "whole"]


class PolicyPart(BaseModel):
    """Base of all parts: unknown keys are errors, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, populate_by_name=True)


class ClassDefinition(PolicyPart):
    """A class of data; its place in the hierarchy is its dotted name."""

    description: str = ""
    regulations: Texts = ()
    implies: Annotated[tuple[ClassName, ...], OneOrMore] = Field(
        default=(), description="Classes that data of this class belongs to as well, besides those above it by name."
    )
    entropy: Literal["low", "high"] = Field(
        default="high", description="low: few enough values to be guessed, so that an unkeyed hash hides nothing."
    )


class Classify(PolicyPart):
    """Columns of a class."""

    class_: ClassName = Field(alias="class")
    columns: PatternList = ()
    tags: Texts = ()
    except_: PatternList = Field(default=(), alias="except")

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.columns and not self.tags:
            raise ValueError("needs columns or tags")
        return self


class Declaration(PolicyPart):
    """A person's word that groups of some columns are large enough."""

    columns: PatternList = Field(min_length=1)
    by: str = Field(min_length=1)
    reason: str = ""
    expires: date


class Declassify(PolicyPart):
    """A declassifier that lowers a class: a mask, or an aggregate over groups that are large enough."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    kind: Literal["mask", "aggregate"]
    functions: Texts = Field(default=(), description="Names, globs, or a set: @keyed, @hash, @mask.")
    masking_policies: Texts = Field(
        default=(), description="Globs of masking policies: what leaves a column that has one of them is masked."
    )
    flagged: bool = Field(default=False, description="What a tool flags as masked counts, as OpenLineage's masking.")
    from_: ClassNames = Field(alias="from")
    to: str = Field(pattern=_CLASS)
    min_group_size: int | None = Field(default=None, ge=2)
    entity: PatternList = Field(default=(), description="Columns that identify one person: k counts these, not rows.")
    entity_known: bool = Field(
        default=True, description="false: entity is a guess by name; what counts anything else is unknown."
    )
    evidence: tuple[Literal["having", "measured", "declared"], ...] = ("having",)
    declared: tuple[Declaration, ...] = ()
    low_entropy: bool = Field(default=False, description="Accept unkeyed hashes of classes of low entropy.")

    @model_validator(mode="after")
    def _k(self) -> Self:
        if self.kind == "aggregate" and self.min_group_size is None:
            raise ValueError("an aggregate needs min_group_size")
        if self.kind == "mask" and self.min_group_size is not None:
            raise ValueError("min_group_size is for aggregates")
        if self.to == NONE and self.kind != "aggregate":
            raise ValueError("only an aggregate may have to: none; a mask leaves data that is still about someone")
        if not self.functions and not (self.kind == "mask" and (self.masking_policies or self.flagged)):
            raise ValueError("needs functions; a mask also takes masking_policies or flagged")
        if self.kind == "aggregate" and (self.masking_policies or self.flagged):
            raise ValueError("masking_policies and flagged are for masks")
        if self.kind == "aggregate" and not self.evidence:
            raise ValueError("an aggregate needs evidence")
        return self

    @property
    def means(self) -> tuple[str, ...]:
        """All that it accepts, in words: functions, masking policies, flags of tools."""
        policies = tuple(f"masking policy {name}" for name in self.masking_policies)
        return (*self.functions, *policies, *(("flagged as masked",) if self.flagged else ()))


class Zone(PolicyPart):
    """A set of datasets, and what is known of all of them."""

    datasets: PatternList = Field(min_length=1)
    region: str | None = None
    purposes: Texts = ()
    owner: str | None = None
    retention: Duration | None = None
    description: str = ""
    optional: bool = Field(default=False, description="It is no mistake if it matches nothing.")


class Metadata(PolicyPart):
    """Facts of datasets or columns that are stated here because no tool states them."""

    datasets: PatternList = ()
    columns: PatternList = ()
    owner: str | None = None
    retention: Duration | None = None
    description: str | None = None
    tags: Texts = ()

    @model_validator(mode="after")
    def _about(self) -> Self:
        if not self.datasets and not self.columns:
            raise ValueError("needs datasets or columns")
        if self.columns and (self.owner or self.retention or self.description):
            raise ValueError("columns have only tags; owner, retention and description are of datasets")
        return self


class PlacePattern(PolicyPart):
    """Where: by zone, region or name; all that is given must hold. A leading ``!`` negates."""

    zone: str | None = None
    region: str | None = None
    datasets: PatternList = ()

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not self.zone and not self.region and not self.datasets:
            raise ValueError("needs zone, region or datasets")
        return self
