"""Scripts written for wandb, unchanged but for the import: what they log is kept, media and files too."""

import argparse
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata.wandb as wandb
from strata.errors import InvalidArgument, Refused, StrataError
from strata.wandb.metric import StepRules
from strata.wandb.surface import SURFACE, markdown
from tests.support.offline import kept_batches, kept_media, kept_points

ROOT = Path(__file__).resolve().parents[3]
# wandb 0.31.0: __all__ of the module, and the public members of its Run.
WANDB = """__version__ init finish setup login save sweep controller agent config log summary Api Graph Image Plotly
Video Audio Table EvalTable Html box3d Object3D Molecule Histogram ArtifactTTL log_artifact use_artifact
log_model use_model link_model define_metric Error termsetup termlog termerror termwarn Artifact Settings
teardown watch unwatch plot plot_table restore Run run"""
WANDB_RUN = """\
settings dir sync_dir config config_static name notes tags id sweep_id path start_time starting_step resumed
step offline disabled group job_type project project_url log_code sweep_url url entity display to_html
pin_config_keys log write_logs save restore finish status define_metric watch unwatch link_artifact
use_artifact log_artifact upsert_artifact finish_artifact log_model use_model link_model alert mark_preempting"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    wandb.finish()


def texts(run: Any) -> list[Any]:
    return [text for batch in kept_batches(run._run) for text in batch.texts]


def test_the_quickstart_runs(folder: Path) -> None:
    """In a process of its own, as a user runs it."""
    script = """
        import random
        import strata.wandb as wandb

        wandb.login()
        run = wandb.init(
            entity="my-team", project="my-awesome-project",
            config={"learning_rate": 0.02, "architecture": "CNN", "epochs": 10},
        )
        offset = random.random() / 5
        for epoch in range(2, 10):
            acc = 1 - 2**-epoch - random.random() / epoch - offset
            loss = 2**-epoch + random.random() / epoch + offset
            run.log({"acc": acc, "loss": loss})
        run.finish()

        with wandb.init(project="second", config={"lr": 0.1}, tags=["a"], reinit=True) as run:
            wandb.config.update({"lr": 0.2, "new": 1})
            assert wandb.config.lr == run.config["lr"] == 0.2
            table = wandb.Table(columns=["a", "b"], data=[[1, 2]])
            wandb.log({"table": table, "hist": wandb.Histogram([1, 2, 3]), "text": "hello"})
            wandb.summary["best"] = 0.9
        assert wandb.run is None
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(list((folder / "data" / "offline").iterdir())) == 2


def test_steps_are_counted_as_wandb_does() -> None:
    run = wandb.init(project="p")
    wandb.log({"a": 1})
    wandb.log({"a": 2}, commit=False)
    wandb.log({"b": 3})
    wandb.log({"a": 4}, step=10)
    wandb.log({"b": 5}, step=10)
    wandb.log({"a": 6}, step=11, commit=True)
    wandb.log({"a": 7})
    assert run.step == 13
    run.finish()
    assert kept_points(run._run) == [
        ("a", 0, 1.0),
        ("a", 1, 2.0),
        ("b", 1, 3.0),
        ("a", 10, 4.0),
        ("b", 10, 5.0),
        ("a", 11, 6.0),
        ("a", 12, 7.0),
    ]


def test_a_metric_may_have_a_step_of_its_own() -> None:
    run = wandb.init()
    run.define_metric("epoch")
    run.define_metric("val/*", step_metric="epoch", summary="min")
    run.log({"epoch": 5, "val/loss": 0.5, "loss": 1.0})
    run.log({"val/loss": 0.4})
    run.finish()
    points = kept_points(run._run)
    assert sorted(points) == [("epoch", 0, 5.0), ("loss", 0, 1.0), ("val/loss", 5, 0.4), ("val/loss", 5, 0.5)]
    rules = StepRules()
    rules.define("x", "half")
    assert rules.split({"half": 0.5, "x": 1}, 3) == ({3: {"half": 0.5, "x": 1}}, ["half"])


def test_config_and_summary_are_attributes_and_items() -> None:
    run = wandb.init(config=argparse.Namespace(lr=0.1, seed=3), config_exclude_keys=["seed"])
    assert dict(wandb.config) == {"lr": 0.1}
    wandb.config.width = 64
    wandb.config["depth"] = 2
    wandb.config.setdefaults({"width": 1, "norm": "batch"})
    assert wandb.config.as_dict() == {"lr": 0.1, "width": 64, "depth": 2, "norm": "batch"}
    with pytest.raises(AttributeError, match="config has no 'nothing'; it has lr, width, depth, norm"):
        _ = wandb.config.nothing
    run.log({"loss": 0.5})
    wandb.summary.best = 0.4
    assert (wandb.summary["loss"], run.summary.best) == (0.5, 0.4)
    run.tags += ("late",)
    run.notes = "changed"
    run.finish()
    told = [info for batch in kept_batches(run._run) for info in batch.runs]
    assert json.loads(told[-1].config_json)["norm"] == "batch"
    assert (list(told[-1].tags), told[-1].notes) == (["late"], "changed")


def test_media_are_strata_s_own(folder: Path) -> None:
    run = wandb.init(id="media")
    (folder / "clip.mp4").write_bytes(b"video")
    run.log(
        {
            "image": wandb.Image(np.zeros((4, 5, 3)), caption="black"),
            "images": [wandb.Image(np.ones((2, 2))), wandb.Image(np.full((2, 2, 4), 255, np.uint8))],
            "video": wandb.Video(str(folder / "clip.mp4"), fps=4),
            "hist": wandb.Histogram([1.0, 2.0, np.nan], num_bins=2),
            "html": wandb.Html("<b>hi</b>"),
            "table": wandb.Table(columns=["x"], data=[["y"]]),
            "other": wandb.Plotly({"a": 1}),
        }
    )
    run.finish()
    kinds = {text.metric: text.kind for text in kept_media(run._run)}
    files = dict.fromkeys(("video", "other"), "file")
    same = {name: name for name in ("image", "html", "table")}
    assert kinds == {"images": "image", "hist": "histogram", **same, **files}
    assert run.status()["dropped"] == 0
    assert "image" not in dict(run.summary)


def test_what_cannot_be_kept_does_not_end_a_training(folder: Path) -> None:
    run = wandb.init(id="blocked")
    (folder / "data" / "files").mkdir(parents=True)
    (folder / "data" / "files" / "blocked").write_text("a file where the folder should be")
    run.log({"image": wandb.Image(np.zeros((0, 2))), "loss": 1.0})
    assert run.save(__file__) == []
    run.log(None)  # type: ignore[arg-type]
    run.finish()
    assert kept_points(run._run) == [("loss", 0, 1.0)]
    assert run.status()["dropped"] == 3


def test_files_and_artifacts_are_copied(folder: Path) -> None:
    run = wandb.init(id="files")
    (folder / "model").mkdir()
    (folder / "model" / "weights.bin").write_bytes(b"w")
    (folder / "train.py").write_text("print()")
    assert [Path(path).name for path in wandb.save("*.py")] == ["train.py"]
    artifact = wandb.Artifact("dataset", type="data", metadata={"rows": 3})
    artifact.add_file("train.py", name="code/train.py")
    artifact.add_reference("s3://bucket/x")
    run.log_artifact(artifact)
    run.log_model("model", "best")
    run.log_code(".")
    run.finish()
    below = {path.relative_to(run.dir).as_posix() for path in Path(run.dir).rglob("*") if path.is_file()}
    assert {"train.py", "artifacts/dataset/code/train.py", "artifacts/best/weights.bin"} <= below
    assert {text.metric for text in texts(run)} >= {"artifact/dataset", "artifact/best"}
    with pytest.raises(InvalidArgument, match="not inside the run's folder"):
        run._files.write("../../outside", b"")


def test_a_disabled_run_keeps_nothing(folder: Path) -> None:
    run = wandb.init(mode="disabled", config={"lr": 1})
    wandb.log({"loss": 1.0})
    run.watch(object())
    assert (run.config.lr, run.summary["loss"], wandb.config.lr) == (1, 1.0, 1)
    run.finish()
    assert not (folder / "data" / "offline").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"projct": "x"}, "wandb.init has no argument 'projct'; did you mean project?"),
        ({"mode": "sometimes"}, "mode is 'sometimes'"),
        ({"fork_from": "r?_step=3"}, "does not go on from the midst"),
        ({"config": "config.yaml"}, "config is the path"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(StrataError) as refused:
        wandb.init(**arguments)
    assert words in refused.value.message


def test_before_init_it_says_so() -> None:
    assert wandb.run is None
    for name in ("log", "config", "summary", "save"):
        with pytest.raises(InvalidArgument, match=f"there is no run for wandb.{name}"):
            getattr(wandb, name)


def test_the_surface_is_wandbs_and_ours() -> None:
    """Every public name of wandb has a row; what works or is noted is there, what is refused raises."""
    rows = {entry.name: entry for entry in SURFACE}
    assert len(rows) == len(SURFACE)
    run = wandb.init()
    for name in WANDB.split():
        how = rows[name].how if name in rows else "works" if name.startswith("__") else "missing"
        if how == "refused":
            with pytest.raises(Refused, match=f"strata.wandb has no {name}:"):
                getattr(wandb, name)
        else:
            assert how in ("works", "noted"), name
            assert hasattr(wandb, name), name
    for name in WANDB_RUN.split():
        entry = rows.get(f"Run.{name}") or rows.get(name)
        if entry is not None and entry.how == "refused":
            with pytest.raises(Refused):
                getattr(run, name)
        else:
            assert hasattr(run, name), name


def test_the_documented_table_is_the_code() -> None:
    assert markdown() in (ROOT / "docs" / "wandb.md").read_text(), (
        "paste strata.wandb.surface.markdown() into docs/wandb.md"
    )
