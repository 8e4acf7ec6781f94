"""`strata token`: tokens for others, made, listed and revoked. The cluster's own token is in its data folder."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.options import DataDir, Json, reach
from strata.cli.show import Column, ago, show_rows
from strata.cli.spans import parse_span
from strata.client.channel import Channel
from strata.client.endpoints import find_endpoints
from strata.client.tokens import TokensClient
from strata.types.tokens import Role, TokenRecord

__all__ = ["add_to", "usage"]

_console = Console(highlight=False, soft_wrap=True)
_ROLE_HELP = "agent: joins a host. viewer: reads. operator: does all that you may, except making tokens."
_TTL_HELP = "How long it is good for: 90s, 10m, 24h, 7d; `forever`: until it is revoked."


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Tokens for others: hosts that join, people who look or work.")
    group.command("create")(create)
    group.command("list")(list_tokens)
    group.command("revoke")(revoke)
    app.add_typer(group, name="token")


def create(
    role: Annotated[Role, typer.Option("--role", help=_ROLE_HELP)],
    ttl: Annotated[str, typer.Option("--ttl", help=_TTL_HELP)] = "24h",
    note: Annotated[str, typer.Option("--note", help="For whom or what; shown in the list.")] = "",
    data_dir: DataDir = None,
) -> None:
    """Make a token and print it, with how it is used. It is shown once; what is kept is its hash."""
    ttl_s = None if ttl == "forever" else parse_span("--ttl", ttl)
    with _tokens(data_dir) as tokens:
        ticket = tokens.create(role.value, ttl_s, note)
    _console.print(usage(role, ticket), markup=False)


def usage(role: Role, ticket: str) -> str:
    """The line that its holder types."""
    if role is Role.AGENT:
        return f"strata agent --join {ticket}"
    if role is Role.OPERATOR:
        return f"strata run --join {ticket} train.py"
    return f"STRATA_JOIN={ticket} strata tasks"


def list_tokens(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the tokens that were made: who holds which, and until when."""
    columns: list[Column] = [
        ("id", lambda row: row["token_id"]),
        ("role", lambda row: row["role"]),
        ("made", lambda row: ago(row["made_at"])),
        ("standing", _standing),
        ("agent", lambda row: row["agent_id"]),
        ("note", lambda row: row["note"]),
    ]
    with _tokens(data_dir) as tokens:
        rows = tokens.list()
    show_rows(rows, columns, as_json=as_json, empty="No tokens yet. `strata token create` makes one.")


def revoke(
    token_id: Annotated[str, typer.Argument(help="Its id, from `strata token list`.", callback=ids.token_id)],
    data_dir: DataDir = None,
) -> None:
    """End a token now, whoever holds it. An agent's credential ends its stream within a second."""
    with _tokens(data_dir) as tokens:
        tokens.revoke(token_id)
    _console.print(f"token {token_id} is no good any more", markup=False)


def _standing(row: Mapping[str, Any]) -> str:
    token = TokenRecord(**{**row, "role": Role(row["role"]), "digest": ""})
    fault = token.fault(time.time())
    if fault:
        return "revoked" if token.revoked_at is not None else "expired"
    if token.expires_at is None:
        return "good until it is revoked"
    return f"good for {(token.expires_at - time.time()) / 3600:.1f} h"


@contextmanager
def _tokens(data_dir: Any) -> Iterator[TokensClient]:
    known = find_endpoints(reach(data_dir=data_dir))
    with Channel(known.grpc, access=known.access, patience_s=0.0) as channel:
        yield TokensClient(channel)
