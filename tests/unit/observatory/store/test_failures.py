"""What drivers say becomes one sentence, and the right error."""

import pytest

from strata.errors import Busy, Internal, InvalidArgument, StoreUnavailable, StrataError
from strata.observatory.store.failures import to_error


class OperationalError(Exception):
    """As the driver calls its own."""


class DatabaseError(Exception):
    """Likewise."""


_DENIED = """Received ClickHouse exception, code: 497, server response: Code: 497. DB::Exception: writer: Not enough
 privileges. To execute this query, it's necessary to have the grant CREATE DATABASE ON db.*. (ACCESS_DENIED) (version
 24.8.14.39 (official build)) (for url http://db:8123)"""
_SYNTAX = (
    "Code: 62. DB::Exception: Syntax error: failed at position 1 (SELEC): SELEC 1. Expected SELECT. (SYNTAX_ERROR)"
)
_REFUSED = """Error HTTPConnectionPool(host='db', port=8123): Max retries exceeded with url: /? (Caused by
NewConnectionError('<urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new connection:
[Errno 111] Connection refused')) executing HTTP request attempt 1 http://db:8123"""
_UNTRUSTED = """Error HTTPSConnectionPool(host='db', port=8443): Max retries exceeded with url: / (Caused by SSLError(
SSLCertVerificationError(1,
'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)')))"""
_HUNG_UP = """Error HTTPSConnectionPool(host='db', port=8443): Max retries exceeded with url: / (Caused by SSLError(
SSLEOFError(8, 'EOF occurred in violation of protocol (_ssl.c:2427)'))) executing HTTP request attempt 1"""
_PARSE = (
    "Code: 27. DB::Exception: Cannot parse input: expected ',' : While executing ParallelParsingBlockInputFormat. (X)"
)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            DatabaseError(_DENIED),
            Busy,
            "Not enough privileges. To execute this query, it's necessary to have the grant",
        ),
        (OperationalError(_REFUSED), StoreUnavailable, "ClickHouse cannot be reached: [Errno 111] Connection refused"),
        (OperationalError(_UNTRUSTED), StoreUnavailable, "certificate verify failed: self-signed certificate"),
        (DatabaseError(_PARSE), InvalidArgument, "ClickHouse says: Cannot parse input: expected ',' (code 27)"),
        (DatabaseError("Code: 60. DB::Exception: Table db.x does not exist. (UNKNOWN_TABLE)"), Internal, "(code 60)"),
        (DatabaseError(_SYNTAX), Internal, "failed at position 1 (SELEC): SELEC 1. Expected SELECT (code 62)"),
        (OperationalError(_HUNG_UP), StoreUnavailable, "cannot be reached: EOF occurred in violation of protocol"),
        (StoreUnavailable("ours"), StoreUnavailable, "ours"),
        (KeyError("x"), Internal, "KeyError: 'x'"),
    ],
)
def test_one_sentence(error: Exception, kind: type[StrataError], said: str) -> None:
    told = to_error(error)
    assert type(told) is kind
    assert said in told.message
    assert "\n" not in told.message
    assert "version 24" not in told.message
    assert "HTTP" not in told.message
