"""Multipart uploads that a killed process left behind in S3: they cost money, and no listing of objects shows them.

obstore has no call for them, so these two requests are signed here (AWS Signature Version 4, standard library only).
"""

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote, urlsplit

from strata.errors import StorageError
from strata.storage.options import StorageOptions

__all__ = ["MultipartUploads", "StaleUpload"]

_UPLOAD = re.compile(r"<Upload>(.*?)</Upload>", re.DOTALL)
_EMPTY_BODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleUpload:
    """One unfinished upload: its key in the bucket, its id, and when it began (Unix seconds)."""

    key: str
    upload_id: str
    begun_at: float


class MultipartUploads:
    """The unfinished uploads under a prefix of one bucket. Needs keys in `options`: a role's credentials are
    obstore's own."""

    def __init__(self, bucket: str, prefix: str, options: StorageOptions) -> None:
        assert options.access_key_id is not None
        assert options.secret_access_key is not None
        self._bucket = bucket
        self._prefix = prefix
        self._options = options
        self._key_id, self._secret = options.access_key_id, options.secret_access_key
        self._region = options.region or "us-east-1"
        self._endpoint = urlsplit(options.endpoint_url or f"https://s3.{self._region}.amazonaws.com")

    def list(self) -> list[StaleUpload]:
        """At most the thousand oldest keys; the rest comes with the next sweep."""
        prefix = f"{self._prefix}/" if self._prefix else ""
        answer = self._request("GET", f"/{self._bucket}", {"prefix": prefix, "uploads": ""})
        return list(_parse(answer))

    def abort(self, upload: StaleUpload) -> None:
        self._request("DELETE", f"/{self._bucket}/{upload.key}", {"uploadId": upload.upload_id})

    def _request(self, method: str, path: str, query: Mapping[str, str]) -> str:
        import http.client  # here: it pulls in ssl and email, 35 ms that only a sweep needs

        target = quote(path, safe="/-_.~")
        pairs = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
        host = self._endpoint.netloc
        kind = http.client.HTTPSConnection if self._endpoint.scheme == "https" else http.client.HTTPConnection
        connection = kind(host, timeout=self._options.request_timeout_s)
        try:
            connection.request(method, f"{target}?{pairs}", headers=self._signed(method, target, pairs, host))
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise StorageError(f"{method} of the uploads in {self._bucket}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 300 and not (method == "DELETE" and answer.status == 404):
            raise StorageError(f"{method} of the uploads in {self._bucket}: status {answer.status}")
        return text

    def _signed(self, method: str, target: str, query: str, host: str) -> dict[str, str]:
        now = datetime.now(UTC)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": host, "x-amz-content-sha256": _EMPTY_BODY, "x-amz-date": stamp}
        if self._options.session_token is not None:
            headers["x-amz-security-token"] = self._options.session_token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{target}\n{query}\n{lines}\n{names}\n{_EMPTY_BODY}"
        scope = f"{day}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = f"AWS4{self._secret}".encode()
        for part in (day, self._region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hex()
        credential = f"{self._key_id}/{scope}"
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        )
        return headers


def _parse(answer: str) -> Iterator[StaleUpload]:
    for block in _UPLOAD.findall(answer):
        fields = {name: unescape(value) for name, value in re.findall(r"<(Key|UploadId|Initiated)>(.*?)</", block)}
        begun = datetime.fromisoformat(fields["Initiated"])
        yield StaleUpload(key=fields["Key"], upload_id=fields["UploadId"], begun_at=begun.timestamp())
