"""The allow-list of Catalyst's expression classes that are plain functions: the class with its name in Spark SQL.

A class that is not here, and that :mod:`govtool.records.plan.terms` does not read by itself, becomes an opaque cell.
The arguments are the fields that hold expressions, in the order of the constructor; any other field has to be in
:data:`MODES`, :data:`IRRELEVANT` or :data:`EXPECTED`. Functions that run code by name (``reflect``, ``java_method``)
are left out for good: a plan comes from a store.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, str]:
    pairs = (item.split(":", 1) for item in text.split())
    return {kind: _SPACED.get(name, name) for kind, name in pairs}


_SPACED = {"is_null": "is null", "is_not_null": "is not null"}


SCALARS = _table(
    """
    Abs:abs Acos:acos Acosh:acosh Add:+ AddMonths:add_months AesDecrypt:aes_decrypt And:and
    ArrayAggregate:aggregate ArrayAppend:array_append ArrayCompact:array_compact ArrayContains:array_contains
    ArrayDistinct:array_distinct ArrayExcept:array_except ArrayExists:exists ArrayFilter:filter ArrayForAll:forall
    ArrayInsert:array_insert ArrayIntersect:array_intersect ArrayJoin:array_join ArrayMax:array_max
    ArrayMin:array_min ArrayPosition:array_position ArrayPrepend:array_prepend ArrayRemove:array_remove
    ArrayRepeat:array_repeat ArraySize:array_size ArraySort:array_sort ArrayTransform:transform
    ArrayUnion:array_union ArraysOverlap:arrays_overlap ArraysZip:arrays_zip Ascii:ascii Asin:asin Asinh:asinh
    Atan2:atan2 Atan:atan Atanh:atanh BRound:bround Base32:to_base32 Base64:base64 Bin:bin BitLength:bit_length
    BitmapBitPosition:bitmap_bit_position BitmapBucketNumber:bitmap_bucket_number BitmapCount:bitmap_count
    BitwiseAnd:& BitwiseCount:bit_count BitwiseGet:getbit BitwiseNot:~ BitwiseOr:| BitwiseXor:^ Cbrt:cbrt
    Ceil:ceil Chr:chr Coalesce:coalesce Collation:collation Concat:concat ConcatWs:concat_ws Contains:contains
    Conv:conv ConvertTimezone:convert_timezone Cos:cos Cosh:cosh Cot:cot Crc32:crc32 CreateArray:array
    CreateMap:map CreateNamedStruct:named_struct Csc:csc CsvToStructs:from_csv CurrentDate:current_date
    CurrentTime:current_time CurrentTimeZone:current_timezone CurrentTimestamp:current_timestamp DateAdd:date_add
    DateAddInterval:+ DateAddYMInterval:+ DateDiff:datediff DateFormatClass:date_format
    DateFromUnixDate:date_from_unix_date DateSub:date_sub DayName:dayname DayOfMonth:dayofmonth
    DayOfWeek:dayofweek DayOfYear:dayofyear Decode:decode Divide:/ DivideDTInterval:/ DivideInterval:/
    DivideYMInterval:/ ElementAt:element_at Elt:elt Encode:encode EndsWith:endswith EqualNull:equal_null
    EqualNullSafe:<=> EqualTo:= EulerNumber:e Exp:exp Expm1:expm1 Extract:date_part Factorial:factorial
    FindInSet:find_in_set Flatten:flatten Floor:floor FormatNumber:format_number FormatString:format_string
    FromUTCTimestamp:from_utc_timestamp FromUnixTime:from_unixtime Get:get GetJsonObject:get_json_object
    GreaterThan:> GreaterThanOrEqual:>= Greatest:greatest Hex:hex Hmac:hmac Hour:hour Hypot:hypot ILike:ilike
    InitCap:initcap IntegralDivide:div IsNaN:isnan IsNotNull:is_not_null IsNull:is_null IsValidUTF8:is_valid_utf8
    IsValidVariant:is_valid_variant IsVariantNull:is_variant_null JaroWinkler:jaro_winkler_similarity
    JsonObjectKeys:json_object_keys JsonToStructs:from_json LastDay:last_day Least:least Left:left Length:length
    LengthOfJsonArray:json_array_length LessThan:< LessThanOrEqual:<= Levenshtein:levenshtein Like:like
    LocalTimestamp:localtimestamp Log10:log10 Log1p:log1p Log2:log2 Log:ln Logarithm:log Lower:lower
    Luhncheck:luhn_check MakeDTInterval:make_dt_interval MakeDate:make_date MakeInterval:make_interval
    MakeTime:make_time MakeTimestamp:make_timestamp MakeValidUTF8:make_valid_utf8 MakeYMInterval:make_ym_interval
    MapConcat:map_concat MapContainsKey:map_contains_key MapEntries:map_entries MapFilter:map_filter
    MapFromArrays:map_from_arrays MapFromEntries:map_from_entries MapKeys:map_keys MapValues:map_values
    MapZipWith:map_zip_with Mask:mask Md5:md5 MicrosToTimestamp:timestamp_micros
    MillisToTimestamp:timestamp_millis Minute:minute MonotonicallyIncreasingID:monotonically_increasing_id
    Month:month MonthName:monthname MonthsBetween:months_between Multiply:* MultiplyDTInterval:*
    MultiplyInterval:* MultiplyYMInterval:* Murmur3Hash:hash NaNvl:nanvl NanosToTimestamp:timestamp_nanos
    NextDay:next_day Now:now NullIfZero:nullifzero Nvl2:nvl2 Nvl:nvl OctetLength:octet_length Or:or
    Overlay:overlay ParseJson:parse_json ParseToDate:to_date ParseToTimestamp:to_timestamp ParseUrl:parse_url
    Pi:pi Pmod:pmod Pow:pow Quarter:quarter Quote:quote RLike:rlike Rand:rand RandStr:randstr Randn:randn
    RegExpCount:regexp_count RegExpExtract:regexp_extract RegExpExtractAll:regexp_extract_all
    RegExpInStr:regexp_instr RegExpReplace:regexp_replace RegExpSubStr:regexp_substr Remainder:% Reverse:reverse
    Right:right Rint:rint Round:round RoundCeil:ceil RoundFloor:floor SchemaOfCsv:schema_of_csv
    SchemaOfJson:schema_of_json SchemaOfVariant:schema_of_variant SchemaOfXml:schema_of_xml Sec:sec Second:second
    SecondsToTimestamp:timestamp_seconds Sentences:sentences Sequence:sequence Sha1:sha1 Sha2:sha2 ShiftLeft:<<
    ShiftRight:>> ShiftRightUnsigned:>>> Shuffle:shuffle Signum:signum Sin:sin Sinh:sinh Size:size Slice:slice
    SortArray:sort_array SoundEx:soundex SparkPartitionID:spark_partition_id SplitPart:split_part Sqrt:sqrt
    StartsWith:startswith StringInstr:instr StringLPad:lpad StringLocate:locate StringRPad:rpad
    StringRepeat:repeat StringReplace:replace StringSpace:space StringSplit:split StringToMap:str_to_map
    StringTranslate:translate StringTrim:trim StringTrimBoth:btrim StringTrimLeft:ltrim StringTrimRight:rtrim
    StructsToCsv:to_csv StructsToJson:to_json StructsToXml:to_xml Substring:substring
    SubstringIndex:substring_index Subtract:- SubtractDates:- SubtractTimestamps:- Tan:tan Tanh:tanh
    TimeDiff:time_diff TimeFromMicros:time_from_micros TimeFromMillis:time_from_millis
    TimeFromSeconds:time_from_seconds TimeToMicros:time_to_micros TimeToMillis:time_to_millis
    TimeToSeconds:time_to_seconds TimeTrunc:time_trunc TimestampAdd:timestampadd TimestampAddInterval:+
    TimestampAddYMInterval:+ TimestampDiff:timestampdiff ToBinary:to_binary ToCharacter:to_char ToDegrees:degrees
    ToNumber:to_number ToRadians:radians ToTime:to_time ToUTCTimestamp:to_utc_timestamp
    ToUnixTimestamp:to_unix_timestamp ToVariantObject:to_variant_object TransformKeys:transform_keys
    TransformValues:transform_values TruncDate:trunc TruncTimestamp:date_trunc TryAdd:try_add
    TryAesDecrypt:try_aes_decrypt TryDivide:try_divide TryElementAt:try_element_at
    TryMakeInterval:try_make_interval TryMod:try_mod TryMultiply:try_multiply TryParseUrl:try_parse_url
    TrySubtract:try_subtract TryToBinary:try_to_binary TryToNumber:try_to_number TryUrlDecode:try_url_decode
    TryValidateUTF8:try_validate_utf8 TypeOf:typeof UnBase32:from_base32 UnBase64:unbase64 UnaryMinus:negative
    UnaryPositive:positive Unhex:unhex Uniform:uniform UnixDate:unix_date UnixMicros:unix_micros
    UnixMillis:unix_millis UnixNanos:unix_nanos UnixSeconds:unix_seconds UnixTimestamp:unix_timestamp Upper:upper
    UrlDecode:url_decode UrlEncode:url_encode Uuid:uuid ValidateUTF8:validate_utf8 VariantDelete:variant_delete
    VectorCosineSimilarity:vector_cosine_similarity VectorInnerProduct:vector_inner_product
    VectorL2Distance:vector_l2_distance VectorNorm:vector_norm VectorNormalize:vector_normalize WeekDay:weekday
    WeekOfYear:weekofyear WidthBucket:width_bucket XPathBoolean:xpath_boolean XPathDouble:xpath_double
    XPathFloat:xpath_float XPathInt:xpath_int XPathList:xpath XPathLong:xpath_long XPathShort:xpath_short
    XPathString:xpath_string XmlToStructs:from_xml XxHash64:xxhash64 Year:year ZeroIfNull:zeroifnull
    ZipWith:zip_with
    """
)
"""Functions and operators on the values of a row."""

AGGREGATES = _table(
    """
    AnyValue:any_value ApproximatePercentile:percentile_approx Average:avg BitAndAgg:bit_and BitOrAgg:bit_or
    BitXorAgg:bit_xor BitmapAndAgg:bitmap_and_agg BitmapConstructAgg:bitmap_construct_agg
    BitmapOrAgg:bitmap_or_agg BoolAnd:bool_and BoolOr:bool_or CollectList:collect_list CollectSet:collect_set
    CollectUnion:collect_union Corr:corr Count:count CountIf:count_if CovPopulation:covar_pop CovSample:covar_samp
    First:first HyperLogLogPlusPlus:approx_count_distinct Kurtosis:kurtosis Last:last ListAgg:listagg Max:max
    MaxBy:max_by Median:median Min:min MinBy:min_by Mode:mode Percentile:percentile RegrAvgX:regr_avgx
    RegrAvgY:regr_avgy RegrCount:regr_count RegrIntercept:regr_intercept RegrR2:regr_r2 RegrSXX:regr_sxx
    RegrSXY:regr_sxy RegrSYY:regr_syy RegrSlope:regr_slope Skewness:skewness StddevPop:stddev_pop
    StddevSamp:stddev_samp Sum:sum VariancePop:var_pop VarianceSamp:var_samp
    """
)
"""Functions over a group, by the class within an ``AggregateExpression``."""

WINDOWS = _table(
    """
    CumeDist:cume_dist DenseRank:dense_rank Lag:lag Lead:lead NTile:ntile NthValue:nth_value
    PercentRank:percent_rank Rank:rank RowNumber:row_number
    """
)
"""Functions over a window that are no aggregates."""

GENERATORS = _table(
    """
    Explode:explode Inline:inline JsonTuple:json_tuple PosExplode:posexplode Stack:stack
    """
)
"""Functions that make rows of a row."""

MODES = frozenset({"failOnError", "ansiEnabled", "evalMode", "evalContext", "nullOnInvalidFormat", "legacySizeOfNull"})
"""Fields that say how a function fails: they become the call's mode."""

IRRELEVANT = frozenset(
    {
        "mutableAggBufferOffset", "inputAggBufferOffset", "id", "$random", "$metadata", "replacement", "hideSeed",
        "resultId", "suggestedFuncOnFail", "sameOrderExpressions", "stateful",
    }
)  # fmt: skip
"""Fields that no result depends on: places in a buffer, ids of results, how a call is printed or an error worded."""

EXPECTED: dict[tuple[str, str], object] = {
    ("ArrayExists", "followThreeValuedLogic"): True,
    ("ArrayInsert", "legacyNegativeIndex"): False,
    ("ArraySort", "allowNullComparisonResult"): False,
    ("Base64", "chunkBase64"): True,
    ("CreateArray", "useStringTypeWhenEmpty"): False,
    ("CreateMap", "useStringTypeWhenEmpty"): False,
    ("Encode", "legacyCharsets"): False,
    ("Encode", "legacyErrorAction"): False,
    ("StringDecode", "legacyCharsets"): False,
    ("StringDecode", "legacyErrorAction"): False,
    ("JsonToStructs", "variantAllowDuplicateKeys"): False,
    ("Murmur3Hash", "seed"): 42,
    ("XxHash64", "seed"): 42,
    ("CollectList", "ignoreNulls"): True,
    ("CollectSet", "ignoreNulls"): True,
    ("CollectUnion", "ignoreNulls"): True,
    ("Percentile", "reverse"): False,
    ("SubtractTimestamps", "legacyInterval"): False,
    ("SubtractDates", "legacyInterval"): False,
    **{
        (kind, "nullOnDivideByZero"): True
        for kind in (
            "Corr", "CovPopulation", "CovSample", "Kurtosis", "Skewness", "StddevPop", "StddevSamp", "VariancePop",
            "VarianceSamp",
        )
    },
}  # fmt: skip
"""Fields with the one value under which the function's name alone means the same: any other makes the cell opaque."""

WITH_OPTIONS = frozenset(
    {
        "CsvToStructs", "JsonToStructs", "XmlToStructs", "StructsToJson", "StructsToCsv", "StructsToXml",
        "SchemaOfJson", "SchemaOfCsv", "SchemaOfXml",
    }
)  # fmt: skip
"""Functions with a map of options that is no expression."""

ORDER_DEPENDENT = frozenset(
    {"first", "last", "any_value", "collect_list", "collect_set", "listagg", "max_by", "min_by", "mode"}
)
"""Aggregates whose result may depend on the order of rows (of collect_set and listagg: without an order)."""

NAMES = frozenset(
    [*SCALARS.values(), *AGGREGATES.values(), *WINDOWS.values(), *GENERATORS.values()]
    + ["in", "not", "raise_error", "get field", "get fields", "get item", "get value"]
    + [f"{name}_{kind}" for name in ("to_timestamp", "make_timestamp") for kind in ("ltz", "ntz")]
)
"""Every name that a plan may call: a plan from a store that calls another is not run."""
