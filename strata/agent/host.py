"""What this machine and its ranks use: CPU, memory, disk, network, and GPUs where there are any."""

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from strata.agent.gpus import Gpus
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["HostSample", "HostSampler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """The machine at one moment: totals since boot as the contract wants them, and rates for the charts."""

    usage: pb.ResourceUsage
    metrics: dict[str, float]


class HostSampler:
    """Takes samples when asked; rates are over the time since the last one."""

    def __init__(self, disk: Path, gpus: Gpus) -> None:
        self._disk = disk
        self._gpus = gpus
        self._processes: dict[int, psutil.Process] = {}
        self._net_at_start: dict[int, Any] = {}
        self._before: tuple[float, Any] | None = None
        psutil.cpu_percent()  # the first answer has nothing to compare with

    @property
    def num_gpus(self) -> int:
        return len(self._gpus.cards)

    def sample(self) -> HostSample:
        memory = psutil.virtual_memory()
        disk, net = psutil.disk_io_counters(), psutil.net_io_counters()
        usage = pb.ResourceUsage(
            cpu_percent=psutil.cpu_percent(),
            memory_used_bytes=memory.used,
            gpu_usage=self._gpus.usage(),
            disk_read_bytes=disk.read_bytes if disk else None,
            disk_write_bytes=disk.write_bytes if disk else None,
            network_rx_bytes=net.bytes_recv,
            network_tx_bytes=net.bytes_sent,
        )
        metrics = {
            "sys.cpu_percent": usage.cpu_percent,
            "sys.mem_percent": memory.percent,
            "sys.disk.data.percent": psutil.disk_usage(str(self._disk)).percent,
            **self._network_rates(),
        }
        for gpu in usage.gpu_usage:
            if math.isfinite(gpu.utilization_percent):
                metrics[f"sys.gpu.{gpu.gpu_id}.util_percent"] = gpu.utilization_percent
            if gpu.memory_total_bytes:
                metrics[f"sys.gpu.{gpu.gpu_id}.mem_percent"] = 100 * gpu.memory_used_bytes / gpu.memory_total_bytes
        return HostSample(usage=usage, metrics=metrics)

    def _network_rates(self) -> dict[str, float]:
        now, counters = time.monotonic(), psutil.net_io_counters(pernic=True)
        before, self._before = self._before, (now, counters)
        if before is None:
            return {}
        elapsed = max(now - before[0], 1e-3)
        rates = {}
        for name, counter in counters.items():
            if name in before[1] and counter.bytes_sent + counter.bytes_recv:  # interfaces that nobody uses say nothing
                rates[f"sys.net.{name}.sent_bytes_per_s"] = (counter.bytes_sent - before[1][name].bytes_sent) / elapsed
                rates[f"sys.net.{name}.recv_bytes_per_s"] = (counter.bytes_recv - before[1][name].bytes_recv) / elapsed
        return rates

    def process(self, pid: int, gpus: Sequence[int]) -> pb.ResourceUsage | None:
        """What one rank uses, its own children included; None when it is gone. `gpus` are the cards that it alone
        holds: one that was given none may use any of them."""
        try:
            leader = self._processes.get(pid)
            if leader is None:
                leader = self._processes[pid] = psutil.Process(pid)
                leader.cpu_percent()
                self._net_at_start[pid] = psutil.net_io_counters()
            with leader.oneshot():
                usage = pb.ResourceUsage(cpu_percent=leader.cpu_percent(), memory_used_bytes=leader.memory_info().rss)
                io = leader.io_counters()
                usage.disk_read_bytes, usage.disk_write_bytes = io.read_bytes, io.write_bytes
            for child in _children(pid):
                with contextlib.suppress(psutil.Error):
                    usage.memory_used_bytes += psutil.Process(child).memory_info().rss
        except psutil.Error:
            self._processes.pop(pid, None)
            self._net_at_start.pop(pid, None)
            return None
        net, start = psutil.net_io_counters(), self._net_at_start[pid]
        usage.network_rx_bytes = net.bytes_recv - start.bytes_recv
        usage.network_tx_bytes = net.bytes_sent - start.bytes_sent
        usage.gpu_usage.extend(self._gpus.usage(gpus or None))
        return usage


def _children(pid: int) -> list[int]:
    """Straight from the kernel: psutil would look at every process of the machine, once per rank and second."""
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
