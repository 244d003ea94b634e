"""One run: epochs of steps, what is measured after each, and how a run that was stopped goes on."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.data import Loader
from unswayed.losses.base import what_it_wants
from unswayed.training.devices import on_first
from unswayed.training.folder import RunFolder
from unswayed.training.metrics import SUMS, Metrics, Tally, epoch_record
from unswayed.training.progress import Progress
from unswayed.training.recipes import Recipe, Schedule
from unswayed.training.stopping import Diverged, Stopped, asked_to_stop

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Where looking costs waiting (for a device, for other processes), the loop looks up every so many steps.
_LOOK = 10


def make_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """Return the recipe's optimiser for a model's parameters.

    >>> make_optimizer(Recipe(lr=0.5), nn.Linear(2, 2)).param_groups[0]["lr"]
    0.5
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the model has no parameters to train")
    common: dict[str, Any] = {
        "lr": recipe.lr,
        "weight_decay": recipe.weight_decay,
        "fused": all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in parameters),
    }
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(parameters, betas=(recipe.momentum, 0.999), **common)
    return torch.optim.SGD(parameters, momentum=recipe.momentum, nesterov=recipe.nesterov, **common)


class Loop:
    """The state of one run, on one of ``fabric``'s processes.

    ``labels`` (and ``clean``, where known) are those of the whole training split, ``tests`` and ``test_labels`` what to
    measure after each epoch, by name: ``val`` for examples held out, ``test``, and further test sets.
    """

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        loss: nn.Module,
        recipe: Recipe,
        train: Loader,
        labels: Tensor,
        clean: Tensor | None,
        tests: dict[str, Loader],
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
        # Losses with a memory want to know which examples they see, others the epoch or the learning rate.
        self.wants = what_it_wants(loss)
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
        self.model = fabric.setup_module(self.module)
        self.parameters = [p for p in self.module.parameters() if p.requires_grad]
        self.has_batch_norm = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in self.module.modules())
        self.train, self.tests = train, tests
        self.views = train.views
        if self.has_batch_norm and min(train.batch_size, train.size) < 2 * fabric.world_size:
            raise ValueError(
                f"batches of {min(train.batch_size, train.size)} are too small for a network with batch normalisation; "
                f"batch_size >= 2 for each process"
            )
        self.labels = labels.to(device)
        self.clean = None if clean is None else clean.to(device)
        self.test_labels = {name: values.to(device) for name, values in test_labels.items()}
        self.look = 1 if fabric.world_size == 1 and device.type == "cpu" else _LOOK
        self.epochs: list[dict[str, Any]] = []
        self.calibration: dict[str, Any] | None = None
        self.kept: dict[str, dict[str, Any]] = {}
        self.epoch = self.step = 0
        self.sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        # Minus the number of the first step whose loss, or gradient, was not finite.
        self.fine = torch.tensor(-math.inf, dtype=torch.float64, device=device)
        self.bad = self.fine
        self.logits = torch.empty(0)
        self.spent, self.saved = 0.0, time.monotonic()

    # Resume

    def state(self) -> dict[str, Any]:
        """Return all that the rest of the run depends on."""
        return {
            "model": self.module.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "loss": self.loss.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "sums": self.sums_of_all,
            "spent": self.spent,
            "epochs": self.epochs,
            "calibration": self.calibration,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        self.module.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.loss.load_state_dict(state["loss"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.step, self.spent = state["epoch"], state["step"], state["spent"]
        if self.fabric.is_global_zero:
            self.sums = state["sums"].to(self.sums.device)
        self.epochs, self.calibration = list(state["epochs"]), state["calibration"]

    def save(self) -> None:
        """Write the weights that are kept, then the checkpoint, then the table of epochs."""
        self._check_weights()
        if self.folder is not None:
            folder, state = self.folder, self.state()
            on_first(self.fabric, lambda: folder.write(self.epochs, self.kept, state))
            self.kept.clear()
        self.saved = time.monotonic()

    # Training

    def run(self) -> None:
        """Train to the end, or until asked to stop."""
        with asked_to_stop() as asked:
            while self.epoch < self.recipe.epochs:
                started = time.monotonic()
                self.module.train()
                for x, index in self.train.epoch(self.epoch, start=self.step):
                    self._step(x, index)
                    self.step += 1
                    self.progress.step(self.epoch, self.step, len(self.train))
                    if self.step % self.look and self.step != len(self.train):
                        continue
                    stop, due = self._look(asked)
                    if (stop or due) and self.step < len(self.train):
                        self.spent, started = self.spent + time.monotonic() - started, time.monotonic()
                        self.save()
                        if stop:
                            raise self._stopped(stop)
                self._end_epoch(started)
                stop, due = self._look(asked)
                if (stop or due) and self.epoch < self.recipe.epochs:
                    self.save()
                    if stop:
                        raise self._stopped(stop)
        self.kept["last"] = self._weights()
        self.save()

    def _stopped(self, number: int) -> Stopped:
        goes_on = "" if self.folder is None else "; the same command goes on from there"
        return Stopped(number, f" in epoch {self.epoch + 1}, after step {self.step} of {len(self.train)}{goes_on}")

    def _look(self, asked: list[int]) -> tuple[int, bool]:
        """Whether to stop (the signal, or 0) and whether a checkpoint is due, the same in all processes."""
        due = time.monotonic() - self.saved >= self.every
        wish = torch.stack(
            [self.bad, *(self.fine.new_full((), float(value)) for value in (asked[0] if asked else 0, due))]
        )
        if self.fabric.world_size > 1:
            torch.distributed.all_reduce(wish, torch.distributed.ReduceOp.MAX)
        bad, stop, save = wish.tolist()
        if bad > -math.inf:
            self._diverged(int(-bad))
        return int(stop), bool(save)

    def _step(self, x: Tensor, index: Tensor) -> None:
        lr = self.recipe.lr * self.schedule.factor(self.epoch, self.step, len(self.train), self.recipe.epochs)
        self.optimizer.param_groups[0]["lr"] = lr
        size = min(self.train.batch_size, self.train.size - self.step * self.train.batch_size)
        if self.has_batch_norm and size < 2 * self.fabric.world_size:
            # One example has no statistics; torch refuses to compute them.
            return
        # Dropout and the like draw from a stream of their own in each step, so that a run can go on from any of them.
        self._draw_from(seed_of(self.seed, self.epoch, self.step, self.fabric.global_rank))
        target = self.labels[index]
        if len(index) > int(self.has_batch_norm):
            logits = self.model(x)
            loss = self._loss(logits, target, index=index, lr=lr)
        elif self.fabric.world_size == 1:
            return
        else:
            # More processes than examples: this one takes part in the exchange of gradients with nothing to say.
            index, target = index[:0], target[:0]
            self.module.eval()
            logits = self.model(x.new_zeros((1, *x.shape[1:])))[:0]
            self.module.train()
            # A loss that remembers what all processes see waits for this one too.
            remembers = getattr(self.loss, "remembers", False)
            loss = self._loss(logits, target, index=index, lr=lr) if remembers else logits.sum()
        share, examples = self._share(target)
        loss = loss * share
        self._count(logits.detach()[: len(target)], target, index, loss.detach() * examples)
        self.fabric.backward(loss)
        if self.recipe.l1:
            pairs = [(p.detach(), p.grad) for p in self.parameters if p.grad is not None]
            values, slopes = [p for p, _ in pairs], [slope for _, slope in pairs]
            torch._foreach_add_(slopes, torch._foreach_sign(values), alpha=self.recipe.l1)
        if self.recipe.clip_norm:
            self._check(nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip_norm, foreach=True))
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update_parameters(self.module)

    def _loss(self, logits: Tensor, target: Tensor, **told: Any) -> Tensor:
        told["epoch"] = self.epoch
        views = logits if self.views == 1 else logits.reshape(self.views, len(target), *logits.shape[1:]).unbind(0)
        loss: Tensor = self.loss(views, target, **{name: told[name] for name in self.wants})
        return loss

    def _draw_from(self, seed: int) -> None:
        # torch.manual_seed also prepares for devices that are not there, which takes longer than a small step.
        torch.default_generator.manual_seed(seed)
        if self.fabric.device.type != "cpu":
            getattr(torch, self.fabric.device.type).manual_seed(seed)

    def _share(self, target: Tensor) -> tuple[Tensor | float, Tensor | float]:
        """Return the factor that makes the mean over processes of mean losses the mean over the whole batch.

        And how many examples of the batch there are for each process.
        """
        count, world = len(target), self.fabric.world_size
        if world == 1:
            return 1.0, float(count)
        weight = getattr(self.loss, "weight", None)
        mass = torch.tensor(float(count), device=target.device) if weight is None else weight[target].sum()
        total = torch.stack([mass, mass.new_tensor(count)])
        torch.distributed.all_reduce(total)
        return mass * world / total[0].clamp_min(torch.finfo(total.dtype).tiny), total[1] / world

    @torch.no_grad()
    def _count(self, logits: Tensor, target: Tensor, index: Tensor, loss: Tensor) -> None:
        """Add a batch, whose ``loss`` is a sum, to the sums of the epoch."""
        self.logits = logits
        self._check(loss)
        guess = logits.argmax(1)
        right = guess == target
        rows = [right]
        if self.clean is not None:
            clean = self.clean[index]
            wrong = clean != target
            rows += [wrong, wrong & right, guess == clean]
        counts = torch.stack(rows).sum(1)
        self.sums[0] += loss
        self.sums[1] += len(index)
        self.sums[2 : 2 + len(rows)] += counts

    def _check(self, value: Tensor) -> None:
        """Note this step if it is the first with a value that is not finite; asking now would wait for a GPU."""
        now = self.fine.new_full((), -float(self.epoch * len(self.train) + self.step))
        self.bad = torch.where(value.isfinite() | (self.bad > -math.inf), self.bad, now)

    def _diverged(self, at: int) -> None:
        """Raise the error of the step ``at``, whose batch is read once more: it is the same each time."""
        epoch, step = divmod(at, len(self.train))
        x = next(iter(self.train.epoch(epoch, start=step)))[0]
        where = f"the network's input is {range_of(x)}"
        if at == self.epoch * len(self.train) + self.step - 1:
            where += f", its output {range_of(self.logits)}"
        raise Diverged(
            f"the training loss, or its gradient, is not finite in epoch {epoch + 1}, step {step + 1} of "
            f"{len(self.train)} ({self.loss}), where {where}; {self._advice()}"
        )

    def _check_weights(self) -> None:
        """See that no weight is infinite or NaN, before a checkpoint becomes the last good one."""
        norms = torch.stack(torch._foreach_norm([p.detach() for p in self.parameters]))
        if not bool(norms.isfinite().all()):
            raise Diverged(
                f"weights of the network are not finite after epoch {self.epoch + 1}, step {self.step} ({self.loss}); "
                f"{self._advice()}"
            )

    def _advice(self) -> str:
        clip = "" if self.recipe.clip_norm else " or clip the gradient (--set clip_norm=5)"
        return f"lower the learning rate (--set lr={self.recipe.lr / 10:g}){clip}"

    # What is measured

    def _end_epoch(self, started: float) -> None:
        self._check_weights()
        measured = {name: self.evaluate(loader, self.test_labels[name]) for name, loader in self.tests.items()}
        if "test" in measured:
            self.calibration = asdict(measured["test"]) | {"bins": [list(row) for row in measured["test"].bins]}
        record = epoch_record(
            self.epoch + 1,
            self.optimizer.param_groups[0]["lr"],
            self.sums_of_all.tolist(),
            self.clean is not None,
            measured,
        )
        for kept, by in (("best", "test_accuracy"), ("chosen", "val_accuracy")):
            if by in record and record[by] > max((epoch[by] for epoch in self.epochs), default=-1):
                self.kept[kept] = self._weights()
        record["seconds"] = round(self.spent + time.monotonic() - started, 3)
        self.epochs.append(record)
        self.epoch, self.step, self.spent = self.epoch + 1, 0, 0.0
        self.sums.zero_()
        self.progress.epoch(record, self.recipe.epochs)

    def evaluate(self, loader: Loader, labels: Tensor) -> Metrics:
        """Measure the network on a split, each example exactly once however many processes there are.

        The network is the average of the weights, where there is one.
        """
        net = self.module if self.average is None else self.average
        if self.fabric.world_size > 1:
            # Statistics of batch normalisation are each process's own.
            for buffer in net.buffers():
                torch.distributed.broadcast(buffer, 0)
        net.eval()
        tally = Tally(self.fabric.device)
        with torch.no_grad():
            for x, index in loader.epoch(0):
                if len(index):
                    with self.fabric.autocast():
                        logits = net(x)
                    tally.add(logits, labels[index])
        net.train()
        if self.fabric.world_size > 1:
            torch.distributed.all_reduce(tally.sums)
        return tally.metrics()

    @property
    def sums_of_all(self) -> Tensor:
        """The sums of this epoch over all processes."""
        sums = self.sums.clone()
        if self.fabric.world_size > 1:
            torch.distributed.all_reduce(sums)
        return sums

    def _weights(self) -> dict[str, Tensor]:
        net = self.module if self.average is None else self.average.module
        return {name: value.detach().cpu().clone() for name, value in net.state_dict().items()}


def seed_of(*parts: int) -> int:
    """Return a seed for a generator that hangs on several numbers and on nothing else.

    >>> seed_of(0, 1) != seed_of(1, 0)
    True
    """
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


def range_of(x: Tensor) -> str:
    finite = x[x.isfinite()]
    if not len(finite):
        return "empty" if not x.numel() else "not finite anywhere"
    holes = x.numel() - finite.numel()
    return f"between {finite.min():.4g} and {finite.max():.4g}" + (
        f", and not finite in {holes} places" if holes else ""
    )
