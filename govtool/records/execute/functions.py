"""Functions of the user, found again in the user's own files by digest: no code comes from a store.

Only the definition itself is compiled, with the module-level definitions, imports and constants whose names it uses.
The body of a script never runs again. What was found counts only if its digest is the recorded one.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Udf, UdfReference

MAX_FILE = 4 << 20
"""Bytes of a source file that is looked through."""
WORKFLOW_MODULE = "govtool_workflow_"
"""The prefix of the name of a workflow file's module while it runs; the file's name follows."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def registry(files: Iterable[Path], live: Mapping[tuple[str, str, str], Any] | None = None) -> Callable[[Udf], Any]:
    """Return what gives Spark the function of a call: a UDF of the recorded kind and type, or None.

    Args:
        files: Where functions are looked for.
        live: Functions of this process, by module, qualified name and digest; they come first.
    """
    known, here = tuple(files), live or {}

    def udf(call: Udf) -> Any:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        named = (call.reference.module, call.reference.qualname, call.reference.digest)
        function = here.get(named) if call.reference.digest else None
        function = function or find(call.reference, known)
        if function is None:
            return None
        schema = StructType.fromJson(t.to_json(t.Struct((t.Field("value", call.type),))))
        kind = schema.fields[0].dataType
        if call.reference.kind in ("python", "arrow"):
            return F.udf(function, kind, useArrow=call.reference.kind == "arrow")
        if call.reference.kind in ("pandas", "pandas-iterator", "pandas-aggregate"):
            from pyspark.sql.pandas.functions import pandas_udf

            vectorised: Any = pandas_udf
            return vectorised(function, kind)
        return None

    return udf


def find(reference: UdfReference, files: Iterable[Path]) -> types.FunctionType | None:
    """Find a function by module, qualified name and digest; None if no file has it unchanged.

    Args:
        reference: What was recorded.
        files: The user's own files: the script and its modules.
    """
    if not reference.digest or "<" in reference.qualname or not reference.qualname.isidentifier():
        return None  # a lambda, or a function within a function: its surroundings would have to run
    for file in files:
        found = _in_file(reference, file)
        if found is not None:
            return found
    return None


def lost_reason(reference: UdfReference, files: Iterable[Path]) -> str:
    """Why ``find`` does not find a function, for people."""
    name = f"the function {reference.qualname}"
    if "<lambda>" in reference.qualname:
        return "a lambda is not found again: only functions with a name are"
    if not reference.qualname.isidentifier():
        return f"{name} is not found again: only functions of a module are, not those within a function or a class"
    if not reference.digest:
        why = reference.reason or "its source is not known"
        return f"{name} is not found again, as a change of it could not be seen: {why}"
    trees = [(file, tree) for file in files if _may_have(reference, file) and (tree := _tree(file)) is not None]
    defined = [file for file, tree in trees if isinstance(_statements(tree).get(reference.qualname), _DEFINITIONS)]
    if not defined:
        module = reference.module.removeprefix(WORKFLOW_MODULE)
        where = "the script" if module == "__main__" else f"the module {module}"
        return f"{name} of {where} is not found in the Python files of the working folder"
    files_with = ", ".join(file.name for file in defined)
    return f"{name} has changed since, or what it uses, or a decorator makes it another one than that in {files_with}"


def _may_have(reference: UdfReference, file: Path) -> bool:
    """Return whether a file is called as the function's module is; a script may be called anything."""
    module = reference.module.removeprefix(WORKFLOW_MODULE)
    return module in ("__main__", file.stem) or module.rpartition(".")[2] == file.stem


def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes(), str(file)) if file.stat().st_size <= MAX_FILE else None
    except (OSError, SyntaxError, ValueError):
        return None


def _in_file(reference: UdfReference, file: Path) -> types.FunctionType | None:
    from govtool.spark.live.records.function_source import source_digest

    tree = _tree(file) if _may_have(reference, file) else None
    if tree is None:
        return None
    function = _compiled(tree, reference, file)
    try:
        same = function is not None and source_digest(function) == reference.digest
    except (ValueError, OSError, TypeError):
        return None
    return function if same else None


def _compiled(tree: ast.Module, reference: UdfReference, file: Path) -> types.FunctionType | None:
    """The function, made of its definition and of what it uses of its module."""
    by_name = _statements(tree)
    if not isinstance(by_name.get(reference.qualname), _DEFINITIONS):
        return None
    kept = _closure(reference.qualname, by_name)
    body = [statement for statement in tree.body if statement in kept]
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            statement.decorator_list = []
    module = types.ModuleType(reference.module if reference.module != "__main__" else file.stem)
    module.__dict__.update(__name__=reference.module, __file__=str(file))
    try:
        exec(compile(ast.Module(body, []), str(file), "exec", dont_inherit=True), module.__dict__)
    except Exception:
        return None  # an import that is not there
    found = module.__dict__.get(reference.qualname)
    return found if isinstance(found, types.FunctionType) else None


def _statements(tree: ast.Module) -> dict[str, ast.stmt]:
    """Module-level statements that only define: imports, functions, constants; by the names that they bind."""
    found: dict[str, ast.stmt] = {}
    for statement in tree.body:
        for name in _bound(statement):
            found[name] = statement
    return found


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, _DEFINITIONS):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign) and _is_constant(statement.value):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and statement.value is not None and _is_constant(statement.value):
        return [statement.target.id] if isinstance(statement.target, ast.Name) else []
    return []


def _is_constant(value: Any) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _closure(name: str, by_name: dict[str, ast.stmt]) -> set[ast.stmt]:
    """The statements that a function needs, its own included."""
    kept: set[ast.stmt] = set()
    waiting = [name]
    while waiting:
        statement = by_name.get(waiting.pop())
        if statement is None or statement in kept:
            continue
        kept.add(statement)
        waiting.extend(each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
    return kept


def statements_for(used: ast.AST, tree: ast.Module) -> list[ast.stmt]:
    """Return the module-level definitions, imports and constants that a piece of a module uses, in their order."""
    by_name = _statements(tree)
    names = {each.id for each in ast.walk(used) if isinstance(each, ast.Name)}
    kept = set[ast.stmt]().union(*(_closure(name, by_name) for name in names))
    return [statement for statement in tree.body if statement in kept]
