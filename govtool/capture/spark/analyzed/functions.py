"""Names of Catalyst's expression classes: the SQL functions that they are."""

from __future__ import annotations

import re
from functools import lru_cache

OPERATORS = frozenset(
    {
        "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "UnaryMinus", "UnaryPositive", "And",
        "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual",
        "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned",
        "IsNull", "IsNotNull", "In", "InSet", "Like", "ILike", "RLike", "LikeAll", "LikeAny", "NotLikeAll",
        "NotLikeAny", "Between", "DateAddInterval", "TimeAdd", "TimestampAddInterval", "SubtractTimestamps",
        "SubtractDates",
        "DateAddYMInterval", "TimestampAddYMInterval", "MultiplyYMInterval", "MultiplyDTInterval", "MultiplyInterval",
        "DivideInterval", "DivideYMInterval", "DivideDTInterval", "IsNaN",
    }
)  # fmt: skip
"""Operators that SQL writes with signs: no function stands on the way."""

TRANSPARENT = frozenset(
    {
        "Alias", "KnownNullable", "KnownNotNull", "KnownNotContainsNull", "PromotePrecision", "CheckOverflow",
        "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "TempResolvedColumn", "AssertNotNull", "SortOrder",
        "ToPrettyString", "UpCast", "CheckOverflowInTableInsert", "Empty2Null", "Collate",
        "AnsiCast", "BoundReference", "TableInsertOverflow", "CheckOverflowInSum", "AliasedLambda",
    }
)  # fmt: skip
"""Nodes that hand their argument through."""

_NAMES = {
    "ApproximatePercentile": "percentile_approx", "ArrayAggregate": "aggregate", "ArrayExists": "exists",
    "ArrayFilter": "filter", "ArrayForAll": "forall", "ArrayTransform": "transform", "ArraySort": "array_sort",
    "Average": "avg", "Base32": "to_base32", "BitAndAgg": "bit_and", "BitOrAgg": "bit_or", "BitXorAgg": "bit_xor",
    "BitwiseCount": "bit_count", "BitwiseGet": "getbit", "BRound": "bround", "CallMethodViaReflection": "reflect",
    "Ceil": "ceil", "CovPopulation": "covar_pop", "CovSample": "covar_samp", "CreateArray": "array", "CreateMap": "map",
    "CreateNamedStruct": "struct", "CsvToStructs": "from_csv", "DateFormatClass": "date_format", "DayName": "dayname",
    "DayOfMonth": "day", "DayOfWeek": "dayofweek", "DayOfYear": "dayofyear", "EndsWith": "endswith",
    "FromUnixTime": "from_unixtime", "HyperLogLogPlusPlus": "approx_count_distinct", "InitCap": "initcap",
    "JaroWinkler": "jaro_winkler_similarity", "JsonToStructs": "from_json", "LengthOfJsonArray": "json_array_length",
    "Log": "ln", "Logarithm": "log", "Luhncheck": "luhn_check", "MapObjects": "transform", "MicrosToTimestamp":
    "timestamp_micros", "MillisToTimestamp": "timestamp_millis", "MonthName": "monthname", "Murmur3Hash": "hash",
    "NTile": "ntile", "NaNvl": "nanvl", "NullIf": "nullif", "NullIfZero": "nullifzero", "ParseToDate": "to_date",
    "ParseToTimestamp": "to_timestamp", "RegrAvgX": "regr_avgx", "RegrAvgY": "regr_avgy", "SecondsToTimestamp":
    "timestamp_seconds", "SoundEx": "soundex", "StartsWith": "startswith", "StringInstr": "instr", "StringLPad": "lpad",
    "StringRPad": "rpad", "StringLocate": "locate", "StringRepeat": "repeat", "StringReplace": "replace",
    "StringSpace": "space", "StringSplit": "split", "StringToMap": "str_to_map", "StringTranslate": "translate",
    "StringTrim": "trim", "StringTrimBoth": "btrim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim",
    "StructsToCsv": "to_csv", "StructsToJson": "to_json", "StructsToXml": "to_xml", "TimeWindow": "window",
    "ToDegrees": "degrees", "ToRadians": "radians", "TruncDate": "trunc", "TruncTimestamp": "date_trunc",
    "TypeOf": "typeof", "UnBase32": "from_base32", "UnBase64": "unbase64", "VariancePop": "var_pop",
    "VarianceSamp": "var_samp", "StddevSamp": "stddev", "StddevPop": "stddev_pop", "WeekDay": "weekday",
    "WeekOfYear": "weekofyear", "XmlToStructs": "from_xml", "XxHash64": "xxhash64", "ZeroIfNull": "zeroifnull",
    "ListAgg": "listagg", "Cast": "cast", "If": "if", "CaseWhen": "case", "Nvl": "nvl", "Nvl2": "nvl2",
    "GetTimestamp": "to_timestamp", "AesEncrypt": "aes_encrypt", "AesDecrypt": "aes_decrypt", "Sha1": "sha1",
    "Sha2": "sha2", "Md5": "md5", "Crc32": "crc32", "PercentileCont": "percentile_cont", "PercentileDisc":
    "percentile_disc", "SessionWindow": "session_window", "ZipWith": "zip_with", "PivotFirst": "pivotfirst",
}  # fmt: skip
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=4096)
def function_name(class_name: str) -> str:
    """The SQL name of an expression class, as its short name says; empty for operators.

    >>> function_name("RegExpReplace"), function_name("StringTrim"), function_name("Add")
    ('regexp_replace', 'trim', '')
    """
    if class_name in OPERATORS:
        return ""
    known = _NAMES.get(class_name)
    if known is not None:
        return known
    text = class_name.replace("RegExp", "Regexp").replace("XPath", "Xpath").replace("InStr", "Instr")
    return _WORD.sub("_", text.replace("SubStr", "Substr")).lower()
