"""What a script says of itself before it runs: whether it saves its state, and whether in the default place."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from strata.errors import InvalidArgument

__all__ = ["check_saves", "saves_at_home"]

# What a script names that saves its state: by Strata, by hand, or by a trainer of another library.
_SAVING = frozenset(
    {
        "AsyncCheckpointWriter",
        "CheckpointManager",
        "StrataCallback",
        "Trainer",
        "async_save",
        "checkpoints",
        "elastic",
        "save",
        "save_async",
        "save_checkpoint",
        "save_state",
        "strata.training",
    }
)


def check_saves(script: str) -> None:
    """Refuses a Python script that no checkpoint is mentioned in, nor in the modules beside it that it imports: each
    change of its size would begin it anew. One that cannot be read is not judged here."""
    path = Path(script)
    if path.suffix == ".py" and not any(_names(tree) & _SAVING for tree in _sources(path)):
        raise InvalidArgument(
            f"{script} saves no checkpoint, so every change of its size would start it from the beginning",
            hint="Put its loop into `strata.training` (docs/training.md), or give a fixed number: --workers 4.",
        )


def saves_at_home(script: str) -> bool:
    """Whether a Python script, or a module beside it, is sure to ask for the default place of checkpoints. Where it
    names a place of its own, or another library saves, nobody knows before it runs."""
    path = Path(script)
    trees = list(_sources(path)) if path.suffix == ".py" else []
    ours = any(name.partition(".")[0] == "strata" for tree in trees for name in _imports(tree))
    return ours and any(_asks_for_home(tree) for tree in trees)


def _asks_for_home(tree: ast.Module) -> bool:
    """`….checkpoints()`, `strata.training(…)`, each without a path, whatever the script calls them."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(keywords=keywords) if any(key.arg in ("path", None) for key in keywords):
                continue
            case ast.Call(func=ast.Attribute(attr="checkpoints"), args=[]):
                return True
            case ast.Call(func=called) if _full_name(called, aliases) == "strata.training":
                return True
    return False


def _sources(script: Path) -> Iterator[ast.Module]:
    """The script, and what it imports from its own folder."""
    todo, seen = [script], {script}
    while todo:
        path = todo.pop()
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            tree = ast.parse("save")  # its own start will say what is wrong with it
        yield tree
        found = {near for name in _imports(tree) for near in _near(script.parent, name)}
        todo += found - seen
        seen |= found


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield from (base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names))


def _near(folder: Path, module: str) -> list[Path]:
    """The files of a module and of the packages around it, where they are in this folder."""
    parts = module.split(".")
    inside = [folder.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
    candidates = [file for path in inside for file in (path.with_name(f"{path.name}.py"), path / "__init__.py")]
    return [file for file in candidates if file.is_file()] if all(part.isidentifier() for part in parts) else []


def _names(tree: ast.Module) -> set[str]:
    aliases = _aliases(tree)
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                names.update((name, _full_name(node, aliases)))
            case ast.ImportFrom(module="strata", names=imported):
                names.update(word for alias in imported for word in (alias.name, f"strata.{alias.name}"))
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update(alias.name for alias in imported)
            case _:
                pass
    return names


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What a module calls strata and the things that it imports from there: `{"st": "strata", "loop":
    "strata.training"}`."""
    known = {"strata": "strata"}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                known |= {alias.asname: "strata" for alias in imported if alias.name == "strata" and alias.asname}
            case ast.ImportFrom(module="strata", names=imported):
                names = [("training", None) if alias.name == "*" else (alias.name, alias.asname) for alias in imported]
                known |= {other or name: f"strata.{name}" for name, other in names}
    return known


def _full_name(node: ast.AST, aliases: Mapping[str, str]) -> str:
    """`strata.training` for what means that in a module with these aliases; empty for what is not strata's."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name, "")
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if aliases.get(name) == "strata":
            return f"strata.{attribute}"
        case _:
            return ""
