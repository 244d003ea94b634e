"""One run: epochs of steps, what is measured after each, and how a run that was stopped goes on."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.data import Loader
from unswayed.losses.base import Loss
from unswayed.training.folder import RunFolder
from unswayed.training.metrics import Metrics, Tally
from unswayed.training.progress import Progress
from unswayed.training.recipe import Recipe, Schedule

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# What is summed over an epoch's training steps.
_SUMS = ("loss", "seen", "right", "wrong labels", "memorised", "right of clean")


class Diverged(RuntimeError):
    """The training loss is no longer a number."""


class Stopped(KeyboardInterrupt):
    """The run was asked to stop; ``signal`` says how. It has finished its step and written a checkpoint."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """Collect the first Ctrl-C (or SIGTERM) instead of dying from it; the second one works as ever."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _: Any) -> None:
        asked.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """Return the recipe's optimiser for a model's parameters."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the model has no parameters to train")
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in parameters)
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(
            parameters, recipe.lr, betas=(recipe.momentum, 0.999), weight_decay=recipe.weight_decay, fused=fused
        )
    return torch.optim.SGD(
        parameters, recipe.lr, momentum=recipe.momentum, nesterov=recipe.nesterov,
        weight_decay=recipe.weight_decay, fused=fused,
    )  # fmt: skip


class Loop:
    """The state of one run, on one of ``fabric``'s processes."""

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        loss: nn.Module,
        recipe: Recipe,
        train: Loader,
        tests: dict[str, Loader],
        labels: Tensor,
        clean: Tensor | None,
        test_labels: dict[str, Tensor],
        *,
        seed: int,
        folder: RunFolder | None,
        progress: Progress,
        checkpoint_every: float,
    ) -> None:
        self.fabric, self.recipe, self.seed, self.folder, self.progress = fabric, recipe, seed, folder, progress
        self.every = checkpoint_every
        self.schedule = Schedule.parse(recipe.schedule)
        device = fabric.device
        self.loss = loss.to(device)
        self.module = model.to(device)
        self.average = None
        if recipe.average:
            from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

            self.average = AveragedModel(
                self.module,
                multi_avg_fn=get_ema_multi_avg_fn(recipe.average),  # type: ignore[no-untyped-call]
                use_buffers=True,
            )
        self.optimizer = make_optimizer(recipe, self.module)
        self.model, self.stepper = fabric.setup(self.module, self.optimizer)
        self.parameters = [p for p in self.module.parameters() if p.requires_grad]
        self.train, self.tests = train, tests
        self.labels = labels.to(device)
        self.clean = None if clean is None else clean.to(device)
        self.test_labels = {name: values.to(device) for name, values in test_labels.items()}
        self.has_batch_norm = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in self.module.modules())
        self.epochs: list[dict[str, Any]] = []
        self.calibration: Metrics | None = None
        self.kept: dict[str, dict[str, Any]] = {}
        self.epoch = self.step = 0
        self.sums = torch.zeros(len(_SUMS), dtype=torch.float64, device=device)
        self.spent = 0.0

    # Resume

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the run depends on."""
        return {
            "model": self.module.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "sums": self.sums,
            "spent": self.spent,
            "epochs": self.epochs,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        self.module.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.step, self.spent = state["epoch"], state["step"], state["spent"]
        self.sums = state["sums"].to(self.sums.device)
        self.epochs = list(state["epochs"])

    def save(self) -> None:
        """Write the weights that are kept, then the checkpoint, then the table of epochs."""
        if self.folder is not None and self.fabric.is_global_zero:
            for name, weights in self.kept.items():
                self.folder.save(f"weights/{name}.pt", weights)
            self.kept.clear()
            self.folder.save("checkpoint.pt", self.state())
            self.folder.write_epochs(self.epochs)

    # Training

    def run(self) -> None:
        """Train to the end, or until asked to stop."""
        with _asked_to_stop() as asked:
            saved = time.monotonic()
            while self.epoch < self.recipe.epochs:
                started = time.monotonic()
                self.module.train()
                for x, index in self.train.epoch(self.epoch, start=self.step):
                    self._step(x, index)
                    self.step += 1
                    self.progress.step(self.epoch, self.step, len(self.train))
                    now = time.monotonic()
                    if self._together(bool(asked), now - saved >= self.every):
                        self.spent += now - started
                        started = saved = now
                        self.save()
                        if asked:
                            raise Stopped(asked[0])
                self._end_epoch(started)
                if self._together(bool(asked), time.monotonic() - saved >= self.every):
                    saved = time.monotonic()
                    self.save()
                    if asked and self.epoch < self.recipe.epochs:
                        raise Stopped(asked[0])
        self.kept["last"] = self._weights()
        self.save()

    def _together(self, asked: bool, due: bool) -> bool:
        """Whether to write a checkpoint now; where there are several processes, all at the same step."""
        if self.fabric.world_size == 1:
            return asked or due
        if self.step % 10 and self.step != len(self.train):
            return False
        wish = torch.tensor(float(asked or due), device=self.fabric.device)
        return bool(self.fabric.all_reduce(wish, reduce_op="sum") > 0)

    @property
    def lr(self) -> float:
        """The learning rate of the step to come."""
        return self.recipe.lr * self.schedule.factor(self.epoch, self.step, len(self.train), self.recipe.epochs)

    def _step(self, x: Tensor, index: Tensor) -> None:
        size = min(self.train.batch_size, self.train.size - self.step * self.train.batch_size)
        if size == 1 and self.has_batch_norm:
            # The statistics of one example are none; torch refuses to compute them.
            return
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr
        # Dropout and the like draw from a stream of their own in each step, so that a run can go on from any of them.
        torch.manual_seed(seed_of(self.seed, self.epoch, self.step, self.fabric.global_rank))
        target = self.labels[index]
        if len(index):
            logits = self.model(x)
            loss = self.loss(logits, target)
            self._count(logits.detach(), target, index, loss.detach())
        else:
            # More processes than examples: this one takes part in the exchange of gradients, with none of its own.
            loss = self.model(x.new_zeros((2, *x.shape[1:]))).sum() * 0
        if self.fabric.world_size > 1:
            loss = loss * self._share(target)
        self.fabric.backward(loss)
        if self.recipe.l1:
            with torch.no_grad():
                for p in self.parameters:
                    if p.grad is not None:
                        p.grad.add_(p.sign(), alpha=self.recipe.l1)
        if self.recipe.clip_norm:
            self.fabric.clip_gradients(
                self.model, self.stepper, max_norm=self.recipe.clip_norm, error_if_nonfinite=False
            )
        self.stepper.step()
        self.stepper.zero_grad()
        if self.average is not None:
            self.average.update_parameters(self.module)

    def _share(self, target: Tensor) -> Tensor:
        """Return the factor that makes the mean over processes of mean losses the mean over the whole batch."""
        weight = getattr(self.loss, "weight", None)
        mass = torch.tensor(float(len(target)), device=target.device) if weight is None else weight[target].sum()
        total = self.fabric.all_reduce(mass.clone(), reduce_op="sum")
        return mass * self.fabric.world_size / total

    def _count(self, logits: Tensor, target: Tensor, index: Tensor, loss: Tensor) -> None:
        guess = logits.argmax(1)
        right = (guess == target).sum()
        zero = right.new_zeros(())
        wrong = memorised = right_of_clean = zero
        if self.clean is not None:
            clean = self.clean[index]
            is_wrong = clean != target
            wrong, memorised = is_wrong.sum(), (is_wrong & (guess == target)).sum()
            right_of_clean = (guess == clean).sum()
        n = len(index)
        counts = torch.stack([zero + n, right, wrong, memorised, right_of_clean]).double()
        self.sums[0] += loss.double() * n
        self.sums[1:] += counts

    # What is measured

    def _end_epoch(self, started: float) -> None:
        sums = self.sums
        if self.fabric.world_size > 1:
            sums = self.fabric.all_reduce(sums, reduce_op="sum")  # type: ignore[assignment]
        loss, seen, right, wrong, memorised, right_of_clean = sums.tolist()
        record: dict[str, Any] = {
            "epoch": self.epoch + 1,
            "lr": self.optimizer.param_groups[0]["lr"],
            "train_loss": loss / seen,
            "train_accuracy": right / seen,
            "train_clean_accuracy": None if self.clean is None else right_of_clean / seen,
            "memorised": memorised / wrong if wrong else None,
        }
        if not math.isfinite(loss):
            raise Diverged(
                f"the training loss is {loss / seen} in epoch {self.epoch + 1}; lower the learning rate "
                f"(--set lr={self.recipe.lr / 10:g}) or clip the gradient (--set clip_norm=5)"
            )
        for name, loader in self.tests.items():
            measured = self.evaluate(loader, self.test_labels[name])
            record |= {f"{name}_accuracy": measured.accuracy}
            if name != "val":
                record |= {f"{name}_nll": measured.nll, f"{name}_ece": measured.ece}
            if name == "test":
                self.calibration = measured
        self.spent += time.monotonic() - started
        record["seconds"] = round(self.spent, 3)
        for kept, by in (("best", "test_accuracy"), ("chosen", "val_accuracy")):
            if by in record and record[by] > max((epoch[by] for epoch in self.epochs), default=-1):
                self.kept[kept] = self._weights()
        self.epochs.append(record)
        self.epoch, self.step, self.spent = self.epoch + 1, 0, 0.0
        self.sums.zero_()
        self.progress.epoch(record, self.recipe.epochs)

    @property
    def evaluated(self) -> nn.Module:
        """The network whose accuracy is measured: the average of the weights, where there is one."""
        return self.module if self.average is None else self.average

    def evaluate(self, loader: Loader, labels: Tensor) -> Metrics:
        """Measure the network on a split, each example exactly once however many processes there are."""
        net = self.evaluated
        if self.fabric.world_size > 1:
            for buffer in net.buffers():
                torch.distributed.broadcast(buffer, 0)
        net.eval()
        tally = Tally(self.fabric.device)
        with torch.no_grad(), self.fabric.autocast():
            for x, index in loader.epoch(0):
                if len(index):
                    tally.add(net(x), labels[index])
        net.train()
        if self.fabric.world_size > 1:
            tally.nll = self.fabric.all_reduce(tally.nll, reduce_op="sum")  # type: ignore[assignment]
            tally.bins = self.fabric.all_reduce(tally.bins, reduce_op="sum")  # type: ignore[assignment]
        return tally.metrics()

    def _weights(self) -> dict[str, Tensor]:
        net = self.module if self.average is None else self.average.module
        return {name: value.detach().cpu().clone() for name, value in net.state_dict().items()}


def seed_of(*parts: int) -> int:
    """Return a seed for a generator that hangs on several numbers and on nothing else."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)
