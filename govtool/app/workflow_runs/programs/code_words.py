"""What parts of a program's Python code are: which calls collect rows, which write; small facts about its trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

ACTIONS: Final = frozenset(
    """collect toPandas toArrow take head first tail toLocalIterator count isEmpty collectAsMap countByKey countByValue
    countApprox countApproxDistinct takeOrdered takeSample top reduce fold aggregate treeReduce treeAggregate lookup sum
    max min mean sumApprox meanApprox stdev sampleStdev variance sampleVariance stats histogram approxQuantile corr cov
    foreach foreachPartition collectWithJobGroup fit fitMultiple evaluate""".split()  # noqa: SIM905
)
"""Methods that give the driver something of rows; models that are fitted hold it."""
BARE_ACTIONS: Final = frozenset("collect toPandas toArrow take head first count isEmpty toLocalIterator".split())  # noqa: SIM905
"""Those that are taken for one also where they are not called: ``size = frame.count``."""
COLLECTING: Final = frozenset({"Observation", "accumulator", "methodcaller"})
OF_GROUPS: Final = frozenset(["count", "first", "sum", "max", "min", "mean"])
"""Those of them that are also methods of groups, which give DataFrames; and, with arguments, functions of columns."""
GROUPING: Final = frozenset(["groupBy", "groupby", "rollup", "cube", "pivot"])
SHOWS: Final = frozenset({"show", "display", "pivot", "checkpoint", "localCheckpoint"})
"""Methods that collect rows and give the program none."""
BY_ROWS: Final = frozenset({"crosstab", "transpose"})
"""Methods beside a pivot without values whose columns are made of rows."""
COLUMNS: Final = frozenset({"columns", "schema", "dtypes"})
PROGRESS: Final = frozenset({"lastProgress", "recentProgress"})
BY_NAME: Final = frozenset({"getattr", "globals", "locals", "vars"})
"""Functions that find others by their names."""
WRITES: Final = frozenset(["save", "saveAsTable", "insertInto", "parquet", "csv", "json", "orc", "text", "jdbc"])
WRITES_OF_RDDS: Final = frozenset(
    """saveAsTextFile saveAsPickleFile saveAsSequenceFile saveAsHadoopFile saveAsHadoopDataset saveAsNewAPIHadoopFile
    saveAsNewAPIHadoopDataset""".split()  # noqa: SIM905
)
WRITES_TO: Final = frozenset(["create", "createOrReplace", "replace", "append", "overwrite", "overwritePartitions"])
"""Methods behind ``writeTo(TABLE)``."""
CHANGES: Final = frozenset("execute delete update updateAll merge restoreToVersion restoreToTimestamp vacuum".split())  # noqa: SIM905
"""Methods that change a table of Delta Lake, or end a ``mergeInto``."""
VIEWS: Final = frozenset(
    """createOrReplaceTempView createTempView createGlobalTempView createOrReplaceGlobalTempView registerTempTable
    register registerJavaFunction""".split()  # noqa: SIM905
)
"""Methods that give a name to what later SQL reads or calls."""
CHANGES_WHAT_IT_IS_CALLED_ON: Final = frozenset(
    """append appendleft extend extendleft add update insert setdefault put put_nowait push set option options send
    __setitem__""".split()  # noqa: SIM905
)
QUERIES: Final = ("select", "with", "from", "table", "show", "describe", "explain")
READS: Final = frozenset({"read", "readStream"})
RUNS_TEXT: Final = frozenset({"exec", "eval", "__import__", "import_module", "run_path", "run_module", "execfile"})
ENDS: Final = frozenset({"exit", "_exit", "abort", "quit", "stop"})
CHECKS: Final = frozenset(
    "assertDataFrameEqual assertSchemaEqual assertPandasOnSparkEqual assert_frame_equal assert_series_equal".split()  # noqa: SIM905
)
"""Functions that fail if rows are not as expected."""
FRAMES: Final = frozenset({"read", "table", "sql", "createDataFrame", "range", "parallelize", "textFile"})
HARMLESS: Final = frozenset({"pyspark", "pandas", "numpy", "govtool", "builtins"})
"""Packages whose functions collect nothing without one of the methods above."""
PANDAS_ON_SPARK: Final = frozenset({"pandas_api", "to_pandas_on_spark", "to_spark"})
PLAIN: Final = frozenset(
    """print len str repr int float round format bool abs list tuple set dict sorted sum max min any all zip enumerate
    range debug info warning warn error exception critical log write join dumps isinstance type""".split()  # noqa: SIM905
)
"""Functions that do nothing with what they get but show it, or give it back."""
UNCHANGED: Final = (
    PLAIN
    | SHOWS
    | frozenset(
        "cache persist unpersist printSchema explain start wait result close flush shutdown".split()  # noqa: SIM905
    )
)
"""Methods that leave what they are called on as it is."""
PROPERTIES: Final = frozenset({"property", "cached_property"})
OF_INSTANCES: Final = frozenset({"__init__", "__post_init__", "__new__"})


def conditions(node: ast.stmt) -> Iterator[ast.AST]:
    """What decides whether the statements of a statement are done, or how often."""
    if isinstance(node, (ast.If, ast.While)):
        yield node.test
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.iter
    elif isinstance(node, ast.Match):
        yield node.subject
        yield from (case.guard for case in node.cases if case.guard is not None)


def decided(node: ast.AST) -> Iterator[ast.AST]:
    """What decides about parts of an expression: the conditions and what is gone through of a comprehension, or all."""
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        for each in node.generators:
            yield each.iter
            yield from each.ifs
    elif isinstance(node, (ast.IfExp, ast.BoolOp)):
        yield node


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield each.body


def is_loop(node: ast.stmt) -> bool:
    """Whether a statement repeats others."""
    return isinstance(node, (ast.While, ast.For, ast.AsyncFor))


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a program may go on after an error that a handler catches."""
    last = handler.body[-1]
    is_end = isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and called(last.value) in ENDS
    )
    leaves = (ast.Break, ast.Continue, ast.Return)
    return not is_end or any(isinstance(each, leaves) for each in ast.walk(handler))


def hides_errors(node: ast.AST) -> bool:
    """Whether a class, or the function of a context manager, may hide errors of the statements below its ``with``."""
    if isinstance(node, ast.ClassDef):
        return any(getattr(each, "name", "") in ("__exit__", "__aexit__") for each in node.body)
    tries = (each for each in ast.walk(node) if isinstance(each, ast.Try) and any(map(goes_on, each.handlers)))
    return any(isinstance(each, ast.Yield) for tried in tries for each in ast.walk(tried))


def own(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements in it."""
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield each


def called_on(node: ast.expr) -> ast.expr | None:
    """The text of ``"…".format(…)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "strip"):
        return node.func.value
    return None


def named(node: ast.AST) -> str:
    """The name of a variable, or the last of ``a.b``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def called(call: ast.Call) -> str:
    """The name of the function or method that is called; empty if an expression says which."""
    return named(call.func)


def is_shown_method(node: ast.AST) -> bool:
    """Whether a node is ``getattr(frame, "count")``."""
    return isinstance(node, ast.Call) and called(node) == "getattr" and not finds_by_name(node)


def finds_by_name(call: ast.Call) -> bool:
    """Whether a call finds a function or a method by a name that the code does not show."""
    is_shown = len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
    return called(call) in BY_NAME and not is_shown


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    """What a call is given."""
    yield from call.args
    yield from (each.value for each in call.keywords)


def chain(node: ast.expr) -> Iterator[str]:
    """The names of a chain of calls: ``read`` and ``parquet`` of ``spark.read.parquet(…)``."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.func if isinstance(node, ast.Call) else node.value


def root(node: ast.expr) -> str:
    """The name that a chain of calls begins with."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, ast.expr]]:
    """The parameters of a function that have a default, with it."""
    given = function.args
    placed = [*given.posonlyargs, *given.args]
    pairs = zip(placed[len(placed) - len(given.defaults) :], given.defaults, strict=True)
    named_only = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return [(each.arg, value) for each, value in (*pairs, *named_only) if value is not None]


def has_values(pivot: ast.Call) -> bool:
    """Whether a call of ``pivot`` says which columns it makes."""
    return len(pivot.args) > 1 or any(each.arg == "values" for each in pivot.keywords)


def target_of(call: ast.Call) -> ast.expr | None:
    """Where a call writes."""
    if call.args:
        return call.args[0]
    return next((each.value for each in call.keywords if each.arg in ("path", "name", "tableName")), None)


def target_of_write_to(call: ast.Call) -> ast.expr | None:
    """The table of ``writeTo(TABLE)``."""
    node: ast.expr = call
    while isinstance(node, (ast.Attribute, ast.Call)):
        if isinstance(node, ast.Call) and called(node) == "writeTo":
            return target_of(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return None


def defined(trees: Iterable[ast.Module]) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a program by their names, methods among them."""
    found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, []).append(node)
    return found
