"""Models, optimizers and the like as parts of a state: objects with `state_dict` and `load_state_dict`. Tensors that
are spread over processes are loaded as this process's block, at any number of ranks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from strata.checkpoint import tensors
from strata.checkpoint.slices import Block
from strata.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument

__all__ = ["ObjectPart", "find_part", "is_stateful", "object_part", "objects_in"]


def is_stateful(part: Any) -> bool:
    return callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None))


class ObjectPart:
    """A model, or any other object whose state is a dict by name."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def state_dict(self) -> Any:
        return self.target.state_dict()

    def load_state_dict(self, state: Any) -> None:
        if isinstance(state, Mapping):
            mine = self._mine()
            state = {name: tensors.placed_like(mine.get(name), value) for name, value in state.items()}
        self.target.load_state_dict(state)

    def block_of(self, array: str, shape: tuple[int, ...]) -> Block | None:
        return _block_in(array, self._mine().get(array), shape)

    def fits(self, node: Mapping[str, Any]) -> bool:
        """Whether a part of a saved state can be the state of this object."""
        return bool(node) and node.keys() == self._mine().keys()

    def _mine(self) -> Mapping[str, Any]:
        state = self.target.state_dict()
        return state if isinstance(state, Mapping) else {}


class OptimizerPart(ObjectPart):
    """What it keeps per parameter lies where the parameter lies."""

    def load_state_dict(self, state: Any) -> None:
        parameters = self._parameters()
        placed = {
            number: {name: tensors.placed_like(parameters[number], value) for name, value in kept.items()}
            for number, kept in state["state"].items()
        }
        self.target.load_state_dict({**state, "state": placed})

    def block_of(self, array: str, shape: tuple[int, ...]) -> Block | None:
        number = array.split("/")[1]  # state/NUMBER/NAME
        return _block_in(array, self._parameters()[int(number)], shape)

    def fits(self, node: Mapping[str, Any]) -> bool:
        if node.keys() != {"state", "param_groups"} or not isinstance(node["param_groups"], list):
            return False
        groups = [group.get("params") for group in node["param_groups"] if isinstance(group, Mapping)]
        return [len(each or ()) for each in groups] == [len(group["params"]) for group in self.target.param_groups]

    def _parameters(self) -> list[Any]:
        """By the numbers that state_dict gives them."""
        return [parameter for group in self.target.param_groups for parameter in group["params"]]


def object_part(part: Any) -> ObjectPart:
    """Without the wrappers of DDP and torch.compile, which put a prefix before every name."""
    while True:
        if type(part).__name__ == "DistributedDataParallel":
            part = part.module
        elif hasattr(part, "_orig_mod"):
            part = part._orig_mod
        else:
            break
    return OptimizerPart(part) if isinstance(getattr(part, "param_groups", None), list) else ObjectPart(part)


def objects_in(into: Any) -> dict[str, ObjectPart] | None:
    """The objects to fill, by name; None for a dict of arrays, or nothing."""
    if is_stateful(into):
        return {"": object_part(into)}
    if isinstance(into, Mapping) and into and all(is_stateful(each) for each in into.values()):
        return {name: object_part(each) for name, each in into.items()}
    if into is not None and not isinstance(into, Mapping):
        raise InvalidArgument(
            f"into is a {type(into).__module__}.{type(into).__qualname__}, which cannot be filled",
            hint="Give a model or an optimizer, a dict of such, or a dict of arrays by their names.",
        )
    return None


def find_part(tree: Any, name: str, part: ObjectPart) -> tuple[str, Any]:
    """The path and the node of a saved tree that is the state of an object: by its name, else the only one that has its
    names. Raises when there is none, or more than one."""
    for prefix in ("", "parts/"):
        holder = tree.get("parts") if prefix and isinstance(tree, dict) else tree
        if name and isinstance(holder, dict) and name in holder:
            return f"{prefix}{name}", holder[name]
    kind = f"{type(part.target).__module__}.{type(part.target).__qualname__}"
    found = [] if name else [(path, node) for path, node in _nodes(tree, "") if part.fits(node)]
    if not found:
        raise CheckpointNotFound(
            f"the checkpoint has no {f'part named {name!r}' if name else f'state with the names of a {kind}'}",
            hint="`strata checkpoints show` lists what it has; load() without into= gives all of it.",
        )
    if len(found) > 1:
        raise InvalidArgument(
            f"several parts of the checkpoint could be the state of a {kind}: {[path for path, _ in found]}",
            hint='Name the one: load(into={"model": model}).',
        )
    return found[0]


def _nodes(tree: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(tree, dict) and "$array" not in tree:
        yield path, tree
        for key, item in tree.items():
            yield from _nodes(item, f"{path}/{key}" if path else str(key))


def _block_in(array: str, tensor: Any, shape: tuple[int, ...]) -> Block:
    """The block of a saved array that belongs to this process's part of a tensor."""
    if not tensors.is_spread(tensor):
        return Block(offset=(0,) * len(shape), shape=shape)  # it is whole here now
    if tuple(tensor.shape) != shape:
        raise CorruptCheckpoint(f"{array} has the shape {shape}, the one to load it for {tuple(tensor.shape)}")
    local, offset = tensors.part_of(array, tensor)
    assert offset is not None  # else it would not be spread
    return Block(offset=offset, shape=tuple(local.shape))
