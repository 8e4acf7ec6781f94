"""A worker without a task and without an agent, as its tie speaks for it."""

import logging

from strata.client.workers import Member
from strata.errors import StrataError
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["PlainRank"]

_log = logging.getLogger(__name__)


class PlainRank:
    """Fulfils Rank. Whoever registered it sets `status`."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.status = pb.WorkerStatus(state=pb.WorkerStatus.IDLE)

    def hello(self) -> rk.RankHello:
        return rk.RankHello(worker_id=self.member.worker_id, incarnation=self.member.incarnation)

    def beat(self) -> pb.HeartbeatRequest:
        return pb.HeartbeatRequest(
            worker_id=self.member.worker_id, status=self.status, incarnation=self.member.incarnation
        )

    def hear(self, news: rk.RankNews) -> None:
        """Nothing in it is for a worker that has no task."""

    def refused(self, error: StrataError) -> None:
        _log.warning("worker %s: %s", self.member.worker_id, error)  # its next call raises it
