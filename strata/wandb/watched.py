"""`wandb.watch`: histograms of gradients and parameters of a torch module, every `log_freq` backward passes."""

from collections.abc import Callable
from typing import Any, Literal

from strata.worker.media.histogram import Histogram

__all__ = ["Watch"]

What = Literal["gradients", "parameters", "all"]


class Watch:
    """Hooks on the parameters of a model: knows the methods of torch's modules and needs no import of it."""

    def __init__(self, model: Any, log: Callable[[dict[str, Any]], None], what: What, every: int) -> None:
        self._log = log
        self._what = what
        self._every = max(1, every)
        self._passes: dict[str, int] = {}
        self._handles = [
            parameter.register_hook(self._hook(name, parameter))
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _hook(self, name: str, parameter: Any) -> Callable[[Any], None]:
        def on_gradient(gradient: Any) -> None:
            count = self._passes[name] = self._passes.get(name, 0) + 1
            if count % self._every:
                return
            if self._what in ("gradients", "all"):
                self._log({f"gradients/{name}": Histogram(gradient)})
            if self._what in ("parameters", "all"):
                self._log({f"parameters/{name}": Histogram(parameter)})

        return on_gradient
