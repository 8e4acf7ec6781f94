"""What a template or a spare runs: it imports what the ranks of its task import. Where a fork of it is as good as a new
interpreter it is a template, and each fork is a spare, for which nothing has to be imported again; where it is not, it
is the spare itself. A spare waits, and becomes a rank. Run by its path, in any interpreter: standard library only.

From the hand-over on it must be what `python SCRIPT` or `python -m MODULE` would have been. Where it cannot be (a file
that it imported has changed, a module of the script's own folder would have come first), it starts the plain command in
its own place: the same process, the same output, only later.
"""

# ruff: noqa: PTH109, PTH110, PTH115, PTH116, PTH118, PTH120, PTH123, PTH208
# (pathlib would be one more module that the rank itself may not have.)
import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the folder of this file: its modules are nobody's to import

import builtins
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import socket
import stat
import time
from importlib.machinery import SourceFileLoader
from types import ModuleType

__all__: list[str] = []  # a program, run by its path


class _Watched(type(os.environ)):  # type: ignore[misc]  # os._Environ: reading a variable of one rank leaves a trace
    """The environment while modules are imported. Whatever a module took from a rank's own variables now, it would keep
    for the rank that it becomes."""

    of_ranks = frozenset[str]()
    read = False

    def __getitem__(self, name):  # type: ignore[no-untyped-def]
        _Watched.read = _Watched.read or name in self.of_ranks
        return super().__getitem__(name)


def _receive(channel: socket.socket) -> tuple[dict, list[int]]:  # type: ignore[type-arg]
    """The next message, which lies in a file of its own, and the files that came with it. Ends this process when there
    is none: its agent is gone."""
    _, files, _, _ = socket.recv_fds(channel, 1, 3)
    if not files:
        os._exit(0)
    with os.fdopen(files[0], "rb") as message:
        message.seek(0)
        return json.load(message), files[1:]


def _warm(channel: socket.socket) -> str:
    """Imports what it is told to. Returns the name of a module that cannot be imported ahead of its rank, or ""."""
    order, _ = _receive(channel)
    # The end of the agent ends this process even while an import hangs: nothing else can come on the channel now.
    flags = fcntl.fcntl(channel, fcntl.F_GETFL)
    fcntl.fcntl(channel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(channel, fcntl.F_SETFL, flags | os.O_ASYNC)
    plain, _Watched.of_ranks = os.environ.__class__, frozenset(order["of_ranks"])
    os.environ.__class__ = _Watched
    unfit = ""
    for name in order["modules"]:
        with contextlib.suppress(BaseException):  # the script will meet the same error, or does not need it here
            importlib.import_module(name)
        if _Watched.read:
            unfit = name
            break
    os.environ.__class__ = plain
    fcntl.fcntl(channel, fcntl.F_SETFL, flags)
    sys.stdout.flush()
    sys.stderr.flush()
    return unfit


def _open_files() -> dict[str, str]:
    """What is open here, and what each descriptor leads to. Files and the kernel's own devices (null, urandom) can be
    shared by forks, and are left out."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself
            status = os.fstat(int(number))
            device = stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) != 1
            if device or not (stat.S_ISREG(status.st_mode) or stat.S_ISCHR(status.st_mode)):
                found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def _forkable(opened: dict[str, str]) -> bool:
    """Whether the imports have left nothing that a fork would lack or share: no thread, no child, nothing open that was
    not `opened` before (a GPU, a socket, a pipe)."""
    return len(os.listdir("/proc/self/task")) == 1 and not _has_children() and _open_files() == opened


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _fork_spares(channel: socket.socket, before: dict[str, tuple[int, int]]) -> socket.socket:
    """Forks a spare for every channel that comes, and returns in each spare, with its channel. Each is handed over to
    the agent, which takes in orphans meanwhile: a rank's parent learns its exit code. Ends when a file that it has
    imported has changed: the next template imports the new one."""
    gc.collect()
    gc.freeze()  # a collection would write to the pages of all that was imported, and forks would not share them
    while True:
        _, (number,) = _receive(channel)
        if any(_stamp(path) != known for path, known in before.items()):
            os._exit(0)
        middle = os.fork()
        if middle:
            os.close(number)
            os.waitpid(middle, 0)
            continue
        middle = os.getpid()
        if os.fork():
            os._exit(0)
        channel.close()
        os.setsid()
        while os.getppid() == middle:
            time.sleep(0.0005)
        if "numpy.random" in sys.modules:  # Python's own random numbers begin anew by themselves
            sys.modules["numpy.random"].seed()
        return socket.socket(fileno=number)


def _files_of_modules() -> dict[str, tuple[int, int]]:
    """When each imported file was last written, and its size."""
    found = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            found[path] = _stamp(path)
    return found


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _shadowed(folder: str) -> bool:
    """Whether a script that looks into this folder first would import something else under a name that is taken
    here."""
    for entry in os.scandir(folder):
        name = entry.name.partition(".")[0]
        module = sys.modules.get(name)
        if module is None or name == "__main__":
            continue
        path = entry.path
        if entry.is_dir():
            path += "/__init__.py"
            if not os.path.exists(path):
                continue
        elif not entry.name.endswith((".py", ".so", ".pyc")):
            continue
        if os.path.realpath(getattr(module, "__file__", None) or "") != os.path.realpath(path):
            return True
    return False


def _fits(order: dict, folder: str, before: dict[str, tuple[int, int]]) -> bool:  # type: ignore[type-arg]
    """Whether what was imported is what the rank itself would import."""
    if any(_stamp(path) != known for path, known in before.items()) or not os.access(
        order["script"] or folder, os.R_OK
    ):
        return False
    return sys.flags.safe_path or not _shadowed(folder)


def _replay(number: int) -> bytes:
    """What imports printed: the rank would have printed it, too."""
    return os.pread(number, os.fstat(number).st_size, 0)


def _take_over(order: dict, files: list[int], before: dict[str, tuple[int, int]]) -> None:  # type: ignore[type-arg]
    """Environment, folder, output and arguments of the rank; from here on it is the rank."""
    printed = [_replay(1), _replay(2)]
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(file, number)
        os.close(file)
    # All else it has from its start, with what the interpreter and the imports have added.
    os.environ.update({name: value for name, value in order["env"].items() if name in _Watched.of_ranks})
    module, script, arguments = order["module"], order["script"], order["arguments"]
    folder = os.getcwd() if module else os.path.dirname(os.path.realpath(script))
    if not _fits(order, folder, before):
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606  # the rank's own command
    for number, text in zip((1, 2), printed, strict=True):
        if text:
            os.write(number, text)
    importlib.invalidate_caches()
    sys.orig_argv = order["argv"]
    sys.argv = ["-m" if module else script, *arguments]
    if not sys.flags.safe_path:
        sys.path.insert(0, folder)


def _new_main(script: str) -> ModuleType:
    """`__main__` as the interpreter makes it."""
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if "__annotations__" in globals():  # up to Python 3.13
        main.__annotations__ = {}
    if script:
        main.__file__ = os.path.join(os.getcwd(), script)
        main.__cached__ = None  # type: ignore[attr-defined]
        main.__loader__ = SourceFileLoader("__main__", main.__file__)
    sys.modules["__main__"] = main
    return main


if __name__ == "__main__":
    channel = socket.socket(fileno=int(sys.argv[1]))
    opened = _open_files()
    unfit = _warm(channel)
    before = _files_of_modules()
    try:
        if unfit:
            channel.send(f"unfit {unfit}".encode())
            os._exit(0)
        if _forkable(opened):
            channel.send(b"template")
            channel = _fork_spares(channel, before)
        channel.send(f"warm {os.getpid()}".encode())
    except OSError:  # the agent is gone
        os._exit(0)
    order, files = _receive(channel)
    channel.close()
    _take_over(order, files, before)
    main = _new_main(order["script"])
    # At the top of this file, so that the frames of the rank have one frame below them and not five; a traceback has
    # none.
    try:
        if order["module"]:
            runpy._run_module_as_main(order["module"])  # type: ignore[attr-defined]  # what `python -m` calls
        else:
            with open(order["script"], "rb") as source:
                code = compile(source.read(), str(main.__file__), "exec", dont_inherit=True)
            exec(code, main.__dict__)  # noqa: S102  # the user's script
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):  # the interpreter ends itself by SIGINT, and has nothing more to say
            sys.excepthook = lambda *_: None
            raise
        raise SystemExit(1) from None
