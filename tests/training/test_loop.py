"""The loop, against the same training written out plainly."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import unswayed
from unswayed.data import Data, wrap
from unswayed.noise import make
from unswayed.training import Diverged, Recipe, Result, train
from unswayed.training.loop import Loop

K, D = 4, 6


def points(n: int = 70, test: int = 30, seed: int = 0) -> Data:
    """A small problem with classes that a linear model nearly separates."""
    generator = torch.Generator().manual_seed(seed)
    middles = torch.randn(K, D, generator=generator)
    labels = torch.arange(n + test) % K
    x = middles[labels] + 0.7 * torch.randn(n + test, D, generator=generator)
    return wrap((x[:n], labels[:n]), (x[n:], labels[n:]) if test else None)


def images(n: int = 33, side: int = 8) -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (n, 3, side, side), generator=generator, dtype=torch.uint8)
    return wrap((x, torch.arange(n) % K), (x[:9], torch.arange(9) % K))


def network() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(D, 16), nn.Tanh(), nn.Linear(16, K))


def convolutions() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, K)
    )


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a) and set(a) == set(b)


class Spy(nn.Module):
    """A loss that notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def forward(self, logits: Tensor, target: Tensor, index: Tensor) -> Tensor:
        self.seen.append((logits.detach().clone(), target.clone(), index.clone()))
        return F.cross_entropy(logits, target)


OPTIMIZERS: dict[str, tuple[dict[str, Any], Callable[..., torch.optim.Optimizer]]] = {
    "sgd": ({"weight_decay": 1e-2}, lambda p: torch.optim.SGD(p, 0.3, momentum=0.9, weight_decay=1e-2)),
    "nesterov": ({"nesterov": True}, lambda p: torch.optim.SGD(p, 0.3, momentum=0.9, nesterov=True)),
    "adamw": (
        {"optimizer": "adamw", "weight_decay": 0.1},
        lambda p: torch.optim.AdamW(p, 0.3, betas=(0.9, 0.999), weight_decay=0.1),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("l1", "clip"), [(0.0, 0.0), (0.02, 0.0), (0.02, 0.1)])
def test_against_a_plain_loop(name: str, l1: float, clip: float) -> None:
    fields, optimizer_of = OPTIMIZERS[name]
    data, spy, net = points(), Spy(), network()
    plan = Recipe(epochs=3, batch_size=16, lr=0.3, l1=l1, clip_norm=clip, schedule="cosine", **fields)
    result = train(copy.deepcopy(net), data, spy, plan)

    optimizer = optimizer_of(net.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    inputs, labels = data.train.inputs, torch.tensor(data.train.labels)
    assert inputs is not None
    for number, (_, target, index) in enumerate(spy.seen):
        assert torch.equal(target, labels[index])
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs[index]), labels[index]) + l1 * sum(p.abs().sum() for p in net.parameters())
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        if number % 5 == 4:
            scheduler.step()
    assert len(spy.seen) == 15
    for mine, theirs in zip(result.model.parameters(), net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_each_epoch_sees_every_example_once_and_losses_with_a_memory_are_told_which() -> None:
    spy = Spy()
    train(network(), points(), spy, Recipe(epochs=2, batch_size=16))
    for epoch in (spy.seen[:5], spy.seen[5:]):
        assert sorted(torch.cat([index for _, _, index in epoch]).tolist()) == list(range(70))
    assert not torch.equal(spy.seen[0][2], spy.seen[5][2])


def test_the_average_of_the_weights_is_what_is_measured_and_kept() -> None:
    data, net = points(), network()
    plan = Recipe(epochs=2, batch_size=70, lr=0.5, momentum=0, clip_norm=0, schedule="constant", average=0.6)
    result = train(copy.deepcopy(net), data, "ce", plan)
    labels, average = torch.tensor(data.train.labels), None
    for _ in range(2):
        F.cross_entropy(net(data.train.inputs), labels).backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.5 * p.grad
                p.grad = None
            new = copy.deepcopy(net.state_dict())
            average = new if average is None else {key: 0.6 * average[key] + 0.4 * new[key] for key in new}
    assert average is not None
    for key, value in result.weights().items():
        assert torch.allclose(value, average[key], atol=1e-6), key
    with torch.no_grad():
        right = (result.model(data.test.inputs).argmax(1).numpy() == data.test.labels).mean()
    assert result.last["test_accuracy"] == pytest.approx(right)


def test_metrics_of_a_network_that_stands_still() -> None:
    data, net = points(), network()
    noisy = make("symmetric(0.4)", data.train.labels, K, seed=1)
    plan = Recipe(epochs=1, batch_size=16, lr=1e-12)
    record = train(copy.deepcopy(net), data, "ce", plan, noise=noisy).last
    with torch.no_grad():
        logits, test = net(data.train.inputs), net(data.test.inputs)
    guess, wrong = logits.argmax(1).numpy(), noisy.labels != noisy.clean
    assert record["train_accuracy"] == pytest.approx((guess == noisy.labels).mean())
    assert record["train_clean_accuracy"] == pytest.approx((guess == noisy.clean).mean())
    assert record["memorised"] == pytest.approx((guess == noisy.labels)[wrong].mean())
    assert record["train_loss"] == pytest.approx(float(F.cross_entropy(logits, torch.tensor(noisy.labels))), rel=1e-5)
    target = torch.tensor(data.test.labels)
    assert record["test_nll"] == pytest.approx(float(F.cross_entropy(test, target)), rel=1e-5)
    p, right = test.softmax(1).max(1).values.numpy(), (test.argmax(1) == target).numpy()
    bins = np.minimum(np.ceil(p * 15).astype(int) - 1, 14)
    gaps = [abs(p[bins == b].mean() - right[bins == b].mean()) * (bins == b).sum() for b in set(bins)]
    assert record["test_ece"] == pytest.approx(sum(gaps) / len(p), rel=1e-5)
    assert (record["epoch"], record["lr"]) == (1, 1e-12)
    assert record["seconds"] > 0


def test_last_best_and_chosen_epoch_are_kept_with_their_weights() -> None:
    data = points(n=200, test=50)
    plan = Recipe(epochs=12, batch_size=16, lr=2.0, clip_norm=0, schedule="constant")
    result = train(network(), data, "ce", plan, noise="symmetric(0.4)", validation=0.3)
    best = max(record["test_accuracy"] for record in result.epochs)
    chosen = max(record["val_accuracy"] for record in result.epochs)
    assert result.best is not None
    assert result.chosen is not None
    assert result.best["test_accuracy"] == best > result.last["test_accuracy"]
    assert result.chosen["val_accuracy"] == chosen > result.last["val_accuracy"]
    assert result.record()["chosen"] == result.chosen
    for which, record in (("last", result.last), ("best", result.best), ("chosen", result.chosen)):
        result.model.load_state_dict(result.weights(which))
        with torch.no_grad():
            right = (result.model(data.test.inputs).argmax(1).numpy() == data.test.labels).mean()
        assert record["test_accuracy"] == pytest.approx(right), which
    assert "best epoch, by the test set" in str(result)
    assert "chosen by noisy validation" in str(result)


def test_without_a_test_set_and_with_validation() -> None:
    result = train(network(), points(test=0), "vce", Recipe(epochs=2), noise="symmetric(0.2)", validation=0.2)
    assert result.best is None
    assert result.chosen is not None
    assert "test_accuracy" not in result.last
    assert result.record()["calibration"] is None
    with pytest.raises(ValueError, match="no epoch was kept as 'best'"):
        result.weights("best")
    nothing = train(network(), points(test=0), "vce", Recipe(epochs=1))
    assert nothing.best is None
    assert nothing.chosen is None
    assert "last epoch" in str(nothing)


@pytest.mark.parametrize("size", [32, 16, 11])
def test_a_last_batch_of_one_example_and_batch_norm(size: int) -> None:
    spy = Spy()
    result = train(convolutions(), images(33), spy, Recipe(epochs=1, batch_size=size))
    assert len(spy.seen) == 33 // size
    assert math.isfinite(result.last["train_loss"])
    spy = Spy()
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, K))
    train(net, images(33), spy, Recipe(epochs=1, batch_size=32))
    assert [len(index) for _, _, index in spy.seen] == [32, 1]  # other networks see it


def test_the_loss_is_fp32_whatever_the_network_is_computed_in() -> None:
    seen, layouts = [], []
    net = convolutions()
    net[3].register_forward_hook(lambda _, inputs, out: seen.append(out.dtype))
    net[0].register_forward_pre_hook(
        lambda _, inputs: layouts.append(inputs[0].is_contiguous(memory_format=torch.channels_last))
    )
    spy = Spy()
    result = train(net, images(), spy, Recipe(epochs=1, batch_size=16, precision="bf16"))
    assert set(seen) == {torch.bfloat16}
    assert all(layouts)
    assert {logits.dtype for logits, _, _ in spy.seen} == {torch.float32}
    assert all(p.dtype == torch.float32 for p in result.model.parameters())


def test_a_loss_that_is_no_number_ends_the_run_with_all_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    data = points()
    assert data.train.inputs is not None
    data.train.inputs[7, 2] = math.inf
    with pytest.raises(Diverged) as error:
        train("linear", data, "nce + vce(a=4)", Recipe(epochs=2, batch_size=16, clip_norm=0))
    said = str(error.value)
    assert "the training loss, or its gradient, is not finite in epoch 1, step" in said
    assert "of 5 (nce + vce(a=4))" in said
    assert "the network's input is between" in said
    assert "and not finite in 1 places" in said
    assert "its output" in said
    assert "--set lr=0.01" in said
    assert "--set clip_norm=5" in said
    # The same where the loop looks up only every few steps, as on a GPU.
    build = Loop.__init__

    def patient(self: Loop, *args: Any, **options: Any) -> None:
        build(self, *args, **options)
        self.look = 3

    monkeypatch.setattr(Loop, "__init__", patient)
    with pytest.raises(Diverged, match="and not finite in 1 places") as later:
        train("linear", data, "nce + vce(a=4)", Recipe(epochs=2, batch_size=16, clip_norm=0))
    assert str(later.value).split(" (")[0] == said.split(" (")[0]
    # Behind a bounded function the loss stays finite at first, but its gradient does not.
    with pytest.raises(Diverged, match="and not finite in 1 places"):
        train(network(), data, "vce", Recipe(epochs=2, batch_size=16))


def test_a_step_that_ruins_the_weights_is_no_checkpoint(tmp_path: Any) -> None:
    class Steep(nn.Module):
        """A finite loss with an infinite slope."""

        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, logits: Tensor, target: Tensor) -> Tensor:
            self.calls += 1
            loss = F.cross_entropy(logits, target)
            return loss if self.calls < 8 else loss + (logits.sum() * 0).sqrt()

    with pytest.raises(Diverged, match="weights of the network are not finite"):
        train(
            network(),
            points(),
            Steep(),
            Recipe(epochs=3, batch_size=16, clip_norm=0),
            out=tmp_path / "run",
            checkpoint_every=0,
        )
    state = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert (state["epoch"], state["step"]) == (1, 2)
    assert all(bool(value.isfinite().all()) for value in state["model"].values())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_same_seed_gives_the_same_bits(precision: str) -> None:
    plan = Recipe(epochs=2, batch_size=16, precision=precision, augment="crop(2) + flip + rotate(10) + cutout(3)")
    first, again = (train(convolutions(), images(), "vce", plan, noise="symmetric(0.4)", seed=7) for _ in range(2))
    assert same(first.weights(), again.weights())
    for a, b in zip(first.epochs, again.epochs, strict=True):
        assert {key: a[key] for key in a if key != "seconds"} == {key: b[key] for key in b if key != "seconds"}


def draws(**seeds: int) -> tuple[Result, list[Tensor], Tensor]:
    torch.manual_seed(int(torch.randint(1000, ())))  # what others drew before is no matter
    data, seen, spy = images(120), [], Spy()
    net = unswayed.models.build("linear", num_classes=K, in_shape=data.in_shape)
    model = nn.Sequential(nn.Identity(), net)
    model[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    plan = Recipe(epochs=1, batch_size=40, augment="crop(2) + flip")
    result = train(model, data, spy, plan, noise="symmetric(0.5)", validation=0.2, **seeds)
    return result, seen, torch.cat([index for _, _, index in spy.seen])


def test_seeds_have_streams_of_their_own() -> None:
    first, again, other = draws(seed=1, noise_seed=1), draws(seed=1, noise_seed=1), draws(seed=2, noise_seed=1)
    assert all(torch.equal(a, b) for a, b in zip(first[1], again[1]))
    assert torch.equal(first[2], again[2])
    assert same(first[0].weights(), again[0].weights())
    # Another seed: the noise and the examples held out stay; order and augmentation do not.
    assert np.array_equal(first[0].noise.labels, other[0].noise.labels)
    assert set(first[2].tolist()) == set(other[2].tolist())
    assert not torch.equal(first[2], other[2])
    # Another seed of the noise: the other way round.
    noise = draws(seed=1, noise_seed=2)
    assert not np.array_equal(first[0].noise.labels, noise[0].noise.labels)
    assert set(first[2].tolist()) != set(noise[2].tolist())


def test_order_augmentation_initialisation_and_dropout_do_not_hang_on_the_noise() -> None:
    data = images(60)
    plan = Recipe(epochs=1, batch_size=20, augment="crop(2) + flip", lr=1e-9)
    found = []
    for noise, noise_seed in (("symmetric(0.5)", 1), ("symmetric(0.5)", 2), ("given", 3)):
        spy, seen, masks = Spy(), [], []
        net = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(192, K))
        nn.init.zeros_(net[2].weight)
        net[0].register_forward_pre_hook(lambda _, inputs, to=seen: to.append(inputs[0].clone()))
        net[1].register_forward_hook(lambda _, inputs, out, to=masks: to.append(out == 0))
        train(net, data, spy, plan, noise=noise, seed=4, noise_seed=noise_seed)
        found.append((torch.cat(seen[:3]), torch.cat(masks[:3]), torch.cat([index for _, _, index in spy.seen])))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other))
    starts = [train("linear", data, "ce", plan, noise="symmetric(0.5)", noise_seed=n).weights() for n in (1, 2)]
    for key in starts[0]:
        assert torch.allclose(starts[0][key], starts[1][key], atol=1e-7)


def test_nobody_elses_random_numbers_change() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    train("mlp(hidden=8)", points(), "vce", Recipe(epochs=1), noise="symmetric(0.3)")
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"loss": "vcee"}, "did you mean 'vce'"),
        ({"loss": F.cross_entropy}, "loss is a loss, its spec, or a torch.nn.Module, not <function"),
        ({"loss": nn.CrossEntropyLoss(reduction="sum")}, "a loss with reduction='mean', not 'sum'"),
        ({"recipe": "fats/cifar10"}, "unknown recipe 'fats/cifar10'"),
        ({"device": "gpu"}, "device='gpu' is not allowed; it is auto, cpu, cuda or cuda:N"),
        ({"device": "cuda:77"}, "CUDA devices here"),
        ({"validation": 0.001}, "validation=0.001 of 70 examples holds out 0"),
        ({"recipe": Recipe(augment="flip")}, "augment='flip' is for images"),
        ({"model": nn.Flatten()}, "the model has no parameters to train"),
        (
            {"model": nn.Sequential(nn.Linear(D, K), nn.BatchNorm1d(K)), "recipe": Recipe(batch_size=1)},
            "batches of 1 are too small for a network with batch normalisation",
        ),
    ],
)
def test_mistakes(what: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"model": network(), "data": points(), "loss": "vce"} | what
    with pytest.raises((ValueError, TypeError)) as error:
        train(**given)
    assert says in str(error.value)
