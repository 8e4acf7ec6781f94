"""Every error Strata raises at its users: one tree, each class with a stable code and, where there is one, a next step.

    StrataError
    ├─ InvalidArgument            the request itself is wrong; the same call will never succeed
    │   └─ InvalidConfig          a setting is unknown or has a bad value; names the key, the value and what is allowed
    ├─ NotFound                   the named thing does not exist (any more)
    │   ├─ UnknownWorker          register first: the coordinator has no such worker
    │   ├─ UnknownDataset         register the dataset before workers ask for its shards
    │   ├─ UnknownTask
    │   └─ CheckpointNotFound
    ├─ Conflict                   it exists already, or differs from what exists
    │   ├─ DataDirInUse           another process owns the folder; says which
    │   └─ Outdated               somebody changed it since it was read; says who
    ├─ Refused                    valid, but the state does not allow it now
    │   ├─ Fenced                 an older incarnation or generation: this process must stop
    │   └─ Busy                   a bounded queue or budget is full
    ├─ BarrierFailed              the barrier will not release
    │   ├─ BarrierBroken          a member died; names who and why
    │   └─ BarrierExpired         the deadline passed; names who is missing
    ├─ DeadlineExceeded           no answer in time; the outcome is unknown, a retry is harmless
    ├─ Unauthenticated            a token is needed and was missing or wrong
    ├─ PermissionDenied           known, but not allowed to do this
    ├─ Unavailable                the other side cannot be reached now; retry later
    │   ├─ CoordinatorUnavailable
    │   ├─ NotLeader              another coordinator of this cluster leads, or may do so
    │   ├─ PeerLost               another rank of the group is gone; all start anew from the last checkpoint
    │   ├─ ObservatoryUnavailable
    │   └─ StoreUnavailable       the metric store does not answer; what was acknowledged waits on disk
    ├─ StorageError               a checkpoint store failed
    │   ├─ StorageAccessDenied
    │   ├─ StorageNotFound        no such bucket, folder or object
    │   ├─ StorageConflict        a create-once write lost its race
    │   └─ StorageFull
    ├─ CheckpointError            a checkpoint cannot be saved, or read back
    │   ├─ CorruptCheckpoint      bytes do not match their hash; names rank, tensor and chunk
    │   ├─ CheckpointAborted      a save was given up; names the ranks that did not vote
    │   ├─ CheckpointTorn         a state changed while it was copied, and so is not saved; names the array
    │   └─ UnsupportedState       a value that cannot be stored safely; names its key
    ├─ DataError                  a data file cannot be read; names file and row
    ├─ TaskFailed                 a task ended badly; carries its reason
    ├─ ProcessFailed              a process of Strata's own ended before it was ready; carries its last line
    ├─ MissingExtra               an optional library is not installed; names the extra
    └─ Internal                   a bug in Strata: please report it

A class says when to catch it. `code`, its name in small letters (`unknown_task`), is part of the public contract: it
appears in REST errors and gRPC trailers. A class that is renamed breaks it.
"""

import re
from http import HTTPStatus

__all__ = [
    "BarrierBroken", "BarrierExpired", "BarrierFailed", "Busy", "CheckpointAborted", "CheckpointError",
    "CheckpointNotFound", "CheckpointTorn", "Conflict", "CoordinatorUnavailable", "CorruptCheckpoint", "DataDirInUse",
    "DataError", "DeadlineExceeded", "Fenced", "Internal", "InvalidArgument", "InvalidConfig", "MissingExtra",
    "NotFound", "NotLeader", "ObservatoryUnavailable", "Outdated", "PeerLost", "PermissionDenied", "ProcessFailed",
    "Refused", "StorageAccessDenied", "StorageConflict", "StorageError", "StorageFull", "StorageNotFound",
    "StoreUnavailable", "StrataError", "TaskFailed", "Unauthenticated", "Unavailable", "UnknownDataset",
    "UnknownTask", "UnknownWorker", "UnsupportedState",
]  # fmt: skip


class StrataError(Exception):
    """The root: catch it to handle anything Strata may report. `message` says what happened, `hint` what to do next,
    `field` which part of a request is wrong, where it is one."""

    code = "error"
    http_status = HTTPStatus.INTERNAL_SERVER_ERROR
    grpc_status = "UNKNOWN"
    default_hint = ""

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = self.default_hint if hint is None else hint
        if self.hint:
            self.add_note(self.hint)  # a traceback shows it below the message

    def __str__(self) -> str:
        return self.message

    @property
    def sentence(self) -> str:
        """The message with its full stop: what a command prints before the hint."""
        return self.message if self.message.endswith((".", "!", "?")) else f"{self.message}."


class InvalidArgument(StrataError):
    """The request itself is wrong; repeating it cannot help."""

    http_status = HTTPStatus.BAD_REQUEST
    grpc_status = "INVALID_ARGUMENT"


class InvalidConfig(InvalidArgument):
    """A setting is unknown or has a bad value. Raised at the start, before anything runs."""


class NotFound(StrataError):
    """The named thing does not exist, or no longer."""

    http_status = HTTPStatus.NOT_FOUND
    grpc_status = "NOT_FOUND"


class UnknownWorker(NotFound):
    """The coordinator has no such worker: register (again) and go on."""

    default_hint = "Register the worker first; after a coordinator reset every worker registers again."


class UnknownDataset(NotFound):
    """No dataset under that id."""

    default_hint = "Ensure dataset_id is registered via the API/Dashboard before starting workers."


class UnknownTask(NotFound):
    """No task under that id."""

    default_hint = "List what there is with `strata tasks`."


class CheckpointNotFound(NotFound):
    """No committed checkpoint under that step or id."""

    default_hint = "List what there is with `strata checkpoints`, or GET /api/checkpoints."


class Conflict(StrataError):
    """It exists already, or differs from what exists under the same name."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "ALREADY_EXISTS"


class DataDirInUse(Conflict):
    """Another process owns the data folder."""

    default_hint = "Stop that process, or give this one its own --data-dir."


class Outdated(Conflict):
    """It was changed since the caller read it: read it again and decide."""

    http_status = HTTPStatus.PRECONDITION_FAILED
    grpc_status = "ABORTED"


class Refused(StrataError):
    """A valid request that the present state does not allow."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "FAILED_PRECONDITION"


class Fenced(Refused):
    """The caller is an older incarnation or generation: it must stop, its place is taken."""

    default_hint = "This process was replaced while it was away. Stop it; the current one goes on."


class Busy(Refused):
    """A bounded queue or budget is full; the same call may succeed later."""

    http_status = HTTPStatus.TOO_MANY_REQUESTS
    grpc_status = "RESOURCE_EXHAUSTED"


class BarrierFailed(StrataError):
    """The barrier will not release. Catch this to handle both ways it can fail."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "ABORTED"

    def __init__(self, message: str, *, missing: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class BarrierBroken(BarrierFailed):
    """A member died or left while others waited: `missing` names exactly the dead, the message says why."""


class BarrierExpired(BarrierFailed):
    """The deadline passed with all missing members alive: `missing` names who did not come."""

    grpc_status = "DEADLINE_EXCEEDED"
    http_status = HTTPStatus.GATEWAY_TIMEOUT


class DeadlineExceeded(StrataError):
    """No answer in time. The outcome is unknown; every Strata call may be repeated harmlessly."""

    http_status = HTTPStatus.GATEWAY_TIMEOUT
    grpc_status = "DEADLINE_EXCEEDED"


class Unauthenticated(StrataError):
    """A token is needed and was missing or wrong."""

    http_status = HTTPStatus.UNAUTHORIZED
    grpc_status = "UNAUTHENTICATED"
    default_hint = "Set STRATA_TOKEN, or run where <data-dir>/token can be read."


class PermissionDenied(StrataError):
    """The caller is known but may not do this."""

    http_status = HTTPStatus.FORBIDDEN
    grpc_status = "PERMISSION_DENIED"


class Unavailable(StrataError):
    """The other side cannot be reached now; retrying later is right."""

    http_status = HTTPStatus.SERVICE_UNAVAILABLE
    grpc_status = "UNAVAILABLE"


class CoordinatorUnavailable(Unavailable):
    """The coordinator does not answer."""

    default_hint = "Check COORDINATOR_ADDR and ensure the gRPC port (50051) is open."


class NotLeader(Unavailable):
    """Another coordinator of the cluster leads, or nobody can tell."""

    default_hint = "Name all coordinators in COORDINATOR_ADDR (a:50051,b:50051): who leads is found among them."


class PeerLost(Unavailable):
    """Another rank of the group is gone. All ranks start again from the last checkpoint; there is nothing to save."""


class ObservatoryUnavailable(Unavailable):
    """The HTTP API does not answer."""

    default_hint = "Ensure the Coordinator is running and the VITE_API_URL points to the correct address."


class StoreUnavailable(Unavailable):
    """The metric store (ClickHouse, embedded or a server) does not answer. Points keep being accepted meanwhile."""

    default_hint = "Check CH_HOST and CH_PORT, or the observatory's log; buffered points are stored when it is back."


class StorageError(StrataError):
    """A checkpoint store failed in a way that has no class of its own."""

    http_status = HTTPStatus.BAD_GATEWAY
    grpc_status = "UNAVAILABLE"


class StorageAccessDenied(StorageError):
    """The store does not know us, or forbids this."""

    http_status = HTTPStatus.FORBIDDEN
    grpc_status = "PERMISSION_DENIED"
    default_hint = (
        "Verify .env or IAM Role permissions: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, s3:GetObject, s3:ListBucket."
    )


class StorageNotFound(StorageError):
    """No such bucket, folder or object."""

    http_status = HTTPStatus.NOT_FOUND
    grpc_status = "NOT_FOUND"


class StorageConflict(StorageError):
    """A create-once write found the object already there: somebody else was first."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "ALREADY_EXISTS"


class StorageFull(StorageError):
    """No space is left where the bytes should go."""

    http_status = HTTPStatus.INSUFFICIENT_STORAGE
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "Free space, lower keep_count, or point the checkpoint path to a larger store."


class CheckpointError(StrataError):
    """A checkpoint cannot be saved, or read back."""

    grpc_status = "INTERNAL"


class CorruptCheckpoint(CheckpointError):
    """Bytes that do not match their hash, or a piece that is gone; the message names rank, tensor and chunk."""

    grpc_status = "DATA_LOSS"


class CheckpointAborted(CheckpointError):
    """A save was given up: `missing` names the ranks that did not vote in time or died."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "ABORTED"

    def __init__(self, message: str, *, missing: tuple[int, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class CheckpointTorn(CheckpointError):
    """An array was written to while a sliced save was copying it: nothing of that save is kept. Names the array."""

    http_status = HTTPStatus.CONFLICT
    grpc_status = "ABORTED"


class UnsupportedState(CheckpointError):
    """A value that cannot be stored without pickle; the message names its key."""

    http_status = HTTPStatus.BAD_REQUEST
    grpc_status = "INVALID_ARGUMENT"


class DataError(StrataError):
    """A data file cannot be read as it should: `file` and `row` say where."""

    http_status = HTTPStatus.UNPROCESSABLE_ENTITY
    grpc_status = "DATA_LOSS"

    def __init__(self, message: str, *, file: str = "", row: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.row = row


class TaskFailed(StrataError):
    """A task ended badly; the message carries its reason."""


class ProcessFailed(StrataError):
    """A process that `strata up` started ended before it was ready; the message is its own last line."""

    grpc_status = "INTERNAL"


class MissingExtra(StrataError):
    """An optional library is not installed; the hint is the command that installs it."""

    http_status = HTTPStatus.NOT_IMPLEMENTED
    grpc_status = "UNIMPLEMENTED"

    def __init__(self, library: str, extra: str) -> None:
        command = f"pip install 'strata-runtime[{extra}]'"
        if extra == "server":  # its engine is built where it is installed, and on no index: docs/adr/0046
            command = f"pip install ./engine 'strata-runtime[{extra}]'   # in a checkout of Strata"
        super().__init__(f"{library} is not installed", hint=command)


class Internal(StrataError):
    """A bug in Strata."""

    grpc_status = "INTERNAL"
    default_hint = "This is a bug in Strata; please report it with the log."
