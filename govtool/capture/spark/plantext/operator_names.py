"""Kinds of operators: what Spark, Photon and GPU plans call them, and what is the same to lineage."""

from __future__ import annotations

import re

from govtool.capture.spark.plantext.tree import Operator

THROUGH = frozenset(
    {
        "AQEShuffleRead",
        "AdaptiveSparkPlan",
        "BroadcastExchange",
        "BroadcastQueryStage",
        "Coalesce",
        "CollectLimit",
        "CollectMetrics",
        "CollectTail",
        "CommandResult",
        "CustomShuffleReader",
        "DeltaInvariantChecker",
        "EventTimeWatermark",
        "Exchange",
        "GlobalLimit",
        "InMemoryRelation",
        "InputAdapter",
        "Limit",
        "LocalLimit",
        "Offset",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "ResultQueryStage",
        "ReturnAnswer",
        "ReusedSubquery",
        "RowToColumnar",
        "Sample",
        "SessionWindowStateStoreRestore",
        "SessionWindowStateStoreSave",
        "ShuffleExchange",
        "ShuffleMapStage",
        "ShuffleQueryStage",
        "StateStoreRestore",
        "StateStoreSave",
        "StreamingGlobalLimit",
        "StreamingLocalLimit",
        "Subquery",
        "SubqueryAlias",
        "SubqueryBroadcast",
        "TableCacheQueryStage",
        "UnresolvedHint",
        "UpdateEventTimeWatermarkColumn",
        "WholeStageCodegen",
        "View",
        "WindowGroupLimit",
        "WriteFiles",
        "WriteToContinuousDataSource",
        "WriteToDataSourceV2",
    }
)
"""Operators that change neither columns nor which rows there are."""

JOINS = frozenset(
    {
        "BroadcastHashJoin",
        "BroadcastNestedLoopJoin",
        "CartesianProduct",
        "Join",
        "ShuffledHashJoin",
        "SortMergeJoin",
        "StreamingSymmetricHashJoin",
        "SymmetricHashJoin",
    }
)
"""Joins of two inputs."""
AGGREGATES = frozenset(
    {
        "Aggregate",
        "GroupingAgg",
        "HashAggregate",
        "ObjectHashAggregate",
        "SortAggregate",
    }
)
"""Aggregates of one phase or of several."""
PYTHON = frozenset(
    {
        "ArrowEvalPython",
        "BatchEvalPython",
    }
)
"""Python functions of a row or a batch of rows."""
TABLE_FUNCTIONS = frozenset(
    {
        "ArrowEvalPythonUDTF",
        "BatchEvalPythonUDTF",
    }
)
"""Python functions that make rows of one row."""
TYPED = frozenset(
    {
        "AppendColumns",
        "AppendColumnsWithObject",
        "CoGroup",
        "DeserializeToObject",
        "ExternalRDD",
        "FlatMapGroups",
        "MapElements",
        "MapGroups",
        "MapPartitions",
        "SerializeFromObject",
        "TypedFilter",
    }
)
"""Code of the JVM over objects."""
GROUPED = frozenset(
    {
        "FlatMapGroupsInArrow",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInPandasWithState",
    }
)
"""Python functions of whole groups: their first list has the keys."""
UNORDERED = frozenset(
    {
        "AdaptiveSparkPlan",
        "ArrowEvalPython",
        "BatchEvalPython",
        "Coalesce",
        "CollectLimit",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "HashAggregate",
        "LocalLimit",
        "Project",
        "ResultQueryStage",
        "Union",
    }
)
"""Operators that ask for no order: below them somebody wrote a sort of each part. Below others Spark may have."""
ARROW_AGGREGATES = frozenset(
    {
        "AggregateInPandas",
        "ArrowAggregatePython",
    }
)
"""Aggregates in Python."""
WINDOWS = frozenset(
    {
        "ArrowWindowPython",
        "RunningWindow",
        "Window",
        "WindowInPandas",
    }
)
"""Window functions."""
_ENGINE_WORD = re.compile(r"(?:Photon|Gpu|Columnar|Velox|CH)(?=[A-Z])|(?:Native)(?=[A-Z][a-z]+(?:$| ))")
"""Words of other engines, anywhere in a name, as several may follow each other: ``GpuColumnarExchange``."""
_MAPPED = {
    "ShuffledAsymmetricHashJoin": "ShuffledHashJoin",
    "ShuffleExchangeSink": "Exchange",
    "ShuffleExchangeSource": "Exchange",
    "ResultStage": "ResultQueryStage",
    "ShuffleMapStage": "Exchange",
    "GroupingAgg": "HashAggregate",
    "GroupingAggWithRollup": "HashAggregate",
    "Agg": "HashAggregate",
    "TopK": "TakeOrderedAndProject",
    "CoalesceBatches": "Coalesce",
    "ShuffleCoalesce": "Coalesce",
    "UnionAll": "Union",
}


def plain_name(operator: Operator) -> str:
    """The operator's kind by Spark's own name: ``PhotonProject`` is ``Project``."""
    name = operator.name.split("\n", 1)[0]
    name = name.removeprefix("Execute ").strip()
    first = re.split(r"[\s\[(]", name, maxsplit=1)[0]
    bare = _ENGINE_WORD.sub("", first)
    bare = re.sub(r"(?:Exec|Transformer|ExecTransformer)\Z", "", bare) or bare
    return _MAPPED.get(bare, bare)
