"""Patterns on names by the hundred thousand: Arrow's regular expressions, which are RE2's, over whole columns of names.

A pattern is compared with one name in some microseconds, and a warehouse has a quarter of a million datasets. The
functions here find what ``Pattern.matches`` finds, name by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from govtool.linear import encodable

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.linear import LinearRegex

LOCAL = "file:///"
FEW = 1000
"""So many names are compared one by one, without importing Arrow."""
_QUOTED_FIRST = r'(?s)\A"([^"]+)"(\.[^"]*)?\z'
"""A name whose first part alone is in quotes, without quotes in it."""
_AT_ONCE = 1 << 19


class NamePattern(Protocol):
    """A pattern of names, as ``govtool.query.selection.patterns.Pattern`` has it."""

    @property
    def root(self) -> str:
        """The folder to which names of local files are relative, or nothing."""

    @property
    def is_regex(self) -> bool:
        """Return whether it is searched in names; else it matches whole ones."""

    @property
    def regex(self) -> LinearRegex:
        """The expression that is searched, or that matches."""

    @property
    def path(self) -> LinearRegex | None:
        """What matches the names of files in SQL without their quotes."""

    @property
    def literal(self) -> str:
        """A text that every name that matches has in it."""

    def matches(self, name: str) -> bool:
        """Return whether one name matches."""


class NameColumns:
    """The texts of a graph as an Arrow column, made at first use.

    Args:
        index: The graph.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._texts: Any = None
        self._datasets: Any = None

    @property
    def texts(self) -> Any:
        """Every text of the graph, by number."""
        if self._texts is None:
            import numpy as np
            import pyarrow as pa

            arrays = self._index.arrays
            offsets = np.asarray(arrays["string"]).astype(np.int64)
            data = pa.py_buffer(np.ascontiguousarray(arrays["text"]))
            self._texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)
        return self._texts

    @property
    def datasets(self) -> Any:
        """The names of the datasets, in their order."""
        if self._datasets is None:
            self._datasets = self.taken(self._index.arrays["dataset_name"])
        return self._datasets

    def taken(self, numbers: Any) -> Any:
        """The texts of some numbers, in their order."""
        return self.texts.take(_numbers(numbers))

    def columns(self, nodes: Any) -> Any:
        """The whole names of columns.

        Args:
            nodes: int64[n].
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        datasets = self.datasets.take(_numbers(np.asarray(self._index.node_dataset)[nodes]))
        paths = self.taken(np.asarray(self._index.arrays["node_path"])[nodes])
        return pc.binary_join_element_wise(datasets, paths, pa.scalar(".", pa.large_string()))

    def matching_columns(self, pattern: NamePattern, nodes: Any) -> Any:
        """Those of some columns whose whole names match: int64.

        Args:
            pattern: The pattern.
            nodes: int64[n].
        """
        import numpy as np

        pieces = [nodes[low : low + _AT_ONCE] for low in range(0, len(nodes), _AT_ONCE)]
        return np.concatenate([piece[matching(pattern, self.columns(piece))] for piece in (*pieces, nodes[:0])])


def matching(pattern: NamePattern, names: Any) -> Any:
    """The places of the names that match, as ``Pattern.matches`` has it: int64, ascending.

    Args:
        pattern: The pattern.
        names: An Arrow column of names.
    """
    import numpy as np

    found = [_among(pattern, names), _among_files(pattern, names)]
    if pattern.root or pattern.path is not None:
        found.append(_among_local(pattern, names))
    return np.unique(np.concatenate(found))


def searching(regex: LinearRegex, names: Any) -> Any:
    """The places of the names in which an expression matches somewhere, with or without quotes: int64, ascending."""
    import numpy as np
    import pyarrow.compute as pc

    found = _places(names, regex.text)
    quoted = _true(pc.match_substring(names, '"'))
    if not len(quoted):
        return found
    bare = pc.replace_substring(names.take(_numbers(quoted)), pattern='"', replacement="")
    return np.union1d(found, quoted[_places(bare, regex.text)])


def ending(last: LinearRegex, names: Any) -> Any:
    """The places of the names whose last part matches an expression of one part: int64, ascending."""
    import numpy as np

    from govtool.names import split_name

    plain = _places(names, rf"(?:\A|\.)(?:{last.text})\z")
    odd = _places(names, r'["\[]')
    some = names.take(_numbers(odd)).to_pylist()
    right = [at for at, name in zip(odd.tolist(), some, strict=True) if last.fullmatch(split_name(name)[-1])]
    return np.union1d(np.setdiff1d(plain, odd), np.array(right, np.int64))


def _among(pattern: NamePattern, names: Any) -> Any:
    """The places of the names that match as they are written."""
    if pattern.is_regex:
        return searching(pattern.regex, names)
    return _places(names, rf"\A(?:{pattern.regex.text})\z", pattern.literal)


def _among_local(pattern: NamePattern, names: Any) -> Any:
    """The places of the names of local files that match by their absolute names, or by their paths."""
    import numpy as np
    import pyarrow as pa

    from govtool.names import absolute_id

    local = _beginning(names, "file:")
    if not len(local):
        return local
    whole = names.take(_numbers(local))
    if pattern.root:
        whole = pa.array([absolute_id(name, pattern.root) for name in whole.to_pylist()], pa.large_string())
    found = [_among(pattern, whole)]
    if pattern.path is not None:
        named = _places(whole, rf"\Afile://(?:{pattern.path.text})\z", LOCAL)
        found.append(np.intersect1d(named, _beginning(whole, LOCAL)))
    return local[np.concatenate(found)]


def _among_files(pattern: NamePattern, names: Any) -> Any:
    """The places of the names of files in SQL that match without their quotes."""
    import numpy as np
    import pyarrow.compute as pc

    quoted = _beginning(names, '"')
    if len(quoted):
        quoted = quoted[_places(names.take(_numbers(quoted)), "/")]
    if not len(quoted):
        return quoted
    some = names.take(_numbers(quoted))
    usual = _places(some, _QUOTED_FIRST)
    others = np.setdiff1d(np.arange(len(some)), usual)
    odd = [at for at in others.tolist() if pattern.matches(some[at].as_py())]
    usual = usual[_places(some.take(_numbers(usual)), r'\A"[^"]*/')]
    bare = pc.replace_substring_regex(some.take(_numbers(usual)), pattern=_QUOTED_FIRST, replacement=r"\1\2")
    found = [_among(pattern, bare)]
    if pattern.path is not None:
        found.append(_places(bare, rf"\A(?:{pattern.path.text})\z"))
    return quoted[np.concatenate([np.array(odd, np.int64), *(usual[one] for one in found)])]


def _beginning(names: Any, prefix: str) -> Any:
    """The places of the names that begin so."""
    import pyarrow.compute as pc

    return _true(pc.starts_with(names, prefix))


def _places(names: Any, expression: str, literal: str = "") -> Any:
    """The places of the names in which an expression matches; all of these have the literal."""
    import pyarrow.compute as pc

    expression, literal = encodable(expression), encodable(literal)
    if literal:
        some = _true(pc.match_substring(names, literal))
        if 2 * len(some) < len(names):
            return some[_places(names.take(_numbers(some)), expression)]
    return _true(pc.match_substring_regex(names, expression))


def _true(mask: Any) -> Any:
    """The places of what is true in an Arrow array: int64. Its ``to_numpy`` would import pandas, too."""
    import numpy as np
    import pyarrow.compute as pc

    found = pc.indices_nonzero(mask)
    return np.frombuffer(found.buffers()[1], np.uint64, len(found)).astype(np.int64)


def _numbers(values: Any) -> Any:
    """Numbers as an Arrow array; ``pyarrow.array`` would import pandas, which costs more than the question."""
    import numpy as np
    import pyarrow as pa

    whole = np.ascontiguousarray(values, np.int64)
    return pa.Int64Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])
