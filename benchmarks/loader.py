"""How fast samples reach a training step, one process against one process, and how fast a job finds its place again.

Same rows for everybody: 40,000 samples of 128 int32 tokens and a label; peers read them in the format made for them.
"""

import io
import random
import tarfile
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours, peer
from benchmarks.measure import stopwatch
from strata.data import Columns, Loader, Manifest, build_manifest, peek

__all__ = ["BENCHMARK"]

TORCH = ("torch==2.13.0", "numpy==2.4.6", "pyarrow==26.0.1", "pillow==13.0.0")
SAMPLES, WIDTH, FILES = 40_000, 128, 20
IMAGES, SIDE = 1_000, 320
_OPENING = (
    "the result is of before the first batch waited only for the blocks of its own rows and did without pandas; it was "
    "not measured alone since."
)


def rates(samples: int, wall_s: float, cpu_s: float) -> dict[str, float]:
    return {"wall_s": wall_s, "cpu_s": cpu_s, "samples_per_s": samples / wall_s, "samples_per_cpu_s": samples / cpu_s}


def read_tokens(folder: Path, num_threads: int) -> dict[str, float]:
    """One shuffled epoch in batches of 256, manifest included."""
    with stopwatch() as watch:
        loader = Loader(str(folder / "*.parquet"), 256, num_threads=num_threads, cache_dir=folder / "cache")
        seen = sum(len(batch["label"]) for batch in loader)
    assert seen == SAMPLES
    return rates(seen, watch.wall_s, watch.cpu_s)


def copy_tokens(folder: Path) -> dict[str, float]:
    """Decode every row group, do nothing with it."""
    with stopwatch() as watch:
        for path in sorted(folder.glob("*.parquet")):
            pq.ParquetFile(path).read(use_threads=False)
    return rates(SAMPLES, watch.wall_s, watch.cpu_s)


def decode(batch: Columns) -> Columns:
    images = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in batch["image"]]
    return {"image": np.stack(images), "label": batch["label"]}


def read_images(folder: Path) -> dict[str, float]:
    with stopwatch() as watch:
        loader = Loader(
            str(folder / "*.parquet"),
            32,
            num_threads=2,
            transform=decode,
            cache_dir=folder / "cache",
            memory_bytes=64 << 20,
        )
        seen = sum(len(batch["image"]) for batch in loader)
    assert seen == IMAGES
    return rates(seen, watch.wall_s, watch.cpu_s)


def resume(manifest: Manifest, folder: Path) -> dict[str, float]:
    """One sample at a random position of a billion, from an open manifest; and what a plain row-group read costs."""
    position = random.randrange(manifest.num_samples - 1)
    with stopwatch() as watch:
        shown = peek(manifest, n=1, epoch=3, position=position)
    row = shown.rows[0]
    with stopwatch() as plain:
        pq.ParquetFile(folder / row["file"]).read_row_group(row["row"] // 10_000)
    return watch.values(over_a_row_group_s=max(watch.wall_s - plain.wall_s, 0.0), row_group_s=plain.wall_s)


def write_tokens(folder: Path) -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 50_000, (SAMPLES, WIDTH), dtype=np.int32)
    labels = rng.integers(0, 10, SAMPLES)
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "labels.npy", labels)
    rows = SAMPLES // FILES
    for number in range(FILES):
        part = slice(number * rows, (number + 1) * rows)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(tokens[part].ravel()), WIDTH)
        table = pa.table({"tokens": lists, "label": labels[part]})
        pq.write_table(table, folder / f"part-{number:03}.parquet", compression="zstd", row_group_size=1000)
        with tarfile.open(folder / f"part-{number:03}.tar", "w") as tar:
            for row in range(part.start, part.stop):
                _member(tar, f"{row:08}.tokens.npy", _npy(tokens[row]))
                _member(tar, f"{row:08}.cls", str(labels[row]).encode())


def _npy(array: "np.typing.NDArray[np.int32]") -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _member(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def write_images(folder: Path) -> None:
    """JPEGs of about 50 KB: smooth shapes with grain, as photographs are."""
    rng = np.random.default_rng(0)
    images = []
    for _ in range(50):
        small = Image.fromarray(rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)).resize((SIDE, SIDE))
        grain = np.clip(np.asarray(small) + rng.normal(0, 12, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(grain).save(out, "JPEG", quality=90)
        images.append(out.getvalue())
    for number in range(4):
        rows = IMAGES // 4
        table = pa.table({"image": [images[row % 50] for row in range(rows)], "label": np.arange(rows)})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=25)


def write_billion(folder: Path) -> Manifest:
    """A thousand names for one real file of a hundred row groups of 10,000 rows: a billion rows to look up."""
    real = folder / "real"
    real.mkdir()
    with pq.ParquetWriter(real / "data.parquet", pa.schema([("id", pa.int64())])) as writer:
        for group in range(100):
            writer.write_table(pa.table({"id": np.arange(group * 10_000, (group + 1) * 10_000)}), row_group_size=10_000)
    for number in range(1000):
        (folder / f"part-{number:04}.parquet").symlink_to(real / "data.parquet")
    return build_manifest(str(folder / "part-*.parquet"))


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-bench-data-")))


def _script(name: str, requires: tuple[str, ...], *args: object) -> Script:
    return Script(SCRIPTS / name, requires=requires, args=tuple(map(str, args)))


def tokens(stack: ExitStack) -> tuple[Variant, ...]:
    folder = _folder(stack)
    write_tokens(folder)
    return (
        ours(partial(read_tokens, folder, 0)),
        ours(partial(read_tokens, folder, 2), name="threads", label="Strata, 2 reading threads"),
        peer("torch", _script("loader_torch.py", TORCH, folder), label="torch DataLoader, parquet rows (peer)"),
        peer("mosaicml", _script("loader_mosaicml.py", ("mosaicml-streaming==0.13.0", "torch==2.13.0"), folder)),
        peer("webdataset", _script("loader_webdataset.py", ("webdataset==1.0.2", "torch==2.13.0"), folder)),
        peer("datasets", _script("loader_datasets.py", ("datasets==5.2.0", "torch==2.13.0"), folder)),
        floor("pyarrow decodes the same files", partial(copy_tokens, folder)),
    )


def images(stack: ExitStack) -> tuple[Variant, ...]:
    folder = _folder(stack)
    write_images(folder)
    return (
        ours(partial(read_images, folder), label="Strata, 2 threads"),
        peer("torch", _script("loader_torch_images.py", TORCH, folder), label="torch DataLoader, 2 workers (peer)"),
    )


def billion(stack: ExitStack) -> tuple[Variant, ...]:
    folder = _folder(stack)
    manifest = write_billion(folder)
    pattern = folder / "part-*.parquet"
    return (
        ours(partial(resume, manifest, folder), label="Strata, one sample"),
        ours(
            _script("loader_resume.py", (), "loader", pattern),
            name="batch",
            label="Strata, first batch of 256 from 64 lanes, in a new process",
        ),
        floor(
            "pyarrow reads the row groups in which such a batch lies", _script("loader_resume.py", (), "plain", pattern)
        ),
    )


BENCHMARK = Benchmark(
    name="loader",
    packages=("numpy", "pyarrow", "pillow"),
    cases=(
        Case(
            name="one shuffled epoch of token rows, one process, batches of 256",
            variants=tokens,
            targets=(
                Target(metric="samples_per_cpu_s", versus="mosaicml", at_least=10),
                Target(metric="samples_per_cpu_s", versus="torch", at_least=2.5),
                Target(metric="samples_per_cpu_s", versus="webdataset", at_least=10),
                Target(metric="samples_per_cpu_s", versus="datasets", at_least=2.5),
            ),
            repeats=5,
        ),
        Case(
            name="one shuffled epoch of JPEGs of 50 KB, decoded, two workers",
            variants=images,
            targets=(Target(metric="samples_per_s", versus="torch", at_least=1.0),),
            repeats=5,
        ),
        Case(
            name="resume at a random position of a billion samples",
            variants=billion,
            targets=(
                Target(metric="over_a_row_group_s", versus=None, at_most=0.05),
                Target(metric="state_bytes", of="batch", versus=None, at_most=1024),
                Target(
                    metric="wall_s",
                    of="batch",
                    versus=None,
                    at_most=0.2,
                    work="first batch after a resume, 64 lanes",
                    profile=_OPENING,
                ),
                Target(metric="wall_s", of="batch", versus="floor", at_most=2.0),
            ),
        ),
    ),
)
