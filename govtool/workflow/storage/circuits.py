"""Circuits of runs as bytes: annotations with the names of the tables that they read.

The bytes are a pickle of frozen data: nodes of plans, expressions, arrays. Reading makes objects of these classes only,
so that a file that somebody else wrote cannot run anything. Tables and rows are not in it: the reader brings them.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from govtool.errors import IntegrityError
from govtool.records.plan.nodes import Relation
from govtool.records.sql.statement import KEPT
from govtool.records.trace.normal import Ids
from govtool.workflow.annotate.tables import Executor, KeptTable, TableStore
from govtool.workflow.modules.run_tuples import RelationRows

if TYPE_CHECKING:
    from govtool.workflow.annotate.circuit import Circuit
    from govtool.workflow.modules.circuit_leaves import CircuitRelation

_PACKAGES = ("govtool.records.plan.", "govtool.workflow.annotate.", "govtool.workflow.modules.", "govtool.model.")
_NAMES = frozenset(
    {
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("copyreg", "__newobj_ex__"),
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("decimal", "Decimal"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
    }
)
_UNREADABLE = (
    *(pickle.UnpicklingError, AttributeError, ImportError, EOFError, LookupError, TypeError, ValueError),
    OverflowError,
)
"""Errors of reading bytes that are no circuit."""


@dataclass(frozen=True, slots=True)
class StoredCircuit:
    """The circuit of a run as it is kept.

    Attributes:
        circuit: The annotations.
        relations: The facts about each relation, by path.
        starts: The first node of each relation that went in.
        coarse: Relations that could not be annotated, with the reason.
        inexact: Those of them that another engine may evaluate.
    """

    circuit: Circuit
    relations: dict[str, CircuitRelation]
    starts: dict[str, int]
    coarse: dict[str, str]
    inexact: frozenset[str]


def pack_circuit(stored: StoredCircuit, tables: TableStore) -> tuple[bytes, frozenset[str]]:
    """Write a circuit.

    Returns:
        The bytes, and the names of the kept tables that it reads.
    """
    buffer = io.BytesIO()
    writer = _Writer(buffer, {path: each.rows for path, each in stored.relations.items() if hasattr(each, "rows")})
    writer.dump((stored, next(tables.ids.numbers), tables.loaded))
    body = buffer.getvalue()
    return hashlib.sha256(body).digest() + body, frozenset(writer.names)


def unpack_circuit(
    data: bytes, executor: Executor, rows: Callable[[str], RelationRows]
) -> tuple[StoredCircuit, TableStore]:
    """Read a circuit.

    Args:
        data: From ``pack_circuit``.
        executor: Has the tables.
        rows: Gives the rows of a relation that went in, by path.

    Raises:
        IntegrityError: The bytes are not what was written.
    """
    digest, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != digest:
        raise IntegrityError("a circuit is damaged", code="store.integrity")
    tables = TableStore(executor, Ids(count(1)))
    try:
        stored, number, loaded = _Reader(io.BytesIO(body), tables, rows).load()
        tables.ids, tables.loaded = Ids(count(int(number))), int(loaded)
    except _UNREADABLE as error:
        raise IntegrityError(f"a circuit cannot be read: {error}", code="store.integrity") from error
    if not isinstance(stored, StoredCircuit):
        raise IntegrityError("a circuit cannot be read: it is something else", code="store.integrity")
    return stored, tables


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, rows: dict[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self.names: set[str] = set()
        self._rows = {id(each): path for path, each in rows.items() if isinstance(each, RelationRows)}

    def persistent_id(self, obj: Any) -> tuple[str, str] | None:
        if isinstance(obj, TableStore):
            return "tables", ""
        return ("rows", self._rows[id(obj)]) if isinstance(obj, RelationRows) else None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, KeptTable):  # without the columns that were read
            return KeptTable, (obj.node, obj.number, obj.count, obj.store)
        if isinstance(obj, Relation) and obj.format == KEPT:
            self.names.add(obj.dataset)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tables: TableStore, rows: Callable[[str], RelationRows]) -> None:
        super().__init__(file)
        self._tables, self._rows = tables, rows

    def persistent_load(self, pid: Any) -> Any:
        kind, path = pid
        return self._tables if kind == "tables" else self._rows(path)

    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) in _NAMES:
            return super().find_class(module_name, global_name)
        found = None
        if "." not in global_name and (module_name.startswith(_PACKAGES) or module_name == __name__):
            found = super().find_class(module_name, global_name)
        # A function that stands in a module would be called, and so would a class that the module only imports.
        if not isinstance(found, type) or found.__module__ != module_name:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no data of a circuit")
        return found
