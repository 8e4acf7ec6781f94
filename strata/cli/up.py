"""`strata up`: the whole of Strata on one machine, supervised."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from strata.cli.extras import require_server
from strata.cli.options import (
    Advertise,
    AllowOrigin,
    Cert,
    DataDir,
    GrpcPort,
    Host,
    HttpPort,
    Key,
    Slots,
    TelemetryPort,
    prepare,
)
from strata.cli.supervisor import Child, Supervisor
from strata.client.endpoints import announced, folder_endpoints
from strata.client.leaders import split_addresses
from strata.config import Settings, check_storage
from strata.datadir import open_data_dir
from strata.lockfile import FolderLock
from strata.network import is_loopback, write_endpoint
from strata.pages import forget_start
from strata.trust.identity import ensure_identity
from strata.trust.token import ensure_token
from strata.types.tokens import Role

__all__ = ["add_to", "cluster", "serve", "stop_signals"]

_console = Console(highlight=False, soft_wrap=True)
_STOP_S = 20.0  # a server ends itself within 15 s
_INVITED = (Role.AGENT, Role.OPERATOR)
_INVITED_S = 86_400.0


def add_to(app: typer.Typer) -> None:
    app.command()(up)


def up(
    host: Host = None,
    grpc_port: GrpcPort = None,
    http_port: HttpPort = None,
    telemetry_port: TelemetryPort = None,
    data_dir: DataDir = None,
    slots: Slots = None,
    advertise: Advertise = None,
    cert: Cert = None,
    key: Key = None,
    allowed_origins: AllowOrigin = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Start no workers on this machine.")] = False,
) -> None:
    """Start coordinator, observatory and a local agent, and keep them running until Ctrl-C."""
    # Each of the others is called as the setting that it gives.
    settings = prepare(**{name: value for name, value in locals().items() if name != "no_agent"})
    with (
        cluster(settings, with_agent=not no_agent) as supervisor,
        announced(endpoints_of(settings, supervisor), settings.data_dir),
    ):
        _invite(settings)
        serve(supervisor)


@contextmanager
def cluster(settings: Settings, *, with_agent: bool) -> Iterator[Supervisor]:
    """A running cluster on this machine: endpoints.json is there inside the block, no process is left after it.
    Inside, Ctrl-C and SIGTERM only set the supervisor's `stopping`: whoever uses it looks there."""
    check_storage(settings)
    require_server(with_engine=settings.ch_host is None)
    folder = settings.data_dir
    open_data_dir(folder)
    lock = FolderLock(folder, "strata")
    lock.acquire()
    try:
        ensure_token(settings)
        ensure_identity(settings)
        children = _children(settings, with_agent=with_agent)
        supervisor = Supervisor(children, lambda line: _console.print(f"[yellow]{escape(line)}[/]"))
        with stop_signals(supervisor.ask_to_stop):
            supervisor.start()
            forget_start()
            file = write_endpoint(folder / "endpoints.json", endpoints_of(settings, supervisor))
            try:
                _greet(endpoints_of(settings, supervisor), folder)
                yield supervisor
            finally:
                file.unlink(missing_ok=True)
                supervisor.stop()
    finally:
        lock.release()


def endpoints_of(settings: Settings, supervisor: Supervisor) -> dict[str, str]:
    """Where the cluster listens: of several coordinators any may lead."""
    several = {"grpc": settings.coordinator_addr} if _stands_in(settings) else {}
    return {**supervisor.endpoints, **several}


def _stands_in(settings: Settings) -> bool:
    """Whether the coordinator here is one of several that others find by COORDINATOR_ADDR."""
    return settings.journal is not None and len(split_addresses(settings.coordinator_addr)) > 1


def serve(supervisor: Supervisor) -> None:
    """Watches over the cluster until Ctrl-C or SIGTERM."""
    supervisor.watch()
    _console.print("[dim]stopping …[/]")


def _children(settings: Settings, *, with_agent: bool) -> list[Child]:
    """Ports that were left to the system stay the same when a child comes back, so that others find it again."""
    folder = settings.data_dir
    common = ["--data-dir", str(folder)]
    advertise = ["--advertise", settings.advertise] if settings.advertise else []
    given = ["--cert", str(settings.cert), "--key", str(settings.key)] if settings.cert else []
    listening = ["--host", settings.host, *advertise, *given]

    def leaders() -> str:
        return settings.coordinator_addr if _stands_in(settings) else coordinator.endpoints["grpc"]

    def child(name: str, arguments: Callable[[], list[str]], stop_s: float = _STOP_S) -> Child:
        return Child(
            name=name,
            arguments=arguments,
            ready_file=folder / f"{name}.json",
            log_file=folder / "logs" / f"{name}.log",
            stop_timeout_s=stop_s,
            may_stand_by=_stands_in(settings),
        )

    def coordinator_arguments() -> list[str]:
        port = _port_of(coordinator.endpoints.get("grpc"), settings.grpc_port)
        return ["coordinator", *common, *listening, "--grpc-port", str(port)]

    def observatory_arguments() -> list[str]:
        http = _port_of(observatory.endpoints.get("http"), settings.http_port)
        telemetry = _port_of(observatory.endpoints.get("telemetry"), settings.telemetry_port)
        ports = ["--http-port", str(http), "--telemetry-port", str(telemetry)]
        ports += [word for origin in settings.allowed_origins for word in ("--allow-origin", origin)]
        return ["observatory", *common, *listening, *ports, "--coordinator", leaders()]

    def agent_arguments() -> list[str]:
        slots = ["--slots", str(settings.slots)] if settings.slots else []
        return ["agent", *common, *slots, *advertise, "--coordinator", leaders()]

    coordinator = child("coordinator", coordinator_arguments)
    observatory = child("observatory", observatory_arguments)
    agent = child("agent", agent_arguments, 75.0)  # its workers get their grace first
    return [coordinator, observatory, *([agent] if with_agent else [])]


def _port_of(address: str | None, asked: int) -> int:
    return int(address.rpartition(":")[2]) if address else asked


@contextmanager
def stop_signals(ask: Callable[[int, object], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM call `ask`, as Python calls a handler."""
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _invite(settings: Settings) -> None:
    """How others come in, when they can reach us: a host by one line, people by another. Each line holds a token that
    lasts a day."""
    if is_loopback(settings.host):
        return
    from strata.cli.token import usage  # here: a supervisor that others cannot reach does without gRPC
    from strata.client.channel import Channel
    from strata.client.tokens import TokensClient

    known = folder_endpoints(settings)
    assert known is not None
    with Channel(known.grpc, access=known.access) as channel:
        tokens = TokensClient(channel)
        lines = {role: usage(role, tokens.create(role.value, _INVITED_S, "by strata up")) for role in _INVITED}
    _console.print("  another host joins with  [dim](for a day; `strata token create` makes more)[/]\n")
    _console.print(f"    {lines[Role.AGENT]}\n\n  and you work from elsewhere with\n", markup=False)
    _console.print(f"    {lines[Role.OPERATOR]}\n", markup=False)


def _greet(endpoints: dict[str, str], folder: Path) -> None:
    shown = {name: escape(address) for name, address in endpoints.items()}  # the brackets of IPv6 are no markup
    _console.print(f"\n  [bold]Strata is up.[/]  Dashboard  [bold cyan]{shown['http']}[/]\n")
    _console.print(f"  coordinator  {shown['grpc']}      (gRPC, for workers)")
    if shown.get("telemetry"):
        _console.print(f"  telemetry    {shown['telemetry']}      (gRPC, for metrics and logs)")
    _console.print(f"  state, logs  {escape(str(folder))}/\n\n  [dim]Ctrl-C stops everything; nothing is lost.[/]\n")
