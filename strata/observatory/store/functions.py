"""The functions that a question may call: they compute from their arguments and know nothing of files, networks,
dictionaries, other tables, settings or the server. What is not listed is refused. Not `printf`: a width of 2e9 takes
4 GiB before the limit of memory is looked at (chDB 26.5).
"""

__all__ = ["is_harmless"]

_PLAIN = frozenset(
    """
    plus minus multiply divide intDiv intDivOrZero modulo positiveModulo negate abs gcd lcm isFinite isInfinite
    isNaN ifNotFinite min2 max2 equals notEquals less greater lessOrEquals greaterOrEquals in notIn
    isDistinctFrom isNotDistinctFrom and or not xor if multiIf least greatest clamp caseWithExpression exists
    round roundBankers floor ceil ceiling trunc truncate roundDown roundToExp2 acos acosh asin asinh atan atan2
    atanh cbrt cos cosh degrees e erf erfc exp exp10 exp2 hypot lgamma ln log log10 log1p log2 pi pow power
    radians sigmoid sign sin sinh sqrt tan tanh tgamma widthBucket isNull isNotNull coalesce ifNull nullIf
    assumeNotNull toNullable isZeroOrNull bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight bitTest bitCount
    array arrayAll arrayAvg arrayCompact arrayConcat arrayCount arrayCumSum arrayDifference arrayDistinct
    arrayElement arrayElementOrNull arrayEnumerate arrayExists arrayFilter arrayFirst arrayFirstIndex
    arrayFlatten arrayIntersect arrayJoin arrayLast arrayLastIndex arrayMap arrayMax arrayMin arrayPopBack
    arrayPopFront arrayPushBack arrayPushFront arrayReverse arrayReverseSort arraySlice arraySort
    arrayStringConcat arraySum arrayUniq arrayZip countEqual empty has hasAll hasAny indexOf length notEmpty
    range reverse lambda tuple tupleElement untuple map mapKeys mapValues mapContains mapContainsKey mapFilter
    mapApply mapFromArrays concat concatWithSeparator endsWith startsWith left right lower upper lowerUTF8
    upperUTF8 lengthUTF8 leftPad rightPad substring substringUTF8 substringIndex trimBoth trimLeft trimRight
    repeat initcap replaceAll replaceOne replaceRegexpAll replaceRegexpOne format extract extractAll like
    notLike ilike notILike match position positionCaseInsensitive countSubstrings countMatches splitByChar
    splitByString splitByRegexp hasToken multiSearchAny JSONExtract JSONExtractArrayRaw JSONExtractBool
    JSONExtractFloat JSONExtractInt JSONExtractKeys JSONExtractKeysAndValues JSONExtractRaw JSONExtractString
    JSONExtractUInt JSONHas JSONLength JSONType isValidJSON simpleJSONExtractBool simpleJSONExtractFloat
    simpleJSONExtractInt simpleJSONExtractRaw simpleJSONExtractString simpleJSONExtractUInt simpleJSONHas
    toJSONString CAST accurateCastOrNull toTypeName toString toBool toDate toDateTime toDateTime64 toFloat32
    toFloat64 toFloat64OrNull toFloat64OrZero toInt8 toInt16 toInt32 toInt64 toInt64OrNull toInt64OrZero toUInt8
    toUInt16 toUInt32 toUInt64 toUInt64OrNull toUInt64OrZero toDecimal64 toLowCardinality
    parseDateTimeBestEffort parseDateTimeBestEffortOrNull fromUnixTimestamp fromUnixTimestamp64Milli
    toUnixTimestamp toUnixTimestamp64Milli toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay
    toIntervalWeek toIntervalMonth toIntervalYear now now64 today yesterday age dateDiff dateTrunc date_diff
    date_trunc formatDateTime addSeconds addMinutes addHours addDays addWeeks addMonths subtractSeconds
    subtractMinutes subtractHours subtractDays subtractWeeks subtractMonths toYear toMonth toDayOfMonth
    toDayOfWeek toHour toMinute toSecond toYYYYMM toYYYYMMDD toStartOfSecond toStartOfMinute
    toStartOfFiveMinutes toStartOfTenMinutes toStartOfFifteenMinutes toStartOfHour toStartOfDay toStartOfWeek
    toStartOfMonth toStartOfYear toStartOfInterval toMonday toTimezone formatReadableQuantity formatReadableSize
    formatReadableTimeDelta bar transform cityHash64 xxHash64 grouping row_number rank dense_rank denseRank
    percent_rank percentRank cume_dist ntile lag lead lagInFrame leadInFrame first_value last_value nth_value
    """.lower().split()
)
_AGGREGATES = frozenset(
    """
    count sum avg min max any anyLast anyHeavy argMin argMax sumKahan sumCount avgWeighted median quantile
    quantiles quantileExact quantilesExact quantileTDigest quantilesTDigest stddevPop stddevSamp varPop varSamp
    stddev_pop stddev_samp var_pop var_samp covarPop covarSamp corr skewPop skewSamp kurtPop kurtSamp uniq
    uniqExact uniqCombined groupArray groupUniqArray groupArraySorted groupArrayMovingAvg groupArrayMovingSum
    groupConcat topK histogram entropy simpleLinearRegression largestTriangleThreeBuckets lttb deltaSum
    exponentialMovingAverage exponentialTimeDecayedAvg rankCorr studentTTest welchTTest mannWhitneyUTest
    kolmogorovSmirnovTest bounding_ratio boundingRatio
    """.lower().split()
)
_COMBINED = ("if", "array", "distinct", "ornull", "ordefault")


def is_harmless(name: str) -> bool:
    """Whether a question may call it; ClickHouse takes many names in any case. Aggregates may be combined: `sumIf`."""
    word = name.lower()
    while word not in _PLAIN and word not in _AGGREGATES:
        end = next((one for one in _COMBINED if word.endswith(one)), None)
        if end is None:
            return False
        word = word.removesuffix(end)
        if word in _PLAIN and word not in _AGGREGATES:
            return False  # what is no aggregate takes no combinator: `fileIf` is as strange as `file`
    return True
