"""Who goes first: asked for where the kernel and our rights allow it, kept from children, never against a wish."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is asked for")

_SYS_NICE, _SYS_RESOURCE = 23, 24  # the kernel's numbers of capabilities

_BEGIN = """
import ctypes, os, pathlib, subprocess, sys, threading
from strata.precedence import go_after_others, go_first

def tell():
    print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)

def tell_slice():
    file = pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/sched")
    print(*(line.split()[-1] for line in file.read_text().splitlines() if line.startswith("se.slice")))

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def in_process():
    subprocess.run([sys.executable, "-c", "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"], check=True)

"""


def ran(script: str) -> list[str]:
    command = [sys.executable, "-u", "-c", _BEGIN + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def nobody(**limits: int) -> str:
    """A line after which the script is another user, with a right or two."""
    given = "".join(f"resource.setrlimit(resource.RLIMIT_{name}, ({value},) * 2); " for name, value in limits.items())
    return f"import resource; {given}os.geteuid() == 0 and os.setuid(65534); "


def has(capability: int) -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    (held,) = (int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))
    return bool(held >> capability & 1)


def has_slices() -> bool:
    number = [int(part) for part in platform.release().split("-")[0].split(".")[:2]]
    return number >= [6, 12] and Path("/proc/self/sched").exists()


as_it_is = pytest.mark.skipif(
    os.getpriority(os.PRIO_PROCESS, 0) != 0 or os.sched_getscheduler(0) != os.SCHED_OTHER,
    reason="these tests were given another priority",
)
with_slices = pytest.mark.skipif(not has_slices(), reason="before Linux 6.12 slices stay, and not every kernel tells")


@as_it_is
@pytest.mark.parametrize(
    ("capability", "rights", "level"),
    [
        (_SYS_NICE, "", f"0 {os.SCHED_RR}"),
        (_SYS_RESOURCE, nobody(RTPRIO=1), f"0 {os.SCHED_RR}"),
        (_SYS_RESOURCE, nobody(NICE=30), f"-10 {os.SCHED_OTHER}"),
    ],
    ids=["root", "a limit for real time", "a limit for levels"],
)
def test_who_goes_first_goes_alone(capability: int, rights: str, level: str) -> None:
    if not has(capability):
        pytest.skip("takes a capability")
    script = "assert go_first(); tell(); in_thread(tell); in_process(); in_thread(lambda: (go_first(), tell()))"
    assert ran(rights + script) == [level, "0 0", "0", level]


@as_it_is
def test_without_the_right_it_is_told_and_nothing_else_changes() -> None:
    assert ran(f"{nobody()}assert not go_first(); tell(); in_thread(tell)") == ["0 0", "0 0"]


@as_it_is
def test_who_goes_after_others_takes_all_that_it_starts_along() -> None:
    assert ran("go_after_others(); tell(); in_thread(tell); in_process()") == [f"5 {os.SCHED_BATCH}"] * 2 + ["5"]


@as_it_is
@with_slices
def test_slices_are_short_for_the_one_and_long_for_the_other() -> None:
    assert ran(f"{nobody()}go_first(); tell_slice(); in_thread(lambda: (go_first(), tell_slice()))") == ["100000"] * 2
    assert ran("go_after_others(); tell_slice(); in_thread(tell_slice)") == ["20000000", "20000000"]


@pytest.mark.parametrize("work", ["go_first", "go_after_others"])
def test_another_kind_of_priority_stays(work: str) -> None:
    idle = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    assert ran(f"{idle}; {work}(); print(os.sched_getscheduler(0))") == [str(os.SCHED_IDLE)]


@as_it_is
def test_who_was_started_with_a_nice_level_never_goes_above_it() -> None:
    assert ran("os.nice(3); assert go_first(); tell()") == [f"3 {os.SCHED_OTHER}"]
    assert ran("os.nice(17); go_after_others(); tell()") == [f"19 {os.SCHED_BATCH}"]


@as_it_is
def test_a_session_of_its_own_has_the_same_share() -> None:
    file = Path("/proc/self/autogroup")
    if not file.exists() or not file.read_text().startswith("/autogroup"):
        pytest.skip("this kernel does not group tasks by session")
    (told, *_) = ran(f"os.setsid(); go_after_others(); print(open('{file}').read())")
    assert told.endswith("nice 5")
