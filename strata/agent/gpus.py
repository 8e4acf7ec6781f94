"""The GPUs of this host: which of them ranks may have, which are free, and what a rank is told of its own.

The coordinator counts cards and chooses none: here it is known which of them a process still holds.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from strata.agent.nvml import Nvml
from strata.agent.rank_files import RankKey, RankRecord
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["Gpus", "card_environment", "pick_cards", "visible_cards"]


def visible_cards(uuids: Sequence[str], outer: str | None) -> dict[int, str]:
    """The cards that CUDA shows to a process with this CUDA_VISIBLE_DEVICES (None: it has none), in its order: the
    index of each, and the word by which a list names it. As CUDA does, it stops at the first word that is no card. One
    that does not answer (it has no UUID) is nobody's."""
    if outer is None:
        return {index: str(index) for index, uuid in enumerate(uuids) if uuid}
    cards: dict[int, str] = {}
    for word in map(str.strip, outer.split(",")):
        index = _index_of(word, uuids)
        if index is None or index in cards:
            break
        cards[index] = word
    return {index: word for index, word in cards.items() if uuids[index]}


def _index_of(word: str, uuids: Sequence[str]) -> int | None:
    """A card by its index, or by the beginning of its UUID when that is no other's."""
    if word.isdecimal() and len(word) < 10:
        return int(word) if int(word) < len(uuids) else None
    named = [index for index, uuid in enumerate(uuids) if word.startswith("GPU-") and uuid.startswith(word)]
    return named[0] if len(named) == 1 else None


def pick_cards(
    cards: Iterable[int], number: int, key: RankKey, records: Mapping[RankKey, RankRecord], wanted: Collection[RankKey]
) -> list[int]:
    """This many cards for a rank that is to start, or none when too few are free. Whoever runs holds its own; so does
    a rank that ended early, until its attempt is no longer `wanted`. One that is replaced, or started again, has those
    of its former life where it can."""
    held = {card for other, record in records.items() if not record.ended or other in wanted for card in record.gpus}
    mine = {
        card
        for (task, _, rank, _), record in records.items()
        if (task, rank) == (key[0], key[2])
        for card in record.gpus
    }
    free = sorted((card for card in cards if card not in held), key=lambda card: card not in mine)
    return free[:number] if len(free) >= number else []


def card_environment(
    cards: Mapping[int, str], own: Sequence[int], neighbours: Sequence[Sequence[int]]
) -> dict[str, str]:
    """What a rank with cards is told; nothing for one without. `cards` has the word for each; `neighbours` are the
    cards of all ranks of its task on this host, by local rank.

    With one card each, it sees those of its neighbours, so that its own is `cuda:LOCAL_RANK`, as scripts that were
    written for torchrun take it. With several, it sees its own alone."""
    if not own:
        return {}
    seen = [card for each in neighbours for card in each] if len(own) == 1 else own
    return {"CUDA_VISIBLE_DEVICES": _words(cards, seen), "STRATA_GPUS": _words(cards, own)}


def _words(cards: Mapping[int, str], some: Iterable[int]) -> str:
    return ",".join(cards.get(card, str(card)) for card in some)


class Gpus:
    """The cards that ranks of this agent may have. `outer` is the agent's own CUDA_VISIBLE_DEVICES."""

    def __init__(self, nvml: Nvml, outer: str | None) -> None:
        self._nvml = nvml
        # By itself CUDA counts the quickest card first, and NVML by the bus. An outer list has an order of its own.
        self._order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if outer is None else {}
        self.cards: Mapping[int, str] = visible_cards(nvml.uuids(), outer)

    def usage(self, cards: Iterable[int] | None = None) -> list[pb.GpuUsage]:
        """Of these cards, or of all that ranks may have."""
        return [self._nvml.usage(card) for card in (self.cards if cards is None else cards)]

    def environment(self, own: Sequence[int], neighbours: Sequence[Sequence[int]]) -> dict[str, str]:
        told = card_environment(self.cards, own, neighbours)
        return {**self._order, **told} if told else {}
