"""`strata doctor`: looks at this machine, this folder and the cluster, and says what to do where something is wrong."""

from dataclasses import asdict

import typer

from strata.cli.checks import Finding, check_all
from strata.cli.options import DataDir, GrpcPort, Host, HttpPort, Json, TelemetryPort
from strata.cli.show import Column, show_rows
from strata.config import load_settings
from strata.datadir import check_data_dir
from strata.errors import InvalidConfig

__all__ = ["add_to"]

_COLUMNS: list[Column] = [
    ("check", lambda row: row["check"]),
    ("status", lambda row: row["status"]),
    ("found", lambda row: row["found"]),
    ("what to do", lambda row: row["todo"]),
]


def add_to(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    host: Host = None,
    grpc_port: GrpcPort = None,
    http_port: HttpPort = None,
    telemetry_port: TelemetryPort = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check versions, machine, data folder, ports, cluster, clock, checkpoint store and ClickHouse; exit code 1 when
    something has failed."""
    # Each of the others is called as the setting that it gives.
    flags = {name: value for name, value in locals().items() if name != "as_json"}
    try:
        settings = load_settings(flags)
        check_data_dir(settings.data_dir)
        findings = list(check_all(settings))
    except InvalidConfig as error:
        findings = [Finding(check="settings", status="failed", found=error.message, todo=error.hint)]
    show_rows([asdict(finding) for finding in findings], _COLUMNS, as_json=as_json, empty="")
    if any(finding.status == "failed" for finding in findings):
        raise typer.Exit(1)
