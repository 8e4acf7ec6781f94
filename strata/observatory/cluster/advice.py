"""What to do about each kind of interruption: one sentence or two per kind, for whoever reads a verdict."""

from strata.observatory.answers.why import VerdictKind

__all__ = ["ADVICE"]

ADVICE: dict[VerdictKind, str] = {
    VerdictKind.NONE: "There is nothing to do.",
    VerdictKind.WAITING: "`strata hosts` shows which slots are free; add a host or wait.",
    VerdictKind.STOPPED: "`strata resume {task}` goes on from its last checkpoint.",
    VerdictKind.GROWN: "There is nothing to do: no step was lost.",
    VerdictKind.EXCEPTION: "Mend the script, then `strata resume {task}`; the traceback is in "
    "`strata logs --task {task}`.",
    VerdictKind.IMPORT_ERROR: "Install what is missing, or mend the script, on every host; then submit it again.",
    VerdictKind.USAGE: "Mend the arguments or settings of the script and submit it again.",
    VerdictKind.BAD_LOSS: "Look at the gradients and batches before that step; resume with a lower learning rate or "
    "without those batches: `strata resume {task}`.",
    VerdictKind.DISK_FULL: "Free space where the path in the message lies, or keep fewer checkpoints; then "
    "`strata resume {task}`.",
    VerdictKind.STORAGE_REFUSED: "Give the ranks keys that may read and write the bucket, then `strata resume {task}`.",
    VerdictKind.EXIT: "The script gave no reason: look at its last lines with `strata logs --task {task}`.",
    VerdictKind.CRASH: "A native library crashed, which no Python error tells: look for its lines in "
    "`strata logs --task {task}`, and try another version of it.",
    VerdictKind.KILLED: "Neither Strata nor the kernel's lack of memory did it: ask who or what on that host sent the "
    "signal (a person, a batch system, a supervisor).",
    VerdictKind.OUT_OF_MEMORY: "Use a smaller batch, fewer loader buffers or a host with more memory: it would want as "
    "much again.",
    VerdictKind.HANG: "The rank's stack is in its log: `strata logs --task {task}`. A slow part belongs into "
    "`run.section`, a longer limit into `--hang-timeout`.",
    VerdictKind.SUSPENDED: "Somebody stopped the process by a signal (SIGSTOP, Ctrl-Z, a debugger): find out who.",
    VerdictKind.CANNOT_START: "Mend what the message names on that host; `strata doctor` looks at it.",
    VerdictKind.HOST_LOST: "See whether the host is up and reaches the coordinator: `strata hosts`. The task goes on "
    "elsewhere as soon as there are slots.",
    VerdictKind.HOST_DRAINED: "There is nothing to do: the ranks saved, and go on where there are slots.",
    VerdictKind.ASKED_TO_STOP: "There is nothing to do: the ranks saved what they could, and are started again.",
    VerdictKind.STRAGGLER: "Look at that host (heat, another job, a slow disk), or let it be left: "
    "`strata run --exclude-stragglers`.",
    VerdictKind.COORDINATOR_RESTARTED: "There is nothing to do: nobody is at fault and nothing was lost.",
    VerdictKind.UNKNOWN: "Look at what was seen below and at `strata logs --task {task}`.",
}
