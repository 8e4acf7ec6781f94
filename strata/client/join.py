"""Joining a cluster by one word, `<token>@host:port`. The token carries the fingerprint of the cluster's CA: the CA is
fetched, compared with it, and only then is anything shown, over a connection that is verified by it.
"""

import asyncio
import hashlib
import json
import os
import re
import secrets
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from strata.client.channel import Channel
from strata.client.client_stream import ClientStream
from strata.client.endpoints import Endpoints, login_record
from strata.client.mismatch import any_server
from strata.config import Settings
from strata.errors import CoordinatorUnavailable, InvalidArgument, InvalidConfig, Unavailable
from strata.network import split_address
from strata.protocol.generated import trust_pb2 as tr
from strata.protocol.generated.trust_pb2_grpc import TrustStub
from strata.protocol.status import from_rpc_error
from strata.trust.access import Access
from strata.trust.identity import fingerprint_of

__all__ = ["Ticket", "join_host", "kept_host", "log_in", "parse_ticket"]

_FORM = re.compile(r"([0-9A-Za-z]{1,32})\.([0-9A-Za-z_-]{16,128})(?:\.([0-9A-Za-z_-]{43}))?@([^@\s]+:\d{1,5})\Z")
_FETCH_S = 10.0
_PATH = "/strata.trust.Trust/GetAuthority"
_KEPT = "credential.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a line of `strata token create` says."""

    token: str = field(repr=False)
    fingerprint: str
    address: str


def parse_ticket(text: str) -> Ticket:
    """Raises InvalidArgument that does not repeat the secret."""
    found = _FORM.match(text.strip())
    if found is None:
        raise InvalidArgument(
            "--join takes <token>@host:port", hint="`strata token create` on the head prints the whole line."
        )
    token_id, secret, fingerprint, address = found.groups()
    return Ticket(token=f"{token_id}.{secret}", fingerprint=fingerprint or "", address=address)


def log_in(settings: Settings) -> None:
    """Joins the cluster that STRATA_JOIN or --join names, for every later command of this user."""
    assert settings.join is not None
    text = settings.join.get_secret_value()
    ticket = parse_ticket(text)
    access = believe(ticket, insecure=settings.insecure)
    reply = _join(ticket.address, access, tr.JoinRequest())
    known = {"grpc": ticket.address, "http": reply.http, "telemetry": reply.telemetry}
    secret = {"token": ticket.token, "roots": access.roots, "ticket": _mark(text)}
    _keep(login_record(), known | secret)


def join_host(settings: Settings, folder: Path, agent_id: str) -> Endpoints:
    """Exchanges the join token for a credential of this agent, and keeps that in its folder. One that came of the same
    token is used again: a join token does not last."""
    assert settings.join is not None
    text = settings.join.get_secret_value()
    ticket = parse_ticket(text)
    kept = kept_host(settings, folder)
    if kept is not None and _read_kept(folder).get("ticket") == _mark(text):
        return kept
    access = believe(ticket, insecure=settings.insecure)
    reply = _join(ticket.address, access, tr.JoinRequest(agent_id=agent_id, hostname=socket.gethostname()))
    known = {"grpc": ticket.address, "http": reply.http, "telemetry": reply.telemetry}
    _keep(folder / _KEPT, known | {"token": reply.credential, "roots": access.roots, "ticket": _mark(text)})
    joined = kept_host(settings, folder)
    assert joined is not None
    return joined


def kept_host(settings: Settings, folder: Path) -> Endpoints | None:
    """The cluster that this host has joined before; None when it has joined none, or is told to go elsewhere."""
    kept = _read_kept(folder)
    named = settings.coordinator_addr if "coordinator_addr" in settings.given else None
    if not kept or (settings.join is None and named not in (None, kept["grpc"])):
        return None
    access = Access(token=kept["token"], roots=kept["roots"], insecure=settings.insecure)
    return Endpoints(grpc=kept["grpc"], http=kept["http"], telemetry=kept["telemetry"], access=access, asked=True)


def _read_kept(folder: Path) -> dict[str, str]:
    try:
        kept: dict[str, str] = json.loads((folder / _KEPT).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"{folder / _KEPT} cannot be read: {error}", hint="Remove it, and join again.") from None
    return kept


def _mark(text: str) -> str:
    """By which a ticket is known again."""
    return hashlib.sha256(text.encode()).hexdigest()


def believe(ticket: Ticket, *, insecure: bool) -> Access:
    """How to get in with a ticket: its token, and the CA whose fingerprint it carries."""
    if not ticket.fingerprint or insecure:
        return Access(token=ticket.token, insecure=insecure)
    certificate = asyncio.run(_fetch(ticket.address))
    if not _is_of(certificate, ticket.fingerprint):
        raise Unavailable(
            f"the CA of {ticket.address} is not the one of this join token: its fingerprint differs",
            hint="Somebody may be in between, or the cluster was made anew: `strata token create` on the head.",
        )
    return Access(token=ticket.token, roots=certificate)


def _is_of(certificate: str, fingerprint: str) -> bool:
    try:
        return fingerprint_of(certificate) == fingerprint if certificate else not fingerprint
    except ValueError:
        return False


async def _fetch(address: str) -> str:
    """The CA, from a server that nobody has verified yet: nothing is shown to it."""
    answers: list[bytes] = []
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_FETCH_S):
            host, port = split_address(address)
            context = any_server()
            context.set_alpn_protocols(["h2"])
            _, stream = await loop.create_connection(
                lambda: ClientStream(_PATH, (), answers.append), host, port, ssl=context
            )
            stream.send(tr.AuthorityRequest().SerializeToString())
            stream.finish()
            end = await stream.ended
            stream.abort()
    except ssl.SSLError:
        raise Unavailable(
            f"the server at {address} speaks no TLS, and the join token is of one that does",
            hint="Is it the coordinator's port (50051)? Its host should run without STRATA_INSECURE=1.",
        ) from None
    except (OSError, ValueError) as error:
        why = "no answer in time" if isinstance(error, TimeoutError) else error
        raise CoordinatorUnavailable(f"nobody answers at {address} ({why})") from None
    if not answers:
        raise from_rpc_error(end, address=address)
    return tr.Authority.FromString(answers[0]).certificate


def _join(address: str, access: Access, request: tr.JoinRequest) -> tr.JoinReply:
    with Channel(address, access=access, patience_s=5.0) as channel:
        reply: tr.JoinReply = channel.call(channel.stub(TrustStub).Join, request)
    return reply


def _keep(file: Path, record: dict[str, str]) -> None:
    """For its owner alone, whole or not at all."""
    staged = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as whole:
            json.dump(record, whole)
        staged.replace(file)
    except OSError as error:
        raise InvalidConfig(
            f"{file} cannot be written: {error.strerror}", hint="Make room for it, or mend it."
        ) from None
