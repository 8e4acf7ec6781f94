"""By what a server of ours proves who it is: the certificate that was given, or one that the cluster's own CA signs.

Coordinator and observatory of one data folder have the same. The CA is made at the first start and stays.
"""

import base64
import contextlib
import fcntl
import hashlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from strata.config import Settings
from strata.datadir import write_private
from strata.errors import InvalidConfig
from strata.network import is_loopback, is_wildcard

__all__ = ["ANCHOR", "Identity", "ensure_identity", "fingerprint_of"]

_FOLDER = "tls"
ANCHOR = f"{_FOLDER}/anchor.pem"
"""In a data folder: the certificate from which those of its servers come."""
_HEADS = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`chain` and `key` are PEM files; `anchor` is the PEM text of the certificate that clients should believe."""

    chain: Path
    key: Path
    anchor: str

    def context(self) -> ssl.SSLContext:
        """For a gRPC server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        try:
            context.load_cert_chain(self.chain, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidConfig(f"{self.chain} and {self.key} are no certificate and its key: {error}") from None
        return context


def fingerprint_of(certificate: str) -> str:
    """SHA-256 of a certificate, as a join token carries it."""
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.strip())).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def ensure_identity(settings: Settings) -> Identity | None:
    """What the servers of these settings show; None when they speak plainly: on loopback, or where the network is
    trusted by STRATA_INSECURE=1. What is lacking is made. Processes that start together agree."""
    if is_loopback(settings.host) or settings.insecure:
        return None
    folder = settings.data_dir / _FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(folder):
            if settings.cert is not None or settings.key is not None:
                identity = _given(settings.cert, settings.key)
            else:
                identity = _own(folder, _names(settings))
            _write(settings.data_dir / ANCHOR, identity.anchor.encode())
    except OSError as error:
        raise InvalidConfig(
            f"certificates cannot be kept in {folder}: {error}", hint="Give a folder you may write to with --data-dir."
        ) from None
    return identity


def _given(cert: Path | None, key: Path | None) -> Identity:
    if cert is None or key is None:
        raise InvalidConfig("--cert and --key belong together", hint="Give both, or neither for a CA of Strata's own.")
    try:
        text = cert.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"the certificate {cert} cannot be read: {error}") from None
    begin, end = _HEADS
    if begin not in text or end not in text:
        raise InvalidConfig(f"{cert} holds no certificate", hint="It must be PEM: the server's first, its CA's last.")
    last = text[text.rindex(begin) : text.rindex(end) + len(end)] + "\n"
    identity = Identity(chain=cert, key=key, anchor=last)
    identity.context()  # refused here, not by the first client
    return identity


def _own(folder: Path, names: frozenset[str]) -> Identity:
    from strata.trust.authority import is_good_for, issue, make_authority  # here: most processes sign nothing

    ca, ca_key, chain, key = (folder / name for name in ("ca.pem", "ca.key", "server.pem", "server.key"))
    now = datetime.now(UTC)
    if not (ca.exists() and ca_key.exists()):
        certificate, secret = make_authority(now)
        _write(ca_key, secret)
        _write(ca, certificate)
    authority = ca.read_bytes()
    if not (chain.exists() and key.exists() and is_good_for(chain.read_bytes(), authority, names, now)):
        signed, secret = issue(authority, ca_key.read_bytes(), names, now)
        _write(key, secret)
        _write(chain, signed)
    return Identity(chain=chain, key=key, anchor=authority.decode())


def _names(settings: Settings) -> frozenset[str]:
    """Everything by which others may dial this host, as far as it knows."""
    found = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    if is_wildcard(settings.host):
        every = [item for items in psutil.net_if_addrs().values() for item in items]
        ip = (socket.AF_INET, socket.AF_INET6)
        found |= {item.address.partition("%")[0] for item in every if item.family in ip}
    else:
        found.add(settings.host.strip("[]"))
    if settings.advertise:
        found.add(settings.advertise.strip("[]"))
    return frozenset(name for name in found if name)


def _write(file: Path, body: bytes) -> None:
    """Unless it holds just that."""
    if not (file.exists() and file.read_bytes() == body):
        write_private(file, body.decode())


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
