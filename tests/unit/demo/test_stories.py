"""The demo's text: readable, the same every time, and damaged in one block."""

from pathlib import Path

from strata.data.describe import describe_dataset, read_range
from strata.data.manifest import build_manifest
from strata.demo.stories import ALPHABET, DAMAGED, ROW, read_stories, rows, write_stories


def test_rows_are_one_text_of_the_alphabet_by_seed() -> None:
    told = rows(200, 3)
    assert {len(row) for row in told} == {ROW}
    assert set("".join(told)) <= set(ALPHABET)
    assert told == rows(200, 3) != rows(200, 4)
    assert "Once there was a " in "".join(told)


def test_the_files_hold_stories_but_for_one_block(tmp_path: Path) -> None:
    pattern = write_stories(tmp_path / "stories")
    spec = describe_dataset("stories", pattern, "parquet", shard_size=160)
    manifest = build_manifest(pattern, "parquet")
    strange = []
    for block in range(spec.total_samples // 160):
        text = "".join(read_range(manifest, 160 * block, 160 * (block + 1))["text"])
        if text.count("e") < len(text) / 20:  # every twelfth letter of the stories
            strange.append(divmod(block, 16))
    assert strange == [DAMAGED]
    before = {path: path.stat().st_mtime_ns for path in Path(pattern).parent.iterdir()}
    assert write_stories(tmp_path / "stories") == pattern
    assert {path: path.stat().st_mtime_ns for path in Path(pattern).parent.iterdir()} == before


def test_one_rank_meets_the_damaged_block_for_as_long_as_it_lasts(tmp_path: Path) -> None:
    pattern = write_stories(tmp_path / "stories")
    met: dict[int, list[int]] = {}
    for rank in range(4):
        for step, batch in enumerate(read_stories(pattern, 8, 4, rank=rank, world_size=4, seed=42)):
            text = "".join(batch["text"])
            if text.count("e") < len(text) / 20:
                met.setdefault(rank, []).append(step)
    ((_, steps),) = met.items()
    assert steps == list(range(steps[0], steps[0] + 160 // 8))
