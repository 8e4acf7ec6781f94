"""What of wandb's public surface works here, what is taken otherwise, and what is refused: the table of docs/wandb.md.
It is compared with wandb 0.31.0 and with this package by a test.
"""

from typing import Literal, NamedTuple

from strata.errors import Refused, StrataError

__all__ = ["NOTED_ARGUMENTS", "SURFACE", "Entry", "markdown", "refusal"]

How = Literal["works", "noted", "refused"]


class Entry(NamedTuple):
    name: str
    how: How
    words: str


_FILES = "kept as a file of the run; its page gives it to download"
_SERVICE = "a service of W&B's own"
_NO_VERSIONS = "log_artifact keeps the files of one process; there are no distributed versions"
_TEMPLATES = "W&B's chart templates; log the numbers, or a Table"

SURFACE: tuple[Entry, ...] = (
    Entry(
        "init", "works", "project, name, id, config, tags, group, job_type, notes, resume, mode, reinit; WANDB_* too"
    ),
    Entry("finish", "works", "says how the run ended and delivers what is left"),
    Entry(
        "log", "works", "numbers, nested dicts, texts, lists, media; steps as in wandb; sent at once, never held back"
    ),
    Entry("config", "works", "attributes, items, update, setdefaults, as_dict; argparse and dataclasses"),
    Entry("summary", "works", "attributes and items; last, min and max of every metric are there by themselves"),
    Entry(
        "define_metric", "works", "step_metric where it is a whole number; `summary`: last, min and max are always kept"
    ),
    Entry("run", "works", "the run of this process, or None"),
    Entry(
        "Run",
        "works",
        "id, name, url, path, dir, project, group, job_type, tags, notes, step, resumed, config, summary",
    ),
    Entry("watch", "works", "histograms of gradients and parameters of a torch module"),
    Entry("unwatch", "works", "takes the hooks off"),
    Entry("Image", "works", "shown with a slider over steps (docs/media.md); boxes and masks are kept and not drawn"),
    Entry("Histogram", "works", "drawn over steps"),
    Entry("Table", "works", "sortable, with pictures in cells; the first 10,000 rows"),
    Entry("Html", "works", "shown in a frame that reaches nothing else"),
    Entry("EvalTable", "works", "a Table"),
    Entry("Video", "noted", _FILES),
    Entry("Audio", "noted", _FILES),
    Entry("Object3D", "noted", _FILES),
    Entry("box3d", "noted", _FILES),
    Entry("Molecule", "noted", _FILES),
    Entry("Plotly", "noted", _FILES),
    Entry("Graph", "noted", _FILES),
    Entry("save", "noted", "files are copied into the run's folder once, as they are now"),
    Entry("log_artifact", "noted", "its files are copied into the run's folder; there are no versions"),
    Entry("log_model", "noted", "an artifact of type model; strata.CheckpointManager saves and resumes whole states"),
    Entry("Artifact", "noted", "add_file, add_dir, add, add_reference"),
    Entry("Run.alert", "noted", "a line of that level in the run's log"),
    Entry("Run.log_code", "works", "copies Python files into the run's folder"),
    Entry("Run.write_logs", "works", "a line in the run's log"),
    Entry("Run.status", "noted", "what was dropped, and whether an observatory is known"),
    Entry("Run.upsert_artifact", "refused", _NO_VERSIONS),
    Entry("Run.finish_artifact", "refused", _NO_VERSIONS),
    Entry("Run.mark_preempting", "noted", "a task knows by itself when its host goes away (docs/elastic.md)"),
    Entry("Run.display", "refused", "a page in a notebook; open run.url"),
    Entry("Run.to_html", "refused", "a page in a notebook; open run.url"),
    Entry("Run.pin_config_keys", "refused", "choose columns on the runs page; a link keeps them"),
    Entry("Run.link_artifact", "refused", f"{_SERVICE}: the registry"),
    Entry("Run.sync_dir", "refused", "points lie in the data folder until they are sent (`strata sync`)"),
    Entry("Run.settings", "refused", "`strata config show` prints the settings"),
    Entry("Run.config_static", "refused", "read run.config.as_dict()"),
    Entry("Run.project_url", "refused", "all runs are on one page; filter by project:name"),
    Entry("Run.sweep_url", "refused", f"{_SERVICE}: sweeps"),
    Entry("login", "noted", "there is no account; returns True"),
    Entry("setup", "noted", "nothing to set up"),
    Entry("teardown", "works", "finish"),
    Entry("Settings", "noted", "taken and not used; Strata's settings are in docs/configuration.md"),
    Entry("Error", "works", "strata.StrataError"),
    Entry("termlog", "works", "a line on stderr"),
    Entry("termwarn", "works", "a line on stderr"),
    Entry("termerror", "works", "a line on stderr"),
    Entry("termsetup", "noted", "nothing to set up"),
    Entry("plot", "refused", _TEMPLATES),
    Entry("plot_table", "refused", _TEMPLATES),
    Entry("Api", "refused", "use strata.Api() (docs/asking.md)"),
    Entry("sweep", "refused", f"{_SERVICE}: sweeps; submit a task per config with `strata run`"),
    Entry("controller", "refused", f"{_SERVICE}: sweeps"),
    Entry("agent", "refused", f"{_SERVICE}: sweeps"),
    Entry("use_artifact", "refused", "there is no artifact store; read the file by its path"),
    Entry("use_model", "refused", "there is no model store; strata.CheckpointManager loads checkpoints"),
    Entry("link_model", "refused", f"{_SERVICE}: the registry"),
    Entry("restore", "refused", "files of a run lie in its folder: run.dir"),
    Entry("ArtifactTTL", "refused", "files of a run stay until somebody removes them"),
)
_BY_NAME = {entry.name: entry for entry in SURFACE}

# Arguments of init that change nothing here.
NOTED_ARGUMENTS = {
    "entity": "there are no accounts; the token of the cluster says who you are",
    "dir": "files are kept in Strata's data folder",
    "settings": "Strata's settings are in docs/configuration.md",
    "save_code": "run.log_code() copies the code",
    "tensorboard": "`strata import` reads TensorBoard's files",
    "sync_tensorboard": "`strata import` reads TensorBoard's files",
    "monitor_gym": "videos are not recorded",
    "allow_val_change": "config values may always change",
    "force": "there is no account to force",
    "anonymous": "there are no accounts",
}


def refusal(name: str) -> StrataError | None:
    """The error for a name that is refused, None for one that wandb does not have."""
    entry = _BY_NAME.get(name) or _BY_NAME.get(name.removeprefix("Run."))
    if entry is None or entry.how != "refused":
        return None
    return Refused(f"strata.wandb has no {name}: {entry.words}", hint="docs/wandb.md lists what works.")


def markdown() -> str:
    """The table as docs/wandb.md has it."""
    rows = [f"| `{entry.name}` | {entry.how} | {entry.words} |" for entry in SURFACE]
    return "\n".join(["| wandb | here | |", "|---|---|---|", *rows])
