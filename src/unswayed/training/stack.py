"""The computation of a stack: networks as one, and what is measured of each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from unswayed.data import Data, Loader, Split, augmentation
from unswayed.losses.together import Together
from unswayed.training.loop import make_optimizer, range_of, seed_of
from unswayed.training.metrics import Metrics, Tally, bin_sums, epoch_record
from unswayed.training.precision import resolve
from unswayed.training.progress import Progress
from unswayed.training.recipes import Recipe, Schedule
from unswayed.training.run import ORDER, scale
from unswayed.training.stopping import Diverged, Stopped, asked_to_stop

if TYPE_CHECKING:
    from unswayed.training.stacked import Run

# Examples that are measured at a time.
_CHUNK = 512


@dataclass(frozen=True, eq=False)
class Features:
    """Inputs as rows: of the training split, and of each test split with its labels."""

    train: Tensor
    tests: dict[str, tuple[Tensor, Tensor]]

    @classmethod
    def of(cls, data: Data, device: torch.device) -> Features:
        mean, std = scale(data)
        plain = augmentation("none", mean=mean, std=std)

        def rows(split: Split) -> Tensor:
            if split.inputs is None:
                raise ValueError(f"{data.name} is read from disk while training; a stack needs data in memory")
            if split.inputs.dim() == 2:
                return split.inputs.to(device)
            batches = Loader(split, 4096, shuffle=False, augment=plain, device=device).epoch(0)
            return torch.cat([x.flatten(1) for x, _ in batches])

        tests = {k: (rows(split), torch.tensor(split.labels, device=device)) for k, split in data.tests.items()}
        return cls(rows(data.train), tests)

    def to(self, dtype: torch.dtype) -> Features:
        return Features(self.train.to(dtype), {k: (x.to(dtype), labels) for k, (x, labels) in self.tests.items()})


class Stack(nn.Module):
    """``R`` networks as one. Weights are ``(R, outputs, inputs)``, and what flows is ``(R, features, batch)``.

    With the batch as the last axis, softmax and reductions over few classes run along memory. ``x`` is one batch for
    all runs ``(N, d)``, or one for each ``(R, N, d)``; the matrix products are told apart by :func:`torch.matmul`.
    """

    def __init__(self, runs: list[Run], features: Features, device: torch.device) -> None:
        super().__init__()
        with torch.device(device):
            self.loss = Together([run.loss for run in runs])
        self.runs = runs = [runs[place] for place in self.loss.order]
        self.recipe: Recipe = runs[0].experiment.recipe
        self.schedule = Schedule.parse(self.recipe.schedule)
        self.precision = resolve(self.recipe.precision, runs[0].network, device)
        self.dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        self.features = features.to(self.dtype)
        self.device = device
        columns = list(zip(*(run.layers() for run in runs)))
        self.weights = nn.ParameterList(torch.stack([layer.weight.detach() for layer in c]) for c in columns)
        self.biases = nn.ParameterList(torch.stack([layer.bias.detach() for layer in c]) for c in columns)
        self.to(device)
        self.trained: list[Tensor] = list(self.parameters())
        self.grads = [torch.zeros_like(parameter) for parameter in self.trained]
        for parameter, grad in zip(self.trained, self.grads):
            parameter.grad = grad
        self.optimizer = make_optimizer(self.recipe, self)
        self.average = [p.detach().clone() for p in self.trained] if self.recipe.average else None
        self.steps = 0

        self.labels = torch.stack([torch.tensor(run.noisy.labels) for run in runs]).to(device)
        clean = [run.noisy.clean for run in runs]
        self.known = [c is not None for c in clean]
        given = [run.noisy.labels if c is None else c for run, c in zip(runs, clean)]
        self.clean = torch.stack([torch.tensor(c) for c in given]).to(device)
        stand_in = Split(runs[0].noisy.labels, torch.zeros(len(self.features.train), 1))
        loaders = {
            run.order: Loader(stand_in, len(stand_in), rows=run.rows, seed=seed_of(run.experiment.order, ORDER))
            for run in runs
        }
        self.loaders = list(loaders.values()) if len(loaders) == 1 else [loaders[run.order] for run in runs]

    # The networks

    def _forward(self, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
        """Return what each layer sees, and the logits ``(R, K, N)``."""
        seen = [x.mT]
        for depth, (weight, bias) in enumerate(zip(weights, biases)):
            out = torch.matmul(weight, seen[-1]).add_(bias.unsqueeze(2))
            seen.append(out.relu_() if depth + 1 < len(weights) else out)
        return seen

    def _backward(self, grad: Tensor, seen: list[Tensor], weights: Sequence[Tensor]) -> None:
        """Set the gradients of all weights from that of the logits."""
        for depth in reversed(range(len(weights))):
            weight, bias = self.grads[depth], self.grads[depth + len(weights)]
            torch.sum(grad, 2, dtype=bias.dtype, out=bias)
            before = seen[depth].mT
            if grad.dtype != weight.dtype:
                weight.copy_(torch.matmul(grad, before))
            elif before.dim() == 3:
                torch.bmm(grad, before, out=weight)
            else:
                torch.mm(grad.flatten(0, 1), before, out=weight.flatten(0, 1))
            if depth:
                grad = torch.ops.aten.threshold_backward(torch.bmm(weights[depth].mT, grad), seen[depth], 0)

    def _for_products(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return weights and biases in the precision of the products."""
        return [w.detach().to(self.dtype) for w in self.weights], [b.detach().to(self.dtype) for b in self.biases]

    # Training

    def run(self, progress: Progress) -> None:
        recipe = self.recipe
        progress.start(f"{len(self.runs)} runs of {self.runs[0].experiment.model}", recipe.epochs, 0)
        try:
            with asked_to_stop() as asked:
                for epoch in range(recipe.epochs):
                    self._epoch(epoch, asked, progress)
                    if not any(run.running for run in self.runs):
                        return
        finally:
            progress.stop()
        self._write_weights()
        computed = {"device": str(self.device), "devices": 1, "precision": self.precision, "stacked": len(self.runs)}
        for run in self.runs:
            if run.running:
                run.finish(computed)

    def _epoch(self, epoch: int, asked: list[int], progress: Progress) -> None:
        started, size = time.monotonic(), self.recipe.batch_size
        order = torch.stack([next(loader.epoch(epoch))[1] for loader in self.loaders]).to(self.device)
        targets = self.labels.gather(1, order.expand(len(self.runs), -1))
        guesses = torch.empty_like(targets)
        batches = [slice(at, at + size) for at in range(0, order.shape[1], size)]
        means = torch.empty(len(self.runs), len(batches), device=self.device)
        for step, batch in enumerate(batches):
            self.optimizer.param_groups[0]["lr"] = self.recipe.lr * self.schedule.factor(
                epoch, step, len(batches), self.recipe.epochs
            )
            x = self._rows(order[:, batch])
            means[:, step], guesses[:, batch] = self._step(x, targets[:, batch])
            progress.step(epoch, step + 1, len(batches))
            if asked:
                raise Stopped(asked[0], f" in epoch {epoch + 1} of a stack of runs, which will start anew")
        self._note_divergence(epoch, means, order)
        sizes = torch.tensor([min(size, order.shape[1] - batch.start) for batch in batches], device=self.device)
        clean = self.clean.gather(1, order.expand(len(self.runs), -1))
        right, wrong = guesses == targets, clean != targets
        counts = [right.sum(1), wrong.sum(1), (wrong & right).sum(1), (guesses == clean).sum(1)]
        seen = torch.full_like(counts[0], order.shape[1])
        sums = torch.stack([(means.double() * sizes).sum(1), *(count.double() for count in (seen, *counts))], 1)
        self._end_epoch(epoch, sums.tolist(), started, progress)

    def _rows(self, rows: Tensor) -> Tensor:
        """Return the inputs ``(N, d)`` of ``(1, N)`` rows, or ``(R, N, d)`` of ``(R, N)``."""
        x = self.features.train.index_select(0, rows.reshape(-1))
        return x if len(rows) == 1 else x.view(*rows.shape, -1)

    @torch.no_grad()
    def _step(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Make a step with each network; return the mean losses and what was guessed."""
        weights, biases = self._for_products()
        seen = self._forward(x, weights, biases)
        logits = seen[-1].requires_grad_()
        with torch.enable_grad():
            mean = self.loss(logits, target).mean(1)
            (grad,) = torch.autograd.grad(mean, logits, torch.ones_like(mean))
        self._backward(grad, seen, weights)
        if self.recipe.l1:
            torch._foreach_add_(self.grads, torch._foreach_sign(self.trained), alpha=self.recipe.l1)
        if self.recipe.clip_norm:
            # A norm that is not finite makes the loss NaN, which is noticed.
            mean = mean + 0 * self._clip()
        self.optimizer.step()
        if self.average is not None:
            # The first step's weights are taken as they are, as torch's AveragedModel does.
            torch._foreach_lerp_(self.average, self.trained, 1 - self.recipe.average if self.steps else 1.0)
        self.steps += 1
        return mean.detach(), logits.detach().max(1).indices

    def _clip(self) -> Tensor:
        """Clip the norm of each run's gradient; return the norms."""
        parts = torch.stack([torch.linalg.vector_norm(grad.flatten(1), dim=1) for grad in self.grads])
        norms: Tensor = torch.linalg.vector_norm(parts, dim=0)
        factor = self.recipe.clip_norm / (norms + 1e-6)
        # Where a look is free, the pass over all gradients is saved when none is too long.
        if self.device.type != "cpu" or not bool((factor >= 1).all()):
            for grad in self.grads:
                grad.mul_(factor.clamp(max=1).view(-1, *[1] * (grad.dim() - 1)))
        return norms

    # What is measured

    def _note_divergence(self, epoch: int, means: Tensor, order: Tensor) -> None:
        finite = torch.stack([p.detach().flatten(1).isfinite().all(1) for p in self.trained]).all(0)
        bad = ~means.isfinite()
        for place, run in enumerate(self.runs):
            if not run.running or (finite[place] and not bad[place].any()):
                continue
            advice = f"lower the learning rate (--set lr={self.recipe.lr / 10:g})"
            advice += "" if self.recipe.clip_norm else " or clip the gradient (--set clip_norm=5)"
            message = f"weights of the network are not finite after epoch {epoch + 1} ({run.experiment}); {advice}"
            if bad[place].any():
                step = int(bad[place].int().argmax())
                at = step * self.recipe.batch_size
                rows = order[min(place, len(order) - 1)][at : at + self.recipe.batch_size]
                message = (
                    f"the training loss, or its gradient, is not finite in epoch {epoch + 1}, step {step + 1} of "
                    f"{bad.shape[1]} ({run.experiment}), where the network's input is "
                    f"{range_of(self.features.train[rows])}; {advice}"
                )
            run.fail(Diverged(message))

    def _end_epoch(self, epoch: int, sums: list[list[float]], started: float, progress: Progress) -> None:
        measured = self._measure()
        lr = self.optimizer.param_groups[0]["lr"]
        seconds = (time.monotonic() - started) / len(self.runs)
        for place, run in enumerate(self.runs):
            if not run.running:
                continue
            record = epoch_record(epoch + 1, lr, sums[place], self.known[place], measured[place])
            record["seconds"] = round(seconds, 3)
            run.calibration = asdict(measured[place]["test"]) if "test" in measured[place] else None
            for kept, by in (("best", "test_accuracy"), ("chosen", "val_accuracy")):
                if by in record and record[by] > max((old[by] for old in run.epochs), default=-1):
                    run.kept[kept] = self._weights_of(place)
            run.epochs.append(record)
        records = [run.epochs[-1] for run in self.runs if run.running]
        if records:
            shown = [key for key in ("train_loss", "val_accuracy", "test_accuracy") if key in records[0]]
            mean = {key: sum(record[key] for record in records) / len(records) for key in shown}
            progress.epoch(mean | {"epoch": epoch + 1, "seconds": seconds * len(self.runs)}, self.recipe.epochs)

    @torch.no_grad()
    def _measure(self) -> list[dict[str, Metrics]]:
        """Measure all networks on all test splits, and each on its own held-out examples."""
        found: list[dict[str, Metrics]] = [{} for _ in self.runs]
        weights, biases = self._for_products()
        if self.average is not None:
            half = len(self.weights)
            weights, biases = ([p.to(self.dtype) for p in part] for part in (self.average[:half], self.average[half:]))
        splits = {name: (labels[None], x) for name, (x, labels) in self.features.tests.items()}
        for name, (labels, x) in splits.items():
            chunks = ((x[at : at + _CHUNK], labels[:, at : at + _CHUNK]) for at in range(0, len(x), _CHUNK))
            self._tally(name, chunks, weights, biases, found)
        if self.runs[0].held_out is not None:
            rows = torch.stack([torch.from_numpy(run.held_out) for run in self.runs]).to(self.device)
            parts = torch.split(rows, _CHUNK, 1)
            chunks = ((self._rows(part), self.labels.gather(1, part)) for part in parts)
            self._tally("val", chunks, weights, biases, found)
        return found

    def _tally(
        self,
        name: str,
        chunks: Iterable[tuple[Tensor, Tensor]],
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        found: list[dict[str, Metrics]],
    ) -> None:
        tallies = [Tally(self.device) for _ in self.runs]
        for x, labels in chunks:
            log_p = torch.log_softmax(self._forward(x, weights, biases)[-1].float(), 1)
            target = labels.expand(len(self.runs), -1)
            top, guess = log_p.max(1)
            sums = bin_sums(-log_p.gather(1, target.unsqueeze(1)).squeeze(1), top, guess == target)
            for tally, more in zip(tallies, sums):
                tally.sums += more
        for measured, tally in zip(found, tallies):
            measured[name] = tally.metrics()

    # Weights

    def _weights_of(self, place: int) -> dict[str, Tensor]:
        """Return a copy of one run's weights, as its network names them."""
        half = len(self.weights)
        parameters = self.trained if self.average is None else self.average
        run = self.runs[place]
        names = {module: name for name, module in run.network.named_modules()}
        return {
            f"{names[layer]}.{part}": values[place].detach().cpu().clone()
            for i, layer in enumerate(run.layers())
            for part, values in (("weight", parameters[i]), ("bias", parameters[half + i]))
        }

    def _write_weights(self) -> None:
        """Give each run's network its weights."""
        for place, run in enumerate(self.runs):
            run.kept["last"] = self._weights_of(place)
            run.network.load_state_dict(run.kept["last"])
