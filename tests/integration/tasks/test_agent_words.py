"""What an agent says to whoever started it: that it serves, each time that it lost its coordinator, and no more."""

import signal
from pathlib import Path

from tests.support.nodes import Nodes
from tests.support.waiting import eventually

_SERVES, _LOST = "serves the coordinator at", "no stream to the coordinator"


def test_an_agent_says_when_it_serves_and_each_time_it_cannot(tmp_path: Path) -> None:
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator", "agent")
        log = nodes.data_dir / "agent.log"
        _wait_for(log, _SERVES, 1)
        for times in (1, 2):
            nodes.kill("coordinator")
            _wait_for(log, _LOST, times)
            nodes.start("coordinator")
            _wait_for(log, _SERVES, times + 1)
        nodes.kill("agent", signal.SIGTERM)
        assert log.read_text().count(_LOST) == 2, "an agent that was stopped has lost nobody"


def _wait_for(log: Path, words: str, times: int) -> None:
    eventually(words, lambda: log.read_text().count(words) == times)
