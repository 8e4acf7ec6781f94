"""Sends one alert to one target, now: a POST of JSON, or a mail. Blocks up to its deadline; follows no redirect, since
an operator chose that address and no other. No error names a secret.
"""

import http.client
import smtplib
import ssl
import urllib.request
from email.message import EmailMessage
from typing import Any
from urllib.error import HTTPError, URLError

from strata.errors import Unavailable
from strata.observatory.alerts.rules import Target
from strata.observatory.answers.alerts import Alert
from strata.observatory.records.encoding import encode

__all__ = ["send"]

_TIMEOUT_S = 5.0


def send(target: Target, alert: Alert) -> None:
    """Raises Unavailable, in words that may be shown."""
    try:
        if target.kind == "email":
            _mail(target, alert)
        else:
            _post(target.url, _body(target, alert))
    except HTTPError as error:
        raise Unavailable(f"target {target.name} answered {error.code}") from None
    except smtplib.SMTPResponseException as error:
        raise Unavailable(f"target {target.name} answered {error.smtp_code}") from None
    except (URLError, smtplib.SMTPException, http.client.HTTPException, OSError, ValueError) as error:
        raise Unavailable(f"target {target.name} cannot be reached: {_kind(error)}") from None


def _body(target: Target, alert: Alert) -> bytes:
    """As Slack, Mattermost and others read it; the webhook's has the whole alert beside the text."""
    told = f"[{alert.severity}] {alert.message}"
    return encode({"text": told} if target.kind == "slack" else {"text": alert.message, "alert": alert})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _post(url: str, body: bytes) -> None:
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - a checked scheme
    with opener.open(request, timeout=_TIMEOUT_S):
        pass


def _mail(target: Target, alert: Alert) -> None:
    message = EmailMessage()
    message["From"], message["To"] = target.sender, ", ".join(target.recipients)
    message["Subject"] = f"[Strata, {alert.severity}] {' '.join(alert.message.split())[:150]}"
    about = {"run": alert.run_id, "task": alert.task_id, "rank": alert.rank, "step": alert.step}
    lines = [f"{name}: {value}" for name, value in about.items() if value is not None]
    if alert.task_id:
        lines.append(f"why: strata why {alert.task_id}")
    message.set_content("\n".join([alert.message, "", *lines]))
    with smtplib.SMTP(target.host, target.port, timeout=_TIMEOUT_S) as server:
        if target.tls:
            server.starttls(context=ssl.create_default_context())
        if target.user:
            server.login(target.user, target.password)
        server.send_message(message)


def _kind(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, OSError) else error
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else type(cause).__name__
