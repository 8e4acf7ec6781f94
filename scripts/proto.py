"""Generates the gRPC stubs of proto/ into strata/protocol/generated. `--check` only tells whether they are current."""

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "strata/protocol/generated"


def generate(out: Path) -> None:
    """Staged under the package's path, so that the stubs import each other as strata.protocol.generated.*."""
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / PACKAGE
        staged.mkdir(parents=True)
        names = [path.name for path in sorted((ROOT / "proto").glob("*.proto"))]
        for name in names:
            text = (ROOT / "proto" / name).read_text()
            (staged / name).write_text(text.replace('import "', f'import "{PACKAGE}/'))
        outputs = [f"--{kind}_out={out}" for kind in ("python", "grpc_python")]
        outputs += [f"--{kind}_out=quiet:{out}" for kind in ("mypy", "mypy_grpc")]
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", *outputs]
        # protoc finds its mypy plugins on PATH, and they are installed beside this interpreter.
        env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run([*command, *(f"{PACKAGE}/{name}" for name in names)], check=True, env=env)
    (out / PACKAGE / "__init__.py").write_text("")


def drifted(fresh: Path, kept: Path) -> list[str]:
    """Names of the stubs that differ, are missing or are left over."""
    compared = filecmp.dircmp(fresh, kept, ignore=["__pycache__"])
    same_size = filecmp.cmpfiles(fresh, kept, compared.common_files, shallow=False)
    return sorted([*compared.left_only, *compared.right_only, *same_size[1], *same_size[2]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        stale = drifted(Path(folder) / PACKAGE, ROOT / PACKAGE)
    if stale:
        sys.stderr.write(f"stubs differ from proto/: {', '.join(stale)}; run `make proto`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
