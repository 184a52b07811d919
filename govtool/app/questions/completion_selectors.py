"""Selectors that a shell may offer for what was typed so far: names, methods such as ``class:``, and their values.

Classes and zones are read from the policies, without judging them: a mistake elsewhere in a file is no reason to offer
nothing. Everything else is of the newest commit, and only if its index is in the cache.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from govtool.app.questions.completion import MOST_NAMES, cached_graph, complete_refs, names_for
from govtool.query.selection.selectors import METHODS, last_term

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.model.fact import Fact
    from govtool.model.run import Run
    from govtool.store import Commit, Reader

MOST_BYTES = 4 * 1024 * 1024
"""Fragments of facts, or of runs, that are read for one key press; values in others are not offered."""
_OPERATOR = re.compile(r"@|\d{0,6}\+")
_METHOD = re.compile(r"([a-z_]+):(?!//)")
_SPECIAL = re.compile(r"[\s,\"'\[\]()*+]")


def complete_selectors(store_option: str | None, policies: Sequence[str] | None, typed: str) -> list[str]:
    """Complete the last term of the typed text; at most ``MOST_NAMES`` whole texts.

    Args:
        store_option: As on the command line.
        policies: As on the command line; without any, those of the working directory.
        typed: ``crm.us``, ``class:per``, ``2+class:per``, ``zone:shared,tag:p``, ``mart.** own``.
    """
    term = last_term(typed)
    operator = _OPERATOR.match(term)
    term = term[operator.end() :] if operator else term
    before = typed[: len(typed) - len(term)]
    offers = _Offers(store_option, policies)
    method = _METHOD.match(term)
    if method and method[1] in METHODS:
        return [before + one for one in offers.values(method[1], term[method.end() :])]
    names = offers.names(term)
    methods = [name for name in METHODS if name.startswith(term)]
    if len(methods) == 1 and not names:
        # With its values beside it, a shell completes up to the colon and waits there.
        return [before + one for one in dict.fromkeys([f"{methods[0]}:", *offers.values(methods[0], "")])]
    return [before + one for one in [*(f"{name}:" for name in methods), *names]][:MOST_NAMES]


class _Offers:
    """Candidates for completion; each source is read on demand, and offers nothing if it cannot be read."""

    def __init__(self, store_option: str | None, policies: Sequence[str] | None) -> None:
        self._store_option, self._wanted = store_option, policies

    def names(self, typed: str) -> list[str]:
        """Datasets and columns."""
        with contextlib.suppress(Exception):
            return names_for(self._graph[0], typed)
        return []

    def values(self, method: str, typed: str) -> list[str]:
        """``method:value`` for each value that starts as typed; characters with a meaning of their own become ``?``."""
        ways: dict[str, Callable[[str], Iterable[str]]] = {
            "class": lambda _: self._classes(),
            "zone": lambda _: self._below("zones"),
            "tag": lambda _: self._tags(),
            "owner": lambda _: self._owners(),
            "kind": lambda _: self._kinds(),
            "job": lambda _: self._jobs(),
            "run": lambda _: (run.id for run in self._runs),
            "software": self._software,
            "changed": self._versions,
            "unused": lambda _: ("dataset",),
        }
        found: set[str] = set()
        with contextlib.suppress(Exception):
            for value in ways[method](typed) if method in ways else ():
                plain = _SPECIAL.sub("?", value)
                if plain.startswith(typed):
                    found.add(f"{method}:{plain}")
        return sorted(found)[:MOST_NAMES]

    # From the policies.

    @cached_property
    def _policies(self) -> list[dict[str, Any]]:
        from govtool.app.questions.policy import policy_files
        from govtool.policy.files.document import read_document

        found = []
        for path, shown in policy_files(self._wanted):
            with contextlib.suppress(Exception):
                value = read_document(path, shown).value
                if isinstance(value, dict):
                    found.append(value)
        return found

    def _parts(self, name: str) -> Iterator[Any]:
        """That part of every policy; nothing where there are no policies."""
        with contextlib.suppress(Exception):
            yield from (policy[name] for policy in self._policies if policy.get(name))

    def _below(self, name: str) -> Iterator[str]:
        yield from (str(key) for part in self._parts(name) if isinstance(part, dict) for key in part)

    def _classes(self) -> Iterator[str]:
        for name in self._below("classes"):
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))

    def _stated(self, key: str) -> Iterator[str]:
        """Return the facts of ``metadata`` and zones."""
        for part in self._parts("metadata"):
            yield from _texts(part, key)
        for part in self._parts("zones"):
            yield from _texts(part.values() if isinstance(part, dict) else (), key)

    def _tags(self) -> Iterator[str]:
        yield from self._stated("tags")
        for fact in self._facts:
            if fact.name == "tag":
                yield fact.value
            elif fact.name.startswith("meta."):
                key = fact.name.removeprefix("meta.")
                yield f"{key}:{fact.value}"
                if fact.value.lower() == "true":
                    yield key

    def _owners(self) -> Iterator[str]:
        yield from self._stated("owner")
        yield from (f.value for f in self._facts if f.name.removeprefix("meta.") == "owner")

    # From the store.

    @cached_property
    def _graph(self) -> tuple[Index, Reader, Commit]:
        found = cached_graph(self._store_option)
        if found is None:
            raise LookupError("no index in the cache")
        return found

    def _fragments(self, table: str) -> Iterator[bytes]:
        _, reader, commit = self._graph
        left = MOST_BYTES
        for ref in reader.fragments(commit):
            if ref.table == table and ref.size <= left:
                left -= ref.size
                yield reader.read(ref)

    @cached_property
    def _facts(self) -> list[Fact]:
        from govtool.model.fact import FACTS, decode_facts

        with contextlib.suppress(Exception):
            return [fact for data in self._fragments(FACTS) for fact in decode_facts(data)]
        return []

    @cached_property
    def _runs(self) -> list[Run]:
        from govtool.model.run import RUNS, decode_runs

        with contextlib.suppress(Exception):
            return [run for data in self._fragments(RUNS) for run in decode_runs(data)]
        return []

    def _kinds(self) -> Iterator[str]:
        index = self._graph[0]
        kinds = index.arrays["dataset_kind"]
        yield from (index.text(number) for number in {kinds[dataset] for dataset in index.datasets()})

    def _jobs(self) -> Iterator[str]:
        """Jobs of runs, and the files of statements by their name without the suffix."""
        yield from (run.job for run in self._runs)
        index = self._graph[0]
        for number in set(index.arrays["derivation_file"]):
            file = index.string(number)
            if file:
                yield file.rpartition("/")[2].partition(".")[0]

    def _software(self, typed: str) -> Iterator[str]:
        """Names; versions once a name is written."""
        for run in self._runs:
            for item in run.software:
                yield f"{item.name}=={item.version}" if "=" in typed and item.version else item.name

    def _versions(self, typed: str) -> Iterator[str]:
        start, dots, end = typed.rpartition("..")
        yield from (start + dots + ref for ref in complete_refs(self._store_option, end))


def _texts(parts: Any, key: str) -> Iterator[str]:
    """The texts at a key of several mappings."""
    for part in parts:
        value = part.get(key) if isinstance(part, dict) else None
        yield from (str(one) for one in (value if isinstance(value, list) else [value]) if one)
