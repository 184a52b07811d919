"""A plan's JSON without what lineage does not need, and without data.

Literals are data and are not kept, but for those that say which part of a value is meant: names of struct fields, keys
of maps, paths into JSON.
"""

from __future__ import annotations

from typing import Any

Json = Any

_TEXTS = frozenset(
    {
        "class",
        "name",
        "object",
        "udfName",
        "table",
        "database",
        "catalog",
        "provider",
        "tableName",
        "functionName",
        "originalNameParts",
    }
)
"""Fields whose text is kept: names, never values."""
_DROPPED = frozenset(
    {
        "num-children", "metadata", "nullable", "jvmId", "qualifier", "nonInheritableMetadataKeys", "explicitMetadata",
        "product-class", "properties", "evalContext", "timeZoneId", "originalText", "viewText", "createTime", "owner",
        "lastAccessTime", "createVersion", "ignoredProperties", "unsupportedFeatures", "tracksPartitionsInCatalog",
        "schemaPreservesCase", "isStreaming", "resultId", "schema", "hint", "storage", "comment", "options",
    }
)  # fmt: skip
_SELECTING = {"CreateNamedStruct": 0, "GetJsonObject": 1, "GetMapValue": 1, "Stack": 2, "VariantGet": 1}
"""Expressions with literals that select: which of their arguments (for a struct every second, for stack the first)."""


def trimmed(value: Json) -> Json:
    """Return a plan without what lineage does not need: a node has its class ``c`` and its number of children ``n``."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "class" in value[0]:
            return _trimmed_tree(value)
        return [trimmed(item) for item in value]
    if isinstance(value, dict):
        kind = value.get("product-class", "")
        if kind.endswith((".ExprId", ".CommonExpressionId")):
            return value.get("id")
        kept = {
            key: trimmed(item)
            for key, item in value.items()
            if key not in _DROPPED and item is not None and (key in _TEXTS or not isinstance(item, str))
        }
        if kind:
            kept["k"] = kind.rsplit(".", 1)[-1].rstrip("$")
        return kept
    return value


def _trimmed_tree(nodes: list[dict[str, Json]]) -> list[dict[str, Json]]:
    made = []
    parents: list[list[Any]] = []  # class, children left, position of the next child
    for node in nodes:
        while parents and not parents[-1][1]:
            parents.pop()
        name = str(node["class"]).rsplit(".", 1)[-1]
        around, position = "", 0
        if parents:
            around, position = parents[-1][0], parents[-1][2]
            parents[-1][1] -= 1
            parents[-1][2] += 1
        kept: dict[str, Json] = {"c": name, "n": node.get("num-children", 0)}
        if name == "Literal":
            if _selects(around, position):
                kept["value"] = node.get("value")
        else:
            for key, item in node.items():
                if key in _DROPPED or item is None or key == "class" or key in kept:
                    continue  # ``AtLeastNNonNulls`` has an ``n`` of its own
                if key == "dataType" and name not in ("AttributeReference", "Cast"):
                    continue
                if isinstance(item, str) and key not in _TEXTS and key not in ("dataType", "joinType"):
                    continue
                kept[key] = item if key == "dataType" else trimmed(item)
            if name == "View":  # analysis casts the columns of a view of SQL text, and of no other
                kept["isText"] = bool((node.get("desc") or {}).get("viewText"))
        made.append(kept)
        parents.append([name, kept["n"], 0])
    return made


def _selects(around: str, position: int) -> bool:
    wanted = _SELECTING.get(around)
    if wanted is None:
        return False
    return (
        position % 2 == 0
        if around == "CreateNamedStruct"
        else position == 0
        if around == "Stack"
        else position == wanted
    )
