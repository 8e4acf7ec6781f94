"""Several coordinators of which one leads: callers ask one after the other, and stay with the one that answers."""

from collections.abc import Callable
from typing import Any

__all__ = ["Leaders", "Roaming", "split_addresses"]


def split_addresses(addresses: str) -> tuple[str, ...]:
    """Each of `a:50051,b:50051`."""
    return tuple(address.strip() for address in addresses.split(","))


class Leaders:
    """The addresses of COORDINATOR_ADDR, and which of them is asked now."""

    def __init__(self, addresses: str) -> None:
        self.addresses = split_addresses(addresses)
        self.several = len(self.addresses) > 1
        self.current = self.addresses[0]

    def leave(self, address: str) -> None:
        """It does not answer, or does not lead: the next one is asked, unless another thread has moved on already."""
        if address == self.current:
            place = self.addresses.index(address) + 1
            self.current = self.addresses[place % len(self.addresses)]


class Roaming:
    """A channel as generated stubs use it: each call goes by the channel that is the right one at that moment."""

    def __init__(self, current: Callable[[], Any]) -> None:
        self._current = current

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """`unary_unary` and its like."""

        def build(path: str, **options: Any) -> Callable[..., Any]:
            made: dict[int, Any] = {}

            def call(request: Any, **about: Any) -> Any:
                channel = self._current()
                method = made.get(id(channel))
                if method is None:
                    method = made[id(channel)] = getattr(channel, kind)(path, **options)
                return method(request, **about)

            return call

        return build
