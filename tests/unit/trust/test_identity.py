"""What a server shows and a client believes: a CA that is made once, certificates for every name, files for their owner
alone, and what was given instead."""

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strata.config import Settings
from strata.errors import InvalidConfig
from strata.trust.access import Access, client_context, find_access
from strata.trust.authority import is_good_for, issue, make_authority
from strata.trust.identity import ANCHOR, Identity, ensure_identity, fingerprint_of

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _ensured(folder: Path, **values: object) -> Identity:
    identity = ensure_identity(Settings(data_dir=folder, host="0.0.0.0", **values))  # type: ignore[arg-type]
    assert identity is not None
    return identity


def _shake_hands(identity: Identity, client: ssl.SSLContext, name: str) -> None:
    """Raises what the client finds wrong."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                with identity.context().wrap_socket(listening.accept()[0], server_side=True) as served:
                    served.recv(1)
            except (ssl.SSLError, OSError):
                pass  # the client tells

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with socket.create_connection(listening.getsockname()) as plain:
                client.wrap_socket(plain, server_hostname=name).close()
        finally:
            thread.join()


def test_loopback_and_a_trusted_network_speak_plainly(tmp_path: Path) -> None:
    assert ensure_identity(Settings(data_dir=tmp_path)) is None
    assert ensure_identity(Settings(data_dir=tmp_path, host="0.0.0.0", insecure=True)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_believes_the_ca_accepts_every_name_of_the_server_and_no_other(tmp_path: Path) -> None:
    identity = _ensured(tmp_path, advertise="head.example")
    believing = client_context(find_access(Settings(data_dir=tmp_path)).roots)
    for name in ("head.example", "localhost", "127.0.0.1", "::1", socket.gethostname()):
        _shake_hands(identity, believing, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        _shake_hands(identity, believing, "other.example")


def test_a_client_of_another_cluster_or_of_none_refuses(tmp_path: Path) -> None:
    ours, theirs = _ensured(tmp_path / "ours"), _ensured(tmp_path / "theirs")
    for roots in (theirs.anchor, ""):
        with pytest.raises(ssl.SSLCertVerificationError):
            _shake_hands(ours, client_context(roots), "localhost")
    assert fingerprint_of(ours.anchor) != fingerprint_of(theirs.anchor)


def test_the_ca_stays_and_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    first = _ensured(tmp_path)
    chain = first.chain.read_bytes()
    assert _ensured(tmp_path) == first
    assert first.chain.read_bytes() == chain
    assert _ensured(tmp_path, advertise="new.example").anchor == first.anchor
    assert first.chain.read_bytes() != chain, "a new name needs a new certificate"
    for file in (tmp_path / "tls").glob("*.*"):
        assert file.stat().st_mode & 0o777 == 0o600, file


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: _ensured(tmp_path).anchor, range(8)))
    assert len(set(found)) == 1


def test_a_certificate_is_renewed_long_before_it_ends() -> None:
    ca, key = make_authority(_NOW)
    chain, _ = issue(ca, key, {"h"}, _NOW)
    assert is_good_for(chain, ca, {"h"}, _NOW)
    assert not is_good_for(chain, ca, {"h", "10.0.0.1"}, _NOW)
    assert not is_good_for(chain, make_authority(_NOW)[0], {"h"}, _NOW)
    assert not is_good_for(chain, ca, {"h"}, _NOW + timedelta(days=600))


def test_a_certificate_of_ones_own_is_taken_with_its_ca(tmp_path: Path) -> None:
    ca, ca_key = make_authority(datetime.now(UTC))
    chain, key = issue(ca, ca_key, {"head.example"}, datetime.now(UTC))
    cert, secret = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(chain)
    secret.write_bytes(key)
    identity = _ensured(tmp_path / "data", cert=cert, key=secret)
    assert fingerprint_of(identity.anchor) == fingerprint_of(ca.decode())
    _shake_hands(identity, client_context((tmp_path / "data" / ANCHOR).read_text()), "head.example")


def test_what_is_no_certificate_is_refused_by_name(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for cert, key, told in (
        (broken, None, "belong together"),
        (empty, empty, "holds no certificate"),
        (broken, broken, "are no certificate and its key"),
        (tmp_path / "none.pem", empty, "cannot be read"),
    ):
        with pytest.raises(InvalidConfig, match=told):
            _ensured(tmp_path / "data", cert=cert, key=key)


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("127.0.0.1:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("unix:/a/socket", True),
        ("10.0.0.5:1", False),
        ("[fd00::5]:1", False),
        ("head:1", False),
        ("https://127.0.0.1:1", False),
    ],
)
def test_what_others_can_reach_is_dialled_by_tls(address: str, plain: bool) -> None:
    assert Access().is_plain(address) is plain
    assert Access(insecure=True).is_plain(address) is (not address.startswith("https:"))


def test_a_token_is_not_in_what_is_printed() -> None:
    assert "s3cret" not in repr(Access(token="s3cret"))
