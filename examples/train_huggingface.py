"""Hugging Face's Trainer with Strata: a tiny GPT-2 made from its config, alone or on several workers. Kill any of them:
the losses are those of an undisturbed run.

    python examples/train_huggingface.py
    strata run --workers 2 examples/train_huggingface.py --pause 0.05
"""

import argparse
import tempfile
import time
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import strata
from strata.integrations.huggingface import StrataCallback


class Counting(Dataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """Numbers that go up by the same step, modulo 32."""

    def __init__(self, pause: float) -> None:
        self.pause = pause

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> dict[str, Any]:
        time.sleep(self.pause / 8)
        tokens = (index + torch.arange(16) * (1 + index % 3)) % 32
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoints", help="where they lie; default: in the run's own folder")
    parser.add_argument("--run-id", help="default: a new one")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    strata.init(project="examples", name="huggingface", run_id=options.run_id)
    set_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=8,
            learning_rate=3e-3,
            logging_steps=1,
            save_steps=10,
            save_total_limit=1,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        kept = StrataCallback(args, options.checkpoints)
        trainer = Trainer(model=model, args=args, train_dataset=Counting(options.pause), callbacks=[kept])
        trainer.train(resume_from_checkpoint=kept.newest())
    strata.finish()


if __name__ == "__main__":
    main()
