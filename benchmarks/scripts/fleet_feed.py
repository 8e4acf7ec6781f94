"""Plays a training fleet for a page to look at: `fleet_feed.py COORDINATOR TOKEN HTTP NUM_HOSTS`. Eight ranks behind
each agent on a real connection, a heartbeat of each in a second, and one point of each rank and step over POST. It
says "ready" when all ranks train, and goes on until it is killed. One rank is slow.
"""

import asyncio
import json
import math
import sys
from collections.abc import Coroutine
from typing import Any
from urllib.request import Request, urlopen

import uvloop

from benchmarks.scripts.fleet_host import RANKS, Host
from benchmarks.scripts.grpc_wire import header_block
from strata.agent.beats import HeldBeats
from strata.client.channel import Channel
from strata.client.tasks import TasksClient
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.access import Access
from strata.types.tasks import TaskSpec

SLOW = 4242
STEP_S = 1.0


def step_time(rank: int, step: int) -> float:
    return (1.0 if rank == SLOW else 0.5) + 0.02 * math.sin(rank / 7 + step)


class FedHost(Host):
    """Says at which step its ranks are."""

    def __init__(self, fleet: "Fleet", number: int) -> None:
        super().__init__(fleet, number)
        self._steps = 0

    def beat(self, sequence: int = 1) -> None:
        self._steps += 1
        self.say(ag.AgentMessage(beat=ag.AgentBeat(sequence=sequence)))
        beats = HeldBeats()  # as the relay puts them together
        for tie, process in self.ranks.items():
            status = pb.WorkerStatus(
                state=pb.WorkerStatus.TRAINING,
                current_step=self._steps,
                step_time_s=step_time(process.rank, self._steps),
            )
            beats.add(tie, rk.RankWords(beat=pb.HeartbeatRequest(status=status), sequence=1))
        if self.ranks and self._welcome >= self.ranks.keys():
            self.say(ag.AgentMessage(ties=ag.TieFrames(frames=beats.take())))


class Fleet:
    """All hosts, and the points of their ranks."""

    over = False
    beating = True
    meeting = "none"

    def __init__(self, address: str, token: str, http: str, num_hosts: int) -> None:
        self.address = address
        self._http = http
        self._token = token
        self.attach_block = header_block("/strata.agents.Agents/Attach", token)
        self._hosts = [FedHost(self, number) for number in range(num_hosts)]
        self._num_ranks = num_hosts * RANKS
        self._greeted: set[str] = set()
        self._ready = asyncio.Event()
        self._jobs: set[asyncio.Task[None]] = set()

    def spawn(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    def heard(self, what: str, number: int) -> None:
        """Only who is there counts here."""

    def came(self, what: str, who: str) -> None:
        if what == "greeted":
            self._greeted.add(who)
        if len(self._greeted) >= self._num_ranks:
            self._ready.set()

    def went(self, what: str, who: str) -> None:
        if what == "greeted":
            self._greeted.discard(who)

    async def run(self) -> None:
        await asyncio.gather(*(host.attach() for host in self._hosts))
        spec = TaskSpec(name="fleet", worker_count=self._num_ranks, entrypoint=("true",), max_restarts=100)
        tasks = TasksClient(Channel(self.address, access=Access(token=self._token)))
        task_id = await asyncio.to_thread(tasks.submit, spec)
        await asyncio.wait_for(self._ready.wait(), 120)
        print("ready", task_id, flush=True)
        await asyncio.gather(self._beat(), self._log(task_id))

    async def _beat(self) -> None:
        while True:
            for start in range(20):
                for host in self._hosts[start::20]:
                    host.beat()
                await asyncio.sleep(0.05)

    async def _log(self, run_id: str) -> None:
        step, clock = 0, asyncio.get_running_loop().time
        due = clock()
        while True:
            step += 1
            due = max(due + STEP_S, clock())
            await asyncio.to_thread(self._post, run_id, step)
            await asyncio.sleep(max(0.0, due - clock()))

    def _post(self, run_id: str, step: int) -> None:
        points = [
            {"metric": "step_time", "rank": rank, "step": step, "value": step_time(rank, step)}
            for rank in range(self._num_ranks)
        ]
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        request = Request(f"{self._http}/api/runs/{run_id}/points", json.dumps({"points": points}).encode(), headers)  # noqa: S310  # our own loopback server
        with urlopen(request, timeout=60) as answer:  # noqa: S310  # the same
            answer.read()


async def main(address: str, token: str, http: str, num_hosts: str) -> None:
    await Fleet(address, token, http, int(num_hosts)).run()


uvloop.run(main(*sys.argv[1:]))
