"""Sends one alert to one target: a POST of JSON, or a mail. Blocks up to its deadline; follows no redirect, since an
operator chose that address and no other. No error names a secret.
"""

import base64
import http.client
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.message import EmailMessage
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from strata.errors import Unavailable
from strata.observatory.alerts.rules import Target
from strata.observatory.answers.alerts import Alert
from strata.observatory.records.encoding import encode

__all__ = ["send"]

_AGAIN_S = 0.2
_HEADERS = {"Content-Type": "application/json", "User-Agent": "strata"}


def send(target: Target, alert: Alert, deadline_s: float) -> None:
    """Raises Unavailable, in words that may be shown."""
    try:
        if target.kind == "email":
            _mail(target, alert, deadline_s)
        else:
            _post(target, alert, deadline_s)
    except TimeoutError:
        raise Unavailable(f"target {target.name} did not answer within {deadline_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(
            f"target {target.name} shows a certificate that is not trusted here: {error.verify_message}",
            hint="SSL_CERT_FILE of the observatory's environment names a PEM file of the CAs that it trusts.",
        ) from None
    except smtplib.SMTPResponseException as error:
        raise Unavailable(f"target {target.name} answered {error.smtp_code}") from None
    except (smtplib.SMTPException, http.client.HTTPException, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise Unavailable(f"target {target.name} cannot be reached: {why}") from None


@contextmanager
def _within(deadline_s: float, connection: http.client.HTTPConnection | smtplib.SMTP) -> Iterator[None]:
    """Cuts the connection at the deadline, and raises TimeoutError. A socket's own timeout begins anew with every byte:
    a peer that sends one now and then would hold it for ever."""
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        wait_s = deadline_s
        while not done.wait(wait_s):
            late.set()
            wait_s = _AGAIN_S  # it may be connected only after that
            with suppress(OSError):
                if (connected := connection.sock) is not None:
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)  # not TLS's own: it changes what is read from

    watcher = threading.Thread(target=watch, name="alert-deadline", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        if late.is_set():
            raise TimeoutError


def _post(target: Target, alert: Alert, deadline_s: float) -> None:
    url = urlsplit(target.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=deadline_s)
    with closing(connection), _within(deadline_s, connection):
        path = f"{url.path or '/'}{url.query and '?'}{url.query}"
        connection.request("POST", path, _body(target, alert), _HEADERS | _who(url))
        status = connection.getresponse().status
    if not 200 <= status < 300:
        raise Unavailable(f"target {target.name} answered {status}")


def _who(url: SplitResult) -> dict[str, str]:
    """`user:password@` of a URL, as a server expects it."""
    if url.username is None:
        return {}
    words = b":".join(unquote_to_bytes(word or "") for word in (url.username, url.password))
    return {"Authorization": f"Basic {base64.b64encode(words).decode()}"}


def _body(target: Target, alert: Alert) -> bytes:
    """As Slack, Mattermost and others read it; the webhook's has the whole alert beside the text."""
    told = f"[{alert.severity}] {alert.message}"
    return encode({"text": told} if target.kind == "slack" else {"text": alert.message, "alert": alert})


class _MailServer(smtplib.SMTP):
    """Not connected yet. `starttls` looks for the host's name in the certificate, and `connect` does not keep it."""

    def __init__(self, host: str, timeout_s: float) -> None:
        super().__init__(timeout=timeout_s)
        self._host = host


def _mail(target: Target, alert: Alert, deadline_s: float) -> None:
    message = EmailMessage()
    message["From"], message["To"] = target.sender, ", ".join(target.recipients)
    message["Subject"] = f"[Strata, {alert.severity}] {' '.join(alert.message.split())[:150]}"
    about = {"run": alert.run_id, "task": alert.task_id, "rank": alert.rank, "step": alert.step}
    lines = [f"{name}: {value}" for name, value in about.items() if value is not None]
    if alert.task_id:
        lines.append(f"why: strata why {alert.task_id}")
    message.set_content("\n".join([alert.message, "", *lines]))
    server = _MailServer(target.host, deadline_s)
    with _within(deadline_s, server), server:
        code, said = server.connect(target.host, target.port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, said)
        if target.tls:
            server.starttls(context=ssl.create_default_context())
        if target.user:
            server.login(target.user, target.password)
        server.send_message(message)
