"""A worker that was built from the original proto alone and has never heard of Strata's SDK.

Run as `python plain_worker.py STUBS ADDRESS`. Reads one JSON request per line, {"id", "call", "request"}, and answers
each when it is done, in a thread of its own: {"id", "reply"} or {"id", "code", "message"}.
"""

import json
import sys
import threading
import time
from typing import Any

sys.path.insert(0, sys.argv[1])

import grpc
import plain_pb2 as pb  # type: ignore[import-not-found]  # made by the test from plain.proto
import plain_pb2_grpc as pb_grpc  # type: ignore[import-not-found]  # made by the test from plain.proto
from google.protobuf import json_format

REQUESTS = {
    "RegisterWorker": pb.WorkerInfo,
    "DeregisterWorker": pb.WorkerInfo,
    "Heartbeat": pb.HeartbeatRequest,
    "RegisterDataset": pb.DatasetInfo,
    "GetDataShard": pb.ShardRequest,
    "NotifyCheckpoint": pb.CheckpointInfo,
    "GetLatestCheckpoint": pb.RecoveryRequest,
    "WaitBarrier": pb.BarrierRequest,
}


class Worker:
    def __init__(self, address: str) -> None:
        self._stub = pb_grpc.CoordinatorStub(grpc.insecure_channel(address))
        self._print = threading.Lock()

    def run(self) -> None:
        for line in sys.stdin:
            threading.Thread(target=self._serve, args=(json.loads(line),), daemon=True).start()

    def _serve(self, asked: dict[str, Any]) -> None:
        try:
            answer = {"reply": self._call(asked["call"], asked["request"])}
        except grpc.RpcError as error:
            answer = {"code": error.code().name, "message": error.details()}
        with self._print:
            sys.stdout.write(json.dumps({"id": asked["id"], **answer}) + "\n")
            sys.stdout.flush()

    def _call(self, name: str, request: dict[str, Any]) -> Any:
        if name == "beat_for_ever":
            return self._beat_for_ever(request["worker_id"], request["every_s"])
        if name == "stream_for_ever":
            return self._stream_for_ever(request["worker_id"], request["every_s"])
        message = json_format.ParseDict(request, REQUESTS[name]())
        reply = getattr(self._stub, name)(message, timeout=60)
        return json_format.MessageToDict(
            reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )

    def _beat_for_ever(self, worker_id: str, every_s: float) -> None:
        while True:
            self._stub.Heartbeat(pb.HeartbeatRequest(worker_id=worker_id), timeout=10)
            time.sleep(every_s)

    def _stream_for_ever(self, worker_id: str, every_s: float) -> None:
        def beats() -> Any:
            while True:
                status = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=7)
                yield pb.HeartbeatRequest(worker_id=worker_id, status=status)
                time.sleep(every_s)

        for response in self._stub.StreamHeartbeats(beats()):
            assert response.acknowledged


Worker(sys.argv[2]).run()
