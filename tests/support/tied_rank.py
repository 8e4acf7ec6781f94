"""A rank as its tie sees one, for tests: it says who it is and at which step, and notes what it hears."""

from strata.errors import StrataError
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["TiedRank"]


class TiedRank:
    """Fulfils Rank of strata/client/tie.py. `errors` are what it was refused with."""

    def __init__(self, worker_id: str = "w", incarnation: str = "i", step: int = 0) -> None:
        self.worker_id = worker_id
        self.incarnation = incarnation
        self.step = step
        self.heard: list[rk.RankNews] = []
        self.errors: list[StrataError] = []

    def hello(self) -> rk.RankHello:
        return rk.RankHello(worker_id=self.worker_id, incarnation=self.incarnation)

    def beat(self) -> pb.HeartbeatRequest:
        return pb.HeartbeatRequest(status=pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=self.step))

    def hear(self, news: rk.RankNews) -> None:
        self.heard.append(news)

    def refused(self, error: StrataError) -> None:
        self.errors.append(error)
