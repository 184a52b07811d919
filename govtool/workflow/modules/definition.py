"""Modules: a name, relations that it reads, keeps and makes, and a function of DataFrames (Definition 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from govtool.errors import UsageError

Relations = Iterable[str] | Mapping[str, str | None]
"""Names of relations; as a mapping with the schema of each, in the words of DDL: ``{"Cars": "CarId string"}``."""


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """A relation of a module.

    Attributes:
        name: Its name.
        schema: Its columns as ``name type, name type``, as Spark's DDL has them; None: not declared.
    """

    name: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A function over DataFrames with declared relations; ``govtool.module`` makes it.

    It is called with a DataFrame for each input, then for each state relation, in the order of their declaration. It
    returns a mapping from the names of outputs and of changed state relations to DataFrames. A module with one output
    and no state may return that DataFrame itself. A state relation that is left out, or returned as it came, is
    unchanged.

    Calling the module calls the function, and nothing else: the same program runs without a workflow.

    Attributes:
        name: The module's name; unique in a workflow.
        inputs: Relations that it receives.
        state: Relations that it keeps from one invocation to the next.
        outputs: Relations that it makes.
        function: The function.
    """

    name: str
    inputs: tuple[RelationSchema, ...]
    state: tuple[RelationSchema, ...]
    outputs: tuple[RelationSchema, ...]
    function: Callable[..., Any]

    def __call__(self, *frames: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*frames, **named)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function, for ``inspect`` and its like."""
        return self.function

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of its inputs, in order."""
        return tuple(each.name for each in self.inputs)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The names of its state relations, in order."""
        return tuple(each.name for each in self.state)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of its outputs, in order."""
        return tuple(each.name for each in self.outputs)

    def relation(self, name: str) -> RelationSchema | None:
        """The relation of a name; None if there is none."""
        every = (*self.inputs, *self.state, *self.outputs)
        return next((each for each in every if each.name == name), None)


def module(
    name: str, inputs: Relations = (), state: Relations = (), outputs: Relations = ()
) -> Callable[[Callable[..., Any]], Module]:
    """Make a module of a function.

    Args:
        name: The module's name.
        inputs: Relations that it receives, as names or as a mapping from names to schemas.
        state: Relations that it keeps from one invocation to the next.
        outputs: Relations that it makes.

    Returns:
        A decorator.

    Raises:
        UsageError: An argument is of a wrong type (``usage.arguments``). Names are checked with the workflow.
    """
    if not isinstance(name, str):
        raise UsageError(f"the name of a module is {name!r}, no text", code="usage.arguments")
    received = _relations(name, "inputs", inputs)
    kept, made = _relations(name, "state", state), _relations(name, "outputs", outputs)

    def decorate(function: Callable[..., Any]) -> Module:
        if not callable(function):
            raise UsageError(f"module {name} decorates {function!r}, no function", code="usage.arguments")
        return Module(name, received, kept, made, function)

    return decorate


def _relations(module_name: str, side: str, given: Relations) -> tuple[RelationSchema, ...]:
    if isinstance(given, str):  # list("Cars") would be four relations
        raise UsageError(
            f"{side} of module {module_name} is a text; a list of names is needed",
            code="usage.arguments",
            hint=f"{side}=[{given!r}]",
        )
    pairs = given.items() if isinstance(given, Mapping) else ((name, None) for name in given)
    found = tuple(RelationSchema(name, schema) for name, schema in pairs)
    for each in found:
        if not isinstance(each.name, str) or not isinstance(each.schema, str | None):
            raise UsageError(f"{side} of module {module_name} names {each.name!r}: no text", code="usage.arguments")
    return found
