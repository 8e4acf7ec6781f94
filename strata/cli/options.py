"""The flags that several commands share, and how they become settings."""

from pathlib import Path
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


def _folder(text: str) -> Path:
    """An empty text is a variable that was not set. As a path it would be the working folder, which others may read."""
    if not text:
        raise typer.BadParameter("it is empty; . is this folder")
    return Path(text)


DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", parser=_folder, metavar="PATH", help="Where state is kept (default .strata)."),
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
Cert = Annotated[Path | None, typer.Option("--cert", help="A certificate (PEM), instead of one of the cluster's CA.")]
Key = Annotated[Path | None, typer.Option("--key", help="The key of that certificate (PEM).")]
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
