"""A try to send ends at its deadline, however slowly the other side answers; what is wrong is said without a secret."""

import socket
import threading
from base64 import b64decode
from pathlib import Path

import pytest

from strata.config import Settings
from strata.errors import Unavailable
from strata.observatory.alerts.rules import Target
from strata.observatory.alerts.senders import send
from strata.observatory.answers.alerts import Alert
from strata.observatory.records.fill import fill
from strata.trust.identity import ensure_identity
from tests.support.receivers import SECRET, Mailbox, Receiver, Trickler

ALERT = fill(
    Alert,
    id="a",
    timestamp_ms=1,
    kind="k",
    severity="info",
    message="odd",
    **dict.fromkeys(("run_id", "task_id", "worker_id", "rank", "step")),
)


def hook(port: int, path: str = "/") -> Target:
    return Target(name="hook", kind="webhook", url=f"http://127.0.0.1:{port}{path}?{SECRET}")


def mail(port: int) -> Target:
    about = {"sender": "s@here", "recipients": ("me@here",), "tls": False}
    return Target(name="hook", kind="email", host="127.0.0.1", port=port, **about)  # type: ignore[arg-type]  # one per field


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Go on\r\n"])
def test_a_webhook_that_trickles_is_cut_off_at_the_deadline(first: bytes) -> None:
    with Trickler(first) as slow, pytest.raises(Unavailable) as caught:
        send(hook(slow.port), ALERT, 0.5)
    assert caught.value.message == "target hook did not answer within 0.5 s"
    assert "alert-deadline" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("first", [b"", b"220-one\r\n220-", b"220 here\r\n250-"])
def test_so_is_a_mail_server(first: bytes) -> None:
    with Trickler(first) as slow, pytest.raises(Unavailable, match=r"did not answer within 0\.5 s"):
        send(mail(slow.port), ALERT, 0.5)


def test_a_target_that_says_nothing_has_the_same_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Unavailable, match=r"not answer within 0\.5"):
        send(hook(silent.getsockname()[1]), ALERT, 0.5)


def test_what_was_refused_is_said_without_the_secret() -> None:
    receiver = Receiver()
    send(hook(receiver.server.server_port, "/ok"), ALERT, 30)
    for path, status in (("/broken", 500), ("/moved", 302)):
        with pytest.raises(Unavailable) as caught:
            send(hook(receiver.server.server_port, path), ALERT, 30)
        assert caught.value.message == f"target hook answered {status}"
    receiver.stop()
    with pytest.raises(Unavailable, match="target hook cannot be reached: Connection refused"):
        send(hook(1), ALERT, 30)
    with pytest.raises(Unavailable, match="target hook cannot be reached: InvalidURL"):
        send(hook(1, "/a b"), ALERT, 30)
    assert [path for path, _ in receiver.posts] == [f"{path}?{SECRET}" for path in ("/ok", "/broken", "/moved")]


def test_who_stands_in_a_url_is_told_as_a_server_expects_it() -> None:
    receiver = Receiver()
    host = f"127.0.0.1:{receiver.server.server_port}/ok"
    for who in ("", "me@", "m%40e:p%3A%C3%A4@", "me:p\u00e4@"):
        send(Target(name="hook", kind="webhook", url=f"http://{who}{host}"), ALERT, 30)
    receiver.stop()
    told = [caller and b64decode(caller.removeprefix("Basic ")).decode() for caller in receiver.callers]
    assert told == [None, "me:", "m@e:p:\u00e4", "me:p\u00e4"]


def test_a_certificate_is_checked_and_the_ca_of_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ensure_identity(Settings(data_dir=tmp_path, host="0.0.0.0", advertise="127.0.0.1"))
    assert identity is not None
    receiver = Receiver(tls=identity.context())
    target = Target(name="hook", kind="webhook", url=f"https://me:p@127.0.0.1:{receiver.server.server_port}/ok")
    with pytest.raises(Unavailable, match="hook shows a certificate that is not trusted here: ") as caught:
        send(target, ALERT, 30)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert not receiver.callers, "nobody is told a password before it has shown who it is"
    (tmp_path / "ca.pem").write_text(identity.anchor)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    send(target, ALERT, 30)
    receiver.stop()
    assert receiver.callers == ["Basic bWU6cA=="]


def test_a_mail_is_taken() -> None:
    mailbox = Mailbox()
    send(mail(mailbox.port), ALERT, 30)
    assert "Subject: [Strata, info] odd" in mailbox.mails[0]
