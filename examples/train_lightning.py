"""Lightning with Strata: alone, or on several workers. Kill any of them: the losses are those of an undisturbed run.

python examples/train_lightning.py
strata run --workers 2 examples/train_lightning.py --pause 0.05
"""

import argparse
import time
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

import strata
from strata.integrations.lightning import StrataCallback, StrataCheckpointIO, StrataEnvironment, StrataLogger


class Net(LightningModule):  # type: ignore[misc]  # lightning is not installed where types are checked
    def __init__(self, hidden: int = 32, lr: float = 0.05, pause: float = 0.0) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, hidden), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(hidden, 1)
        )

    def training_step(self, batch: Any, _: int) -> Any:
        x, y = batch
        time.sleep(self.hparams.pause)
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--checkpoints", help="where they lie; default: in the run's own folder")
    parser.add_argument("--run-id", help="default: a new one")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    seed_everything(1, verbose=False)
    x = torch.randn(1024, 16)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))

    strata.init(project="examples", name="lightning", run_id=options.run_id)
    ranks, store = StrataEnvironment(), StrataCheckpointIO(options.checkpoints)
    sampler = StatefulDistributedSampler(data, ranks.world_size(), ranks.global_rank(), seed=1)
    loader = StatefulDataLoader(data, batch_size=16, sampler=sampler)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=options.epochs,
        devices=ranks.num_devices,
        num_nodes=ranks.num_nodes,
        plugins=[ranks, store],
        logger=StrataLogger(),
        callbacks=[StrataCallback(), ModelCheckpoint(every_n_train_steps=10, save_top_k=3, monitor="step", mode="max")],
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Net(pause=options.pause), loader, ckpt_path=store.newest())
    strata.finish()


if __name__ == "__main__":
    main()
