"""Figures of this machine are there, plausible and named as the dashboard expects."""

import os
from pathlib import Path

from strata.agent.gpus import Gpus
from strata.agent.host import HostSampler
from strata.agent.nvml import Nvml


def test_host_and_process_figures_are_measured(tmp_path: Path) -> None:
    sampler = HostSampler(tmp_path, Gpus(Nvml(), None))
    sampler.sample()
    sample = sampler.sample()
    assert {"sys.cpu_percent", "sys.mem_percent", "sys.disk.data.percent"} <= sample.metrics.keys()
    assert any(name.startswith("sys.net.") and name.endswith("bytes_per_s") for name in sample.metrics)
    assert 0 < sample.metrics["sys.mem_percent"] <= 100
    own = sampler.process(os.getpid(), [])
    assert own is not None
    assert own.memory_used_bytes > 1_000_000


def test_a_process_that_is_gone_has_no_figures(tmp_path: Path) -> None:
    assert HostSampler(tmp_path, Gpus(Nvml(), None)).process(2**22 - 1, []) is None
