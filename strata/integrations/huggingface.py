"""Hugging Face's Trainer on Strata: metrics, its checkpoint folders in Strata's verified store, a resume from the
newest good one, and a stop at a step that all ranks agree on.
"""

import re
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from strata.errors import InvalidConfig, MissingExtra
from strata.integrations.folders import FolderStore
from strata.worker.run import current_run

try:
    import torch.distributed as dist
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as error:
    raise MissingExtra("transformers", "huggingface") from error

__all__ = ["StrataCallback"]

_OF_A_RANK = re.compile(r"rng_state_(\d+)\.pth\Z")


class StrataCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where types are checked
    """`Trainer(args=args, callbacks=[kept := StrataCallback(args)], …).train(resume_from_checkpoint=kept.newest())`.

    What the Trainer saves in its output_dir is copied into `path` (default: the run's own folder or bucket). Its own
    folders need not outlive the host: save_total_limit=1 is enough.
    """

    def __init__(
        self, args: TrainingArguments, path: str | PathLike[str] | None = None, *, keep_count: int | None = 5
    ) -> None:
        if args.fsdp or args.deepspeed:
            raise InvalidConfig(
                "FSDP and DeepSpeed spread a checkpoint over the ranks' disks in ways of their own",
                hint="Use DDP, or save by strata.integrations.dcp.",
            )
        _ = args.device  # this is where the Trainer's ranks meet
        self._run = current_run()
        self._store = FolderStore(path, keep_count=keep_count)
        self._leaving = False

    def newest(self) -> str | None:
        """For `resume_from_checkpoint`: a folder with the newest good checkpoint, or None. Collective."""
        found = self._store.restore(_meet)
        return None if found is None else fspath(found[1])

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        if state.is_world_process_zero:
            to_dict = getattr(getattr(model, "config", None), "to_dict", None)
            shown = {"model": to_dict()} if to_dict is not None else {}
            self._run.update(config={"training": args.to_sanitized_dict(), **shown})

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if state.is_world_process_zero:  # they are of all ranks
            self._run.log(logs or {}, state.global_step)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._store.clear()
        percent = 100 * state.global_step / state.max_steps if state.max_steps > 0 else None
        self._run.progress(state.global_step, epoch=int(state.epoch or 0), percent=percent)
        if self._run.should_stop():
            self._leaving = control.should_save = control.should_training_stop = True

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self._leaving:  # the Trainer takes the end of the loop for the end of an epoch
            control.should_save = control.should_evaluate = False

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and self._is_mine(path)]
        self._store.save(folder, files, state.global_step, int(state.epoch or 0))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._store.close()

    def _is_mine(self, path: Path) -> bool:
        """Rank 0 writes all but the other ranks' random numbers, which may lie in the same folder."""
        found = _OF_A_RANK.match(path.name)
        return self._run.rank == (int(found[1]) if found else 0)


def _meet() -> None:
    if dist.is_initialized():
        dist.barrier()
