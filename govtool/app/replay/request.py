"""A question of a replay, and its parts as options and arguments give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from govtool.errors import UsageError


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A replay.

    Attributes:
        run: The id of a run or of an application, or ``JOB~n``.
        without: Inputs or boundaries, each with the condition of rows that are left out.
        replaced: Inputs or boundaries, each with the Parquet file or folder that is read instead.
        output: The dataset that is meant, where a run wrote several.
        limit: The most rows of each kind that are listed.
        script: A script with its arguments that is run over the traced rows; then nothing else is changed.
        all_runs: Go back through the runs that wrote its inputs, down to those that read what is changed.
        chosen: With a script: the output rows whose inputs it gets; None: all.
        to: The boundary whose rows are compared; None: the output.
    """

    run: str
    without: tuple[tuple[str, str], ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    output: str | None = None
    limit: int = 1000
    script: tuple[str, ...] = ()
    chosen: str | None = None
    all_runs: bool = False
    to: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        if self.script and self.to is not None:
            raise UsageError(
                "a script is compared by what it writes: --script cannot be combined with --to",
                code="usage.arguments",
                location="to",
            )


def conditions(inputs: Sequence[str], where: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Inputs with the conditions of rows that are left out; those of one input are alternatives.

    Raises:
        UsageError: They are not as many (``usage.arguments``).
    """
    if len(inputs) != len(where):
        raise UsageError(
            "each --without needs a --where, and each --where a --without",
            code="usage.arguments",
            hint="all rows: --where true",
        )
    found: dict[str, str] = {}
    for name, condition in zip(inputs, where, strict=True):
        found[name] = f"({found[name]}) OR ({condition})" if name in found else condition
    return tuple(found.items())


def replaced_inputs(given: Mapping[str, str] | Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Inputs with the file or folder that is read instead: a mapping, or texts ``DATASET=FILE``.

    Raises:
        UsageError: A text is none such (``usage.arguments``).
    """
    if isinstance(given, Mapping):
        return tuple(given.items())
    found = []
    for text in given or ():
        dataset, _, file = text.partition("=")
        if not (dataset and file):
            raise UsageError(f"{text!r} is not DATASET=FILE", code="usage.arguments", location="--with")
        found.append((dataset, file))
    return tuple(found)


def script_words(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """A script and its arguments: words, or a text as a shell takes it.

    Raises:
        UsageError: A quote is not closed, or there is no word (``usage.arguments``).
    """
    import shlex

    if given is None:
        return ()
    try:
        words = tuple(shlex.split(given) if isinstance(given, str) else given)
    except ValueError as error:
        raise UsageError(f"{given!r} is not a script: {error}", code="usage.arguments", location="script") from error
    if not words:
        raise UsageError("no script is given", code="usage.arguments", location="script")
    return words
