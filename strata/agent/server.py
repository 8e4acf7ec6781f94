"""The agent's composition root: `strata agent` builds the parts here, runs until a signal, and stops in order."""

import asyncio
import os
import re
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from strata.agent.agent import Agent, AgentConfig
from strata.agent.capture import Capture
from strata.agent.gpus import Gpus
from strata.agent.host import HostSampler
from strata.agent.leftovers import Leftovers
from strata.agent.notices import Notice, Notices
from strata.agent.nvml import Nvml
from strata.agent.rank_files import RankFiles
from strata.agent.ranks import SECRETS, Ranks
from strata.agent.relay import Relay
from strata.client.channel import Channel
from strata.client.code import CodeClient
from strata.client.endpoints import Endpoints, telemetry_address
from strata.client.join import join_host, kept_host
from strata.client.leaders import split_addresses
from strata.client.telemetry import Outbox, OutboxConfig
from strata.config import Settings, check_storage, environment
from strata.datadir import open_data_dir
from strata.errors import InvalidConfig
from strata.lockfile import FolderLock
from strata.network import is_loopback, join_address, split_address, write_endpoint
from strata.storage.home import checkpoint_home, home_identity
from strata.trust.access import find_access

__all__ = ["Whereabouts", "run"]

_STOP_TIMEOUT_S = 5.0
_SOCKET = "ranks.sock"
_KEEP_LOGS_S = 7 * 24 * 3600.0
# By which the frameworks of ranks meet those of other hosts. Left alone, gloo takes the one that the host's own name
# leads to, which may be loopback.
_CARDS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """What only whoever started the agent knows: the launcher by which it came, where telemetry goes if not where the
    settings say, when an agent that nobody needs should end by itself (None: never), and the one task that it was
    started for, with which it ends."""

    launcher: str = "local"
    telemetry: str | None = None
    leave_after_s: float | None = None
    task_id: str = ""


def run(settings: Settings, where: Whereabouts | None = None) -> bool:
    """Serves until SIGTERM or SIGINT, then lets its ranks save and leave, and leaves itself. When its supervisor was
    killed, the ranks run on and are adopted by the next agent. Returns whether it left by itself because its host goes
    away, before its task was over."""
    check_storage(settings)
    open_data_dir(settings.data_dir)
    folder = settings.data_dir.resolve() / "agent"
    lock = FolderLock(folder, "agent")
    lock.acquire()
    try:
        return asyncio.run(_serve(settings, folder, where or Whereabouts(), _cluster(settings, folder)))
    finally:
        lock.release()


async def _serve(settings: Settings, folder: Path, where: Whereabouts, cluster: Endpoints) -> bool:
    access = cluster.access
    told = where.telemetry or os.environ.get("STRATA_TELEMETRY_ADDR") or cluster.telemetry or None

    def find() -> str | None:
        return told or telemetry_address(settings)

    outbox = Outbox(find, OutboxConfig(folder=folder / "spill", access=access))
    leftovers = Leftovers(settings.data_dir.resolve(), find, access)
    gpus = Gpus(Nvml(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    sampler = HostSampler(folder, gpus)
    files = RankFiles(folder / "ranks")
    config = _config(settings, folder, where, cluster)
    environment = _environment(settings, config, told, folder / _SOCKET)
    ranks = Ranks(files, folder, environment, gpus, _fetch_from(cluster))
    capture = Capture(ranks, outbox, config.hostname)
    relay = Relay()
    notices = Notices(settings.notice_file, settings.notice_url)
    agent = Agent(config, ranks, capture, sampler, files, relay, notices)
    parent = os.getppid()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: agent.leave(keep_ranks=os.getppid() != parent))
    loop.add_signal_handler(signal.SIGUSR1, lambda: notices.give("signal", _warning()))
    ready = settings.data_dir / "agent.json"
    ready.unlink(missing_ok=True)  # an agent that was killed left its own behind
    await relay.start(folder / _SOCKET)
    ranks.adopt()
    ranks.tidy(_KEEP_LOGS_S)
    sweeping = asyncio.create_task(leftovers.run())
    try:
        await agent.run(lambda: _write_ready(ready, config))
    finally:
        ready.unlink(missing_ok=True)
        await relay.stop()
        sweeping.cancel()
        await asyncio.to_thread(leftovers.send)  # of ranks that ended just now
        await asyncio.to_thread(outbox.close, _STOP_TIMEOUT_S)
    return agent.sent_away


def _fetch_from(cluster: Endpoints) -> Callable[[str], bytes]:
    """Brings the code of a task from the coordinator."""

    def fetch(digest: str) -> bytes:
        with Channel(cluster.grpc, access=cluster.access) as channel:
            return CodeClient(channel).get(digest)

    return fetch


def _warning() -> Notice:
    """SIGUSR1 is how Slurm warns of a job's end when it is asked to (`--signal=USR1@120`); newer ones say when that
    is."""
    ends = os.environ.get("SLURM_JOB_END_TIME", "")
    deadline = float(ends) if ends.isdecimal() and len(ends) < 12 else None
    return Notice(reason="its agent was sent SIGUSR1", deadline=deadline)


def _write_ready(file: Path, config: AgentConfig) -> None:
    if not file.exists():
        write_endpoint(file, {"agent_id": config.agent_id})


def _cluster(settings: Settings, folder: Path) -> Endpoints:
    """The one that this host joins or has joined, or else that of the settings. Where its observatory takes telemetry
    is empty when both are of our own data folder: there it is looked up by agent and ranks alike, again after every
    failure, for it may come back on another port."""
    if settings.join is not None:
        return join_host(settings, folder, _agent_id(folder, socket.gethostname()))
    kept = kept_host(settings, folder)
    if kept is not None:
        return kept
    host = split_address(split_addresses(settings.coordinator_addr)[0])[0]
    here = is_loopback(host) or (settings.data_dir / "coordinator.json").exists()
    telemetry = "" if here else join_address(host, settings.telemetry_port)
    return Endpoints(grpc=settings.coordinator_addr, telemetry=telemetry, access=find_access(settings))


def _config(settings: Settings, folder: Path, where: Whereabouts, cluster: Endpoints) -> AgentConfig:
    hostname = socket.gethostname()
    return AgentConfig(
        agent_id=_agent_id(folder, hostname),
        incarnation=secrets.token_hex(8),
        hostname=hostname,
        address=settings.advertise or _reachable_address(split_addresses(cluster.grpc)[0]),
        slots=settings.slots or max(4, os.cpu_count() or 1),
        memory_bytes=psutil.virtual_memory().total,
        coordinator=cluster.grpc,
        access=cluster.access,
        launcher=where.launcher,
        checkpoints=home_identity(checkpoint_home(settings)),
        leave_after_s=where.leave_after_s,
        task_id=where.task_id,
    )


def _agent_id(folder: Path, hostname: str) -> str:
    """The same for the life of the data folder: the coordinator knows by it where its ranks are."""
    file = folder / "id"
    if not file.exists():
        safe = re.sub(r"[^A-Za-z0-9-]", "-", hostname).strip("-") or "host"
        file.write_text(f"{safe[:80]}-{secrets.token_hex(2)}\n")
    return file.read_text().strip()


def _reachable_address(coordinator: str) -> str:
    """The address of the interface that leads to the coordinator: the one by which other hosts' ranks find ours."""
    host, port = split_address(coordinator)
    if is_loopback(host):
        return "::1" if ":" in host else "127.0.0.1"
    try:
        family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise InvalidConfig(
            f"no way leads to the coordinator at {coordinator}: {error.strerror}",
            hint="Check its name; --advertise says how other hosts reach this one.",
        ) from None


def _card(address: str) -> str:
    """The network card that has this address; empty when none has, and on loopback."""
    if is_loopback(address):
        return ""
    cards = psutil.net_if_addrs().items()
    return next((name for name, has in cards if any(one.address.partition("%")[0] == address for one in has)), "")


def _environment(settings: Settings, config: AgentConfig, telemetry: str | None, relay: Path) -> dict[str, str]:
    """What every rank needs to find the cluster, whatever its working folder; also what `.env` and strata.toml of this
    folder say, except the token."""
    for_ranks = {
        **{name: value for name, value in environment().items() if name not in {*os.environ, *SECRETS}},
        "STRATA_AGENT_ID": config.agent_id,
        "STRATA_AGENT_SOCKET": str(relay),
        "STRATA_COORDINATOR_ADDR": config.coordinator,
        "STRATA_DATA_DIR": str(settings.data_dir.resolve()),
    }
    for_ranks |= {name: card for name in _CARDS if name not in os.environ and (card := _card(config.address))}
    if telemetry:
        for_ranks["STRATA_TELEMETRY_ADDR"] = telemetry
    if config.access.roots:
        file = settings.data_dir.resolve() / "agent" / "ca.pem"
        file.write_text(config.access.roots)
        for_ranks["STRATA_CA_FILE"] = str(file)
    return for_ranks
