"""Two hundred odd values: what careless scripts, other languages and hostile clients send. One table for every door."""

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ODD", "Odd"]


@dataclass(frozen=True, slots=True)
class Odd:
    """`value` for Python and protobuf; `text` is what stands for it in a JSON body."""

    name: str
    value: Any
    text: str


def _nested(depth: int, inner: Any, *, kind: str = "list") -> Any:
    for _ in range(depth):
        inner = [inner] if kind == "list" else {"k": inner}
    return inner


_INTEGERS = {
    **{
        f"2^{power}{sign:+d}": 2**power + sign
        for power in (15, 16, 31, 32, 53, 62, 63, 64, 70, 128)
        for sign in (-1, 0, 1)
    },
    **{f"-2^{power}{sign:+d}": -(2**power) + sign for power in (31, 53, 63, 64, 70) for sign in (-1, 0)},
    "minus one": -1,
    "minus five": -5,
    "zero": 0,
    "one": 1,
    "10^100": 10**100,
    "10^4000": 10**4000,
    "seed sequence entropy": 335_905_613_128_945_012_703_811_123_011_220_111_413,
}
_FLOATS = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "minus zero": -0.0,
    "smallest subnormal": 5e-324,
    "largest subnormal": 2.225073858507201e-308,
    "largest float": 1.7976931348623157e308,
    "float of 2^53": 9007199254740992.0,
    "five and a half": 5.5,
    "1e22": 1e22,
    "one tenth": 0.1,
    "1e-7": 1e-7,
}
_TEXTS = {
    "empty": "",
    "space": " ",
    "blanks": "   \t  ",
    "newline": "a\nb",
    "carriage return": "a\r\nb",
    "tab": "a\tb",
    "NUL": "a\x00b",
    "only NUL": "\x00",
    "bell": "\x07",
    "escape sequence": "\x1b[31mred\x1b[0m",
    "delete": "\x7f",
    "C1 control": "\x85",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "byte order mark": "\ufeffname",
    "zero width": "a\u200bb\u200dc",
    "soft hyphen": "a\u00adb",
    "RTL": "שלום עולם",
    "Arabic": "مرحبا",
    "RTL override": "abc\u202ecba.exe",
    "isolates": "\u2066a\u2069",
    "combining": "e\u0301",
    "zalgo": "a" + "\u0300\u0301\u0302\u0303" * 20,
    "composed": "\u00e9",
    "ligature": "ﬁ",
    "full width": "ｎａｍｅ",
    "emoji": "🚀",
    "family emoji": "👩‍👩‍👧‍👦",
    "flag": "🇩🇪",
    "skin tone": "👍🏿",
    "Chinese": "训练",
    "Turkish i": "İıI",
    "sharp s": "ß",
    "plane 2": "𠜎",
    "private use": "\ue000",
    "noncharacter": "\uffff",
    "last code point": "\U0010ffff",
    "lone high surrogate": "\ud800",
    "lone low surrogate": "a\udfffb",
    "reversed surrogates": "\udc00\ud800",
    "replacement": "\ufffd",
    "slash": "/",
    "path": "a/b/c",
    "dot": ".",
    "dot dot": "..",
    "up": "../../etc/passwd",
    "backslash path": "..\\..\\x",
    "absolute": "/etc/shadow",
    "tilde": "~nouser/x",
    "device": "/dev/null",
    "bad s3": "s3://[x",
    "s3": "s3://no-such-bucket/x",
    "azure": "az://container/x",
    "gs": "gs://bucket",
    "file address": "file:///etc/passwd",
    "no scheme": "://",
    "http address": "http://169.254.169.254/latest/meta-data",
    "javascript": "javascript:alert(1)",
    "data address": "data:text/html,<script>alert(1)</script>",
    "single quote": "it's",
    "double quote": 'say "x"',
    "backslash": "a\\b",
    "trailing backslash": "a\\",
    "backtick": "`x`",
    "SQL": "'; DROP TABLE metric_points; --",
    "SQL or": "' OR '1'='1",
    "SQL parameter": "{run:String}",
    "SQL comment": "/* */",
    "percent": "100%",
    "percent s": "%s%s%n",
    "like": "%_%",
    "braces": "{}",
    "format": "{0.__class__}",
    "template": "{{7*7}}",
    "jinja": "{% for x in y %}",
    "dollar": "${HOME}",
    "shell": "$(touch /tmp/odd)",
    "semicolon": "a; ls",
    "script": "<script>alert(1)</script>",
    "image": "<img src=x onerror=alert(1)>",
    "svg": "<svg/onload=alert(1)>",
    "entity": "&lt;b&gt;",
    "comment": "<!-- x -->",
    "CDATA": "]]>",
    "markdown": "[x](javascript:alert(1))",
    "CSV formula": "=1+1",
    "CRLF header": "a\r\nSet-Cookie: x=1",
    "SSE frame": "x\n\ndata: {}\n\n",
    "SSE id": "id: 5",
    "prometheus": 'a{b="c"} 1\n# HELP',
    "percent encoded": "%00%2e%2e",
    "plus": "a+b",
    "question": "a?b=c&d",
    "hash": "a#b",
    "colon": "a:b",
    "comma": "a,b",
    "equals": "a=b",
    "at": "a@b",
    "star": "*",
    "question mark": "?",
    "glob": "**/*",
    "dash": "-",
    "flag of a command": "--help",
    "underscore": "_",
    "dunder": "__proto__",
    "constructor": "constructor",
    "toString": "toString",
    "null word": "null",
    "None word": "None",
    "nan word": "NaN",
    "true word": "true",
    "undefined": "undefined",
    "number as text": "12",
    "hex": "0x1F",
    "Arabic digits": "١٢٣",
    "superscript": "²",
    "infinity sign": "∞",
    "year 1": "0001-01-01T00:00:00Z",
    "year 9999": "9999-12-31T23:59:59Z",
    "year 10000": "10000-01-01T00:00:00Z",
    "leap second": "2016-12-31T23:59:60Z",
    "February 30": "2026-02-30",
    "127 characters": "n" * 127,
    "128 characters": "n" * 128,
    "129 characters": "n" * 129,
    "256 characters": "n" * 256,
    "257 characters": "n" * 257,
    "4097 characters": "p" * 4097,
    "64 KiB": "k" * 65_536,
    "1 MB": "m" * 1_000_000,
    "10 MB": "x" * 10_000_000,
    "many emoji": "🚀" * 5_000,
    "deep JSON in text": "[" * 300 + "]" * 300,
    "JSON in text": '{"a": 1}',
    "bytes repr": "b'x'",
}
_TIMES = {
    "seconds of year 1": -62_135_596_800,
    "seconds of year 9999": 253_402_300_799,
    "seconds of 1970": 0,
    "seconds of 1969": -1,
    "seconds of 2106": 4_294_967_296,
    "seconds of 2200": 7_258_118_400,
    "milliseconds for seconds": 1_794_000_000_000,
    "nanoseconds for seconds": 1_794_000_000_000_000_000,
}
_TREES = {
    "null": None,
    "true": True,
    "false": False,
    "empty list": [],
    "empty object": {},
    "list": [1, "a", None],
    "object": {"a": 1},
    "empty key": {"": 1},
    "odd keys": {"a b": 1, "a.b": 2, "a/b": 3, "__proto__": {"x": 1}, "\x00": 4},
    "surrogate key": {"\ud800": 1},
    "surrogate deep inside": {"a": [{"b": "x\udc80"}]},
    "big number deep inside": {"a": [{"b": 2**70}]},
    "nan deep inside": {"a": [float("nan"), {"b": float("-inf")}]},
    "63 levels": _nested(63, 1),
    "65 levels": _nested(65, 1),
    "100 levels": _nested(100, "x", kind="dict"),
    "300 levels": _nested(300, 2**70),
    "900 levels": _nested(900, 1),
    "huge list": list(range(50_000)),
    "many keys": {f"k{number}": number for number in range(5_000)},
    "mixed": {"a": [1, 2.5, None, True, "é", {"b": []}]},
}
# What no Python value gives when it is written as JSON.
_RAW = {
    "duplicate keys": '{"a": 1, "a": 2}',
    "1e400": "1e400",
    "minus 1e400": "-1e400",
    "10^5000": "1" + "0" * 5000,
    "1.0 for a whole number": "1.0",
    "1E2": "1E2",
    "escaped NUL": '"\\u0000"',
    "escaped surrogate": '"\\ud83d"',
    "escaped pair": '"\\ud83d\\ude80"',
    "100,000 levels": "[" * 100_000 + "]" * 100_000,
}


def _table() -> tuple[Odd, ...]:
    plain = {**_INTEGERS, **_FLOATS, **_TEXTS, **_TIMES, **_TREES}
    given = [Odd(name, value, json.dumps(value)) for name, value in plain.items()]
    raw = [Odd(f"raw {name}", text, text) for name, text in _RAW.items()]
    return (*given, *raw)


ODD = _table()
