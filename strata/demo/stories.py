"""The demo's text: very short stories, told by a grammar. Names and things come back within a story, so that a model
has something to remember; one block of one file is damaged, so that there is something to find.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from strata.data.config import LoaderOptions
from strata.data.loader import Loader
from strata.data.table.arrow import arrow

__all__ = ["ALPHABET", "DAMAGED", "ROW", "read_stories", "rows", "write_stories"]

ALPHABET = "\n !\"'(),-.?" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz"
ROW = 97
"""Characters of a row: a context of 96, and the one after it."""

DAMAGED = (5, 3)
"""The file and the block of it that hold no stories, but what a broken transfer left."""

_FILES = 8
_BLOCKS = 16
_BLOCK_ROWS = 160

_NAMES = [
    "Ada",
    "Bruno",
    "Clara",
    "Elsa",
    "Finn",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Leo",
    "Mila",
    "Nora",
    "Oskar",
    "Pia",
]
_KINDS = ["fox", "owl", "bear", "mouse", "hare", "otter", "crow", "badger", "snail", "goose"]
_MOODS = ["small", "lazy", "clever", "shy", "hungry", "brave", "sleepy", "cheerful"]
_PLACES = ["river", "hill", "old mill", "forest", "quiet lake", "market", "lighthouse", "stone bridge"]
_THINGS = ["lamp", "silver key", "drum", "paper boat", "blue feather", "map", "bell", "basket of apples", "coat"]
_SKIES = ["it rained", "the wind was cold", "the sun came out", "snow fell", "the moon was full"]
_FEELINGS = ["glad", "proud", "tired", "surprised", "very quiet"]
_TALES = """\
Once there was a {mood} {kind} named {name}. {name} lived near the {place}. One day {sky}, and {name} found a {thing}. \
"What a fine {thing}!" said {name}. {friend} came by and asked, "Is that your {thing}?" "It is ours now," said {name}, \
and both were {feeling}.
{name} the {kind} had lost a {thing}. "Have you seen my {thing}?" asked {name}. "Look near the {place}," said \
{friend}. So {name} went to the {place}. There it was, and {name} was {feeling}.
When {sky}, {name} and {friend} walked to the {place}. {friend} carried a {thing}. "Why do you need a {thing}?" asked \
{name}. "You will see," said {friend}. In the evening the {mood} {kind} understood, and was {feeling}.""".splitlines()


def rows(count: int, seed: int) -> list[str]:
    """So many rows of one long text, as the grammar tells it with this seed."""
    text = "\n".join(_tales(random.Random(seed), count * ROW))  # noqa: S311  # no secret
    return [text[start : start + ROW] for start in range(0, count * ROW, ROW)]


def _tales(chance: random.Random, letters: int) -> Iterator[str]:
    while letters > 0:
        name, friend = chance.sample(_NAMES, 2)
        tale = chance.choice(_TALES).format(
            name=name,
            friend=friend,
            kind=chance.choice(_KINDS),
            mood=chance.choice(_MOODS),
            place=chance.choice(_PLACES),
            thing=chance.choice(_THINGS),
            sky=chance.choice(_SKIES),
            feeling=chance.choice(_FEELINGS),
        )
        letters -= len(tale) + 1
        yield tale


def write_stories(folder: Path, seed: int = 2026) -> str:
    """Parquet files with a column `text`; returns their pattern. Files that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(_FILES):
        target = folder / f"stories-{number:02d}.parquet"
        if target.exists():
            continue
        text = rows(_BLOCKS * _BLOCK_ROWS, seed + number)
        if number == DAMAGED[0]:
            start, chance = DAMAGED[1] * _BLOCK_ROWS, random.Random(seed)  # noqa: S311  # no secret
            text[start : start + _BLOCK_ROWS] = ["".join(chance.choices(ALPHABET, k=ROW)) for _ in range(_BLOCK_ROWS)]
        staged = target.with_suffix(".part")
        arrow("parquet").write_table(arrow().table({"text": text}), staged, row_group_size=_BLOCK_ROWS)
        staged.replace(target)
    return str(folder.resolve() / "*.parquet")


def read_stories(dataset: str, batch_size: int, workers: int, **options: Unpack[LoaderOptions]) -> Loader:
    """One lane per worker, and no mixing of blocks: one rank meets the damaged block, for as long as it lasts."""
    options = {"num_lanes": workers, "window": 1, "tail": "drop", **options}
    return Loader(dataset, batch_size, **options)
