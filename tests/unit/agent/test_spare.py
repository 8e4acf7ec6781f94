"""A rank that comes from a spare is the rank that its command would have been: each script runs both ways, and all that
it can see of itself is compared."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from strata.agent.spare import Spare, kind_of
from strata.agent.template import Template
from strata.launchers.base import LaunchSpec
from strata.launchers.local import Child, LocalLauncher
from tests.support.waiting import eventually

_ABOUT = """
import __main__, json, os, signal, sys, threading
main = {name: repr(value) for name, value in vars(__main__).items() if name.startswith("__")}
main |= {"__loader__": type(__loader__).__name__, "__spec__": getattr(__spec__, "name", None)}
main.pop("__doc__")
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": repr(sys.flags), "main": main,
    "env": sorted(os.environ.items()), "cwd": os.getcwd(), "executable": sys.executable, "umask": os.umask(0o22),
    "signals": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "leads": os.getsid(0) == os.getpid() == os.getpgid(0),
    "files": sorted(os.listdir("/proc/self/fd")), "stdin": os.readlink("/proc/self/fd/0"),
    "streams": [sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.errors],
    "threads": threading.active_count(), "hook": sys.excepthook is sys.__excepthook__,
    "same": __main__ is sys.modules[__name__],
}, indent=1, sort_keys=True))
"""
_SPAWN = """
import multiprocessing

def double(queue, number):
    queue.put((number * 2, __name__))

class Pair:
    pass

if __name__ == "__main__":
    import pickle
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=double, args=(queue, 21))
    child.start()
    print(queue.get(), pickle.loads(pickle.dumps(Pair)) is Pair)
    child.join()
    print(child.exitcode)
"""
_SCRIPTS = {
    "about": _ABOUT,
    "spawn": _SPAWN,
    "neighbour": "import neighbour, pathlib\nprint(neighbour.NAME, neighbour.__file__, pathlib.Path(__file__).name)",
    "raises": "def inner():\n    raise ValueError('no')\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    inner()",
    "syntax": "print('never')\nx = = 1\n",
    "exits": "import sys\nprint('out')\nsys.exit(7)",
    "exits with words": "raise SystemExit('enough')",
    "interrupted": "import atexit\natexit.register(print, 'last')\nraise KeyboardInterrupt",
    "killed": "import os, signal\nprint('up', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
    "aborts": "import os\nos.abort()",
    "a hook of its own": "import sys\nsys.excepthook = lambda *it: print('hook', it[1], it[2].tb_lineno)\n1 / 0",
    "at exit": "import atexit, threading, time\natexit.register(print, 'bye')\n"
    "threading.Thread(target=lambda: (time.sleep(0.05), print('thread', __name__))).start()\nprint('end of script')",
    "recursion": "def dig():\n    dig()\ntry:\n    dig()\nexcept RecursionError as error:\n    print(error)",
    "typed": "x: int = 1\nprint(__annotations__, __doc__, __spec__, __cached__, __package__)",
    "coded": "# coding: latin-1\nprint('\\u00e9', len('\\xe9'))",
}


class _Folder:
    """Scripts, and the two ways to run one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "neighbour.py").write_text("NAME = __name__\n")
        (folder / "package").mkdir()
        (folder / "package" / "__init__.py").touch()

    def installed(self, name: str, text: str) -> None:
        """A module as if some package had brought it."""
        (self.folder / "site").mkdir(exist_ok=True)
        (self.folder / "site" / f"{name}.py").write_text(text)

    def with_installed(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder / "site"), "PYTHONDONTWRITEBYTECODE": "1"}

    def change(self) -> None:
        self.installed("named", "WHICH = 'changed'")

    def shadow(self) -> None:
        (self.folder / "named.py").write_text("WHICH = 'shadow'")

    def spec(self, way: str, *argv: str, env: dict[str, str] | None = None) -> LaunchSpec:
        variables = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "RANK": "3", "STRATA_INCARNATION": "t.1.3"}
        return LaunchSpec(
            argv=(sys.executable, *argv),
            tag="t.1.3",
            env={**variables, **(env or {})},
            working_dir=str(self.folder),
            stdout=self.folder / f"{way}.out",
            stderr=self.folder / f"{way}.err",
        )

    def template(self, spec: LaunchSpec, modules: tuple[str, ...] = ()) -> Template:
        kind = kind_of(spec)
        assert kind is not None
        template = Template(kind, modules, self.folder)
        eventually("its word", lambda: _heard(template))
        return template

    def spare(self, spec: LaunchSpec, modules: tuple[str, ...] = ()) -> Spare:
        """A fork of a template that is gone by now, or what would be one if it could be forked."""
        template = self.template(spec, modules)
        if template.spare is not None:
            return template.spare
        spare = template.fork()
        template.close()
        assert spare is not None
        return spare

    def plainly(self, *argv: str, env: dict[str, str] | None = None) -> list[str]:
        spec = self.spec("plain", *argv, env=env)
        launcher = LocalLauncher()
        return self.outcome(launcher._children[launcher.start(spec)], spec)

    def by_spare(self, *argv: str, modules: tuple[str, ...] = (), env: dict[str, str] | None = None) -> list[str]:
        spec = self.spec("spare", *argv, env=env)
        spare = self.spare(spec, modules)
        assert spare.become(spec)
        spare.close(kill=False)
        return self.outcome(spare.child, spec)

    def outcome(self, child: Child, spec: LaunchSpec) -> list[str]:
        code = child.wait()
        assert spec.stdout is not None
        assert spec.stderr is not None
        return [f"code {code}", *spec.stdout.read_text().splitlines(), *spec.stderr.read_text().splitlines()]


def _heard(template: Template) -> bool:
    template.listen()
    return template.ready or template.spare is not None or bool(template.unfit)


@pytest.fixture
def folder(tmp_path: Path) -> _Folder:
    return _Folder(tmp_path)


@pytest.mark.parametrize("name", _SCRIPTS)
def test_a_script_sees_no_difference(folder: _Folder, name: str) -> None:
    (folder.folder / "script.py").write_text(_SCRIPTS[name])
    plain = folder.plainly("script.py", "--one", "two words", "")
    assert folder.by_spare("script.py", "--one", "two words", "", modules=("json", "socket", "email.message")) == plain
    assert plain != ["code 0"]


_WAYS = [
    ("module", ()), ("module", ("-P",)), ("package", ("-u", "-B")), ("absolute", ("-I",)), ("symlink", ("-OO",)),
    ("symlink", ()),
]  # fmt: skip


@pytest.mark.parametrize(("how", "flags"), _WAYS)
def test_every_way_to_name_it_and_flags(folder: _Folder, how: str, flags: tuple[str, ...]) -> None:
    here = folder.folder
    (here / "script.py").write_text(_ABOUT)
    (here / "package" / "__main__.py").write_text(_ABOUT + "\nimport package\n1 / 0\n")
    (here / "far").mkdir()
    (here / "far" / "link.py").symlink_to("../script.py")
    names = {"module": ("-m", "script"), "package": ("-m", "package"), "absolute": (str(here / "script.py"),)}
    argv = (*flags, *names.get(how, ("./far/link.py",)), "-x")
    plain = folder.plainly(*argv)
    assert folder.by_spare(*argv, modules=("json",)) == plain
    assert len(plain) > 1


def test_what_imports_print_and_set_is_the_ranks(folder: _Folder) -> None:
    folder.installed("loud", "import os, sys\nprint('hello')\nsys.stderr.write('warned\\n')\nos.environ['LOUD'] = '1'")
    (folder.folder / "script.py").write_text("import loud, os\nprint('script', os.environ['LOUD'], os.environ['RANK'])")
    env = folder.with_installed()
    plain = folder.plainly("script.py", env=env)
    assert folder.by_spare("script.py", modules=("loud",), env=env) == plain
    assert plain == ["code 0", "hello", "script 1 3", "warned"]


def test_a_module_that_changed_since_or_that_the_script_has_itself_makes_it_start_anew(folder: _Folder) -> None:
    (folder.folder / "script.py").write_text("import named, os\nprint(named.WHICH, len(os.listdir('/proc/self/fd')))")
    env = folder.with_installed()
    changes: tuple[Callable[[], None], ...] = (folder.change, folder.shadow)
    for change in changes:
        folder.installed("named", "WHICH = 'old'")
        spec = folder.spec("spare", "script.py", env=env)
        spare = folder.spare(spec, ("named",))
        change()
        assert spare.become(spec)
        spare.close(kill=False)
        assert folder.outcome(spare.child, spec)[-1] == folder.plainly("script.py", env=env)[-1]
    assert folder.plainly("script.py", env=env)[-1].startswith("shadow")


def test_a_module_that_reads_a_ranks_variable_is_not_imported_ahead(folder: _Folder) -> None:
    folder.installed("reader", "import os\nRANK = os.environ.get('RANK')")
    env = folder.with_installed()
    template = folder.template(folder.spec("spare", "neighbour.py", env=env), ("json", "reader", "socket"))
    assert (template.ready, template.spare, template.unfit) == (False, None, "reader")
    assert template.child.wait() == 0
    template.close()


def test_what_cannot_be_imported_is_left_to_the_script(folder: _Folder) -> None:
    folder.installed("broken", "raise SystemExit(9)")
    (folder.folder / "script.py").write_text("import json\nprint('up')\nimport broken")
    env = folder.with_installed()
    modules = ("broken", "no.such.module", "json", "antigravity.nothing")
    assert folder.by_spare("script.py", modules=modules, env=env) == ["code 9", "up"]


def test_it_ends_with_its_agent_even_while_an_import_hangs(folder: _Folder) -> None:
    folder.installed("hangs", "import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(1e6)")
    kind = kind_of(folder.spec("spare", "neighbour.py", env=folder.with_installed()))
    assert kind is not None
    hanging = Template(kind, ("hangs",), folder.folder)
    eventually("the import", (folder.folder / "began").exists)
    hanging._channel.close()  # as when the agent dies: nothing holds its end any more
    assert hanging.child.wait() == -signal.SIGIO
    template = folder.template(folder.spec("spare", "neighbour.py"))
    idle = template.fork()
    assert idle is not None
    for each in (idle, template):
        each._channel.close()
        assert each.child.wait() == 0


_LEFT_BEHIND = {
    "nothing": "",
    "a file": "kept = open(__file__)",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()",
    "a socket": "import socket\nkept = socket.socket()",
    "a child": "import subprocess\nkept = subprocess.Popen(['sleep', '1000'])",
    "a dead child": "import os\nos.fork() or os._exit(0)",
}


@pytest.mark.parametrize("left", _LEFT_BEHIND)
def test_only_imports_that_leave_nothing_behind_are_shared(folder: _Folder, left: str) -> None:
    folder.installed("leaves", _LEFT_BEHIND[left])
    (folder.folder / "script.py").write_text("import leaves, os\nprint('up', os.environ['RANK'])\nos._exit(3)")
    env = folder.with_installed()
    spec = folder.spec("spare", "script.py", env=env)
    template = folder.template(spec, ("leaves",))
    try:
        assert template.ready == (left in ("nothing", "a file"))
        spare = template.spare or template.fork()
        assert spare is not None
        assert spare.become(spec)
        spare.close(kill=False)
        assert folder.outcome(spare.child, spec) == ["code 3", "up 3"]
    finally:
        template.close()


def test_forks_of_one_template_are_ranks_of_their_own(folder: _Folder) -> None:
    (folder.folder / "script.py").write_text(
        "import numpy, os, random, sys\n"
        "print(random.random(), numpy.random.rand(), os.getsid(0), os.environ['RANK'])\n"
        "sys.exit(int(os.environ['RANK']))"
    )
    one_thread = {"OPENBLAS_NUM_THREADS": "1"}
    template = folder.template(folder.spec("0", "script.py", env=one_thread), ("numpy", "random"))
    printed = []
    for rank in range(3):
        spare = template.fork()
        assert spare is not None
        spec = folder.spec(str(rank), "script.py", env={**one_thread, "RANK": str(rank)})
        assert spare.become(spec)
        spare.close(kill=False)
        code, words = folder.outcome(spare.child, spec)
        assert code == f"code {rank}"
        printed += words.split()
    template.close()
    assert len(set(printed)) == 12


def test_a_template_ends_when_a_file_that_it_imported_has_changed(folder: _Folder) -> None:
    folder.installed("named", "WHICH = 'old'")
    template = folder.template(folder.spec("spare", "neighbour.py", env=folder.with_installed()), ("named",))
    first = template.fork()
    assert first is not None
    first.close(kill=True)
    folder.change()
    assert template.fork() is None
    assert template.child.wait() == 0
    template.close()


def test_a_dead_spare_becomes_nothing(folder: _Folder) -> None:
    spec = folder.spec("spare", "neighbour.py")
    spare = folder.spare(spec)
    os.kill(spare.child.pid, signal.SIGKILL)
    spare.child.wait()
    assert not spare.become(spec)
    spare.close(kill=True)


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "train.sh"), ("python",), ("python", "-c", "1"), ("python", "-m"), ("python", "folder"),
        ("./train.py",), ("python", "-X", "dev", "train.py"), ("python", "train.py", "\0"),
    ],
)  # fmt: skip
def test_only_a_script_or_module_of_python_can_come_from_a_spare(argv: tuple[str, ...]) -> None:
    assert kind_of(LaunchSpec(argv=argv, tag="t")) is None
