"""The flags that several commands share, and how they become settings."""

from typing import Annotated, Any

import typer

from strata.cli.prepare import prepare
from strata.config import Settings

__all__ = [
    "Advertise",
    "AllowOrigin",
    "Cert",
    "DataDir",
    "GrpcPort",
    "Host",
    "HttpPort",
    "Join",
    "Json",
    "Key",
    "Slots",
    "TelemetryPort",
    "prepare",
    "reach",
]

# Text, not Path: an empty one would be the working folder, and the settings refuse it.
DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="PATH", help="Where state is kept (default .strata).")
]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on (default 127.0.0.1).")]
GrpcPort = Annotated[int | None, typer.Option("--grpc-port", help="Coordinator's port (default 50051, 0 = any).")]
HttpPort = Annotated[int | None, typer.Option("--http-port", help="Dashboard's port (default 3000, 0 = any).")]
TelemetryPort = Annotated[
    int | None, typer.Option("--telemetry-port", help="Port for metrics and logs (default 50052, 0 = any).")
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option("--allow-origin", help="A web origin whose pages may call (https://host:port); may be repeated."),
]
Advertise = Annotated[
    str | None, typer.Option("--advertise", help="The name or address by which other hosts reach this one.")
]
Cert = Annotated[
    str | None, typer.Option("--cert", metavar="PATH", help="A certificate (PEM), instead of one of the cluster's CA.")
]
Key = Annotated[str | None, typer.Option("--key", metavar="PATH", help="The key of that certificate (PEM).")]
Join = Annotated[
    str | None,
    typer.Option("--join", metavar="TOKEN@HOST:PORT", help="A cluster to join, as `strata up` or `strata token` says."),
]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Slots = Annotated[
    int | None, typer.Option("--slots", help="Workers this host may run (default: its cores, at least 4).")
]


def reach(**flags: Any) -> Settings:
    """For a command that speaks to a cluster: the one of --join or STRATA_JOIN is joined first, once."""
    from strata.client.api import joined  # here: `strata up` does without it

    return joined(prepare(**flags))
