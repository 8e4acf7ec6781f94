"""Posts alerts to a URL of the user's choice. Short deadline, a few tries, never in anybody's way."""

import asyncio
import urllib.request
from urllib.error import URLError
from urllib.parse import urlsplit

from strata.errors import InvalidConfig, Unavailable
from strata.observatory.answers.alerts import Alert
from strata.observatory.records.encoding import encode

__all__ = ["Webhook"]

_TIMEOUT_S = 5.0
_TRIES = 3


class Webhook:
    """`await webhook(alert)` posts it as JSON."""

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InvalidConfig(f"webhook_url = {url!r} is not an http(s) URL")
        self._url = url

    async def __call__(self, alert: Alert) -> None:
        body = encode({"text": alert.message, "alert": alert})
        for attempt in range(_TRIES):
            try:
                await asyncio.to_thread(self._post, body)
                return
            except (URLError, TimeoutError, ConnectionError) as error:
                if attempt == _TRIES - 1:
                    raise Unavailable(f"the webhook does not answer: {error}") from None
                await asyncio.sleep(2**attempt)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked at the start
            self._url, data=body, headers={"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310 - see above
            pass
