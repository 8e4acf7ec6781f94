"""`strata coordinator`, `strata observatory`, `strata agent`: one process alone, for clusters and for `strata up`. Each
parameter is called as the setting that it gives.
"""

import typer

from strata.cli.options import (
    Advertise,
    AllowOrigin,
    Cert,
    DataDir,
    GrpcPort,
    Host,
    HttpPort,
    Join,
    Key,
    Slots,
    TelemetryPort,
)
from strata.cli.server import start

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command()(coordinator)
    app.command()(observatory)
    app.command()(agent)


def coordinator(
    data_dir: DataDir = None,
    host: Host = None,
    grpc_port: GrpcPort = None,
    advertise: Advertise = None,
    cert: Cert = None,
    key: Key = None,
) -> None:
    """Run the control plane alone: membership, barriers, shards, checkpoints, tasks."""
    start("coordinator", **locals())


def observatory(
    data_dir: DataDir = None,
    host: Host = None,
    http_port: HttpPort = None,
    telemetry_port: TelemetryPort = None,
    allowed_origins: AllowOrigin = None,
    advertise: Advertise = None,
    cert: Cert = None,
    key: Key = None,
    coordinator_addr: str | None = typer.Option(None, "--coordinator", help="The coordinator's host:port."),
) -> None:
    """Run the observability plane alone: metrics, logs, REST and the dashboard."""
    start("observatory", **locals())


def agent(
    data_dir: DataDir = None,
    slots: Slots = None,
    coordinator_addr: str | None = typer.Option(None, "--coordinator", help="The coordinator's host:port."),
    join: Join = None,
    advertise: Advertise = None,
) -> None:
    """Run this host's agent: it starts workers, captures their output and watches the machine.

    `--join` is needed once: the agent keeps a credential of its own in the data folder.
    """
    start("agent", **locals())
