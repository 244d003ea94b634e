"""Networks: sizes, weights from seeds, what fits what, and networks from elsewhere."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from unswayed import models
from unswayed.models.spec import NETWORKS


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize(
    ("spec", "num_classes", "in_shape", "parameters"),
    [
        ("cnn8", 10, (3, 32, 32), 1_639_794),
        ("cnn4", 10, (1, 28, 28), 422_090),
        ("resnet18", 10, (3, 32, 32), 11_173_962),
        ("resnet34", 10, (3, 32, 32), 21_282_122),
        ("resnet34", 100, (3, 32, 32), 21_328_292),
        ("resnet50", 1000, (3, 224, 224), 25_557_032),
        ("resnet50(stem=cifar)", 100, (3, 32, 32), 23_705_252),
        ("preact_resnet18", 10, (3, 32, 32), 11_171_274),
        ("mlp(hidden=512, depth=2)", 10, (1, 8, 8), 65 * 512 + 513 * 512 + 513 * 10),
        ("linear", 100, (256,), 25_700),
    ],
)
def test_parameter_counts(spec: str, num_classes: int, in_shape: tuple[int, ...], parameters: int) -> None:
    assert count(models.build(spec, num_classes=num_classes, in_shape=in_shape)) == parameters


@pytest.mark.parametrize("spec", NETWORKS)
def test_logits_gradients_and_features(spec: str) -> None:
    shape = (3, 40, 32)
    net = models.build(spec, num_classes=5, in_shape=shape)
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    logits = net(x)
    assert logits.shape == (2, 5)
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in net.named_parameters() if n.endswith("weight"))
    net.eval()
    with torch.no_grad():
        seen = models.features(net, x)
        assert torch.allclose(net.head(seen), net(x))
        assert not net.head._forward_pre_hooks
        like_channels = net.to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
        assert torch.allclose(like_channels, net(x), atol=1e-5)


@pytest.mark.parametrize("spec", NETWORKS)
def test_weights_hang_on_the_seed_alone(spec: str) -> None:
    def weights(seed: int) -> Tensor:
        net = models.build(spec, num_classes=4, in_shape=(3, 32, 32), seed=seed)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = weights(5)
    assert torch.equal(torch.rand(3), expected)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2 if threads == 1 else 1)
        assert torch.equal(weights(5), first)
    finally:
        torch.set_num_threads(threads)
    assert not torch.equal(weights(6), first)


def test_the_default_device_does_not_matter() -> None:
    with torch.device("meta"):
        net = models.build("cnn8", num_classes=10, in_shape=(3, 32, 32), seed=3)
    assert torch.equal(net.head.weight, models.build("cnn8", num_classes=10, in_shape=(3, 32, 32), seed=3).head.weight)


def test_initialisation_is_the_papers() -> None:
    for spec in ("cnn8", "resnet18", "mlp(hidden=300)"):
        net = models.build(spec, num_classes=10, in_shape=(3, 32, 32))
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                bound = math.sqrt(6 / module.weight[0].numel())
            elif isinstance(module, nn.Linear):
                bound = math.sqrt(6 / (module.in_features + module.out_features))
            else:
                continue
            largest = float(module.weight.detach().abs().max())
            assert 0.97 * bound < largest <= bound
            if module.bias is not None:
                assert 0 < float(module.bias.detach().abs().max()) <= 1 / math.sqrt(module.weight[0].numel())
    stem = models.build("resnet50", num_classes=10, in_shape=(3, 64, 64)).conv1.weight
    assert float(stem.detach().std()) == pytest.approx(math.sqrt(2 / (49 * 64)), rel=0.02)
    conv = models.build("preact_resnet18", num_classes=10, in_shape=(3, 32, 32)).layer1[0].conv1.weight
    assert float(conv.detach().abs().max()) <= 1 / math.sqrt(9 * 64)


def test_pooling_before_relu_is_the_published_order() -> None:
    net = models.build("cnn4", num_classes=10, in_shape=(1, 28, 28)).eval()
    x = torch.randn(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    layers = {type(m): [layer for layer in net.body if type(layer) is type(m)] for m in net.body}
    out = x
    for conv, norm in zip(layers[nn.Conv2d], layers[nn.BatchNorm2d]):
        out = torch.max_pool2d(torch.relu(norm(conv(out))), 2)
    (hidden,), (norm,) = layers[nn.Linear], layers[nn.BatchNorm1d]
    assert torch.equal(net(x), net.head(torch.relu(norm(hidden(out.flatten(1))))))


@pytest.mark.parametrize(
    ("spec", "in_shape"),
    [("cnn8", (1, 8, 8)), ("cnn4", (3, 5, 7)), ("resnet18", (1, 8, 8)), ("resnet50", (4, 32, 32)), ("mlp", (7,))],
)
def test_sizes_follow_from_the_data(spec: str, in_shape: tuple[int, ...]) -> None:
    assert models.build(spec, num_classes=3, in_shape=in_shape)(torch.zeros(2, *in_shape)).shape == (2, 3)


@pytest.mark.parametrize(
    ("spec", "num_classes", "in_shape", "says"),
    [
        ("cnn8", 10, (64,), "cnn8 takes images (channels, height, width), not in_shape=(64,); for features use mlp"),
        ("cnn8", 10, (3, 7, 32), "cnn8 takes images of 8 x 8 pixels or more, not in_shape=(3, 7, 32)"),
        ("resnet50", 10, (3, 28, 28), "32 x 32 pixels or more"),
        ("resnet18", 10, (3, 4, 4), "8 x 8 pixels or more, not in_shape=(3, 4, 4)"),
        ("resnet50", 10, (3, 28, 28), "resnet50(stem=cifar)"),
        ("mlp", 1, (64,), "num_classes=1 is not allowed"),
        ("mlp", 10, (), "in_shape=() is not allowed"),
        ("mlp", 10, 64, "in_shape=64 is not allowed"),
        ("mlp", 10, (0,), "in_shape=(0,) is not allowed"),
    ],
)
def test_what_does_not_fit(spec: str, num_classes: int, in_shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        models.build(spec, num_classes=num_classes, in_shape=in_shape)
    assert says in str(caught.value)


# From elsewhere


class Own(nn.Module):
    def __init__(self, num_classes: int, in_shape: tuple[int, ...], width: int = 4, fail: bool = False) -> None:
        super().__init__()
        if fail:
            raise RuntimeError("no luck")
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(in_shape), width), nn.LazyLinear(num_classes))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        return out


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("mine")
    names = {
        "Own": Own,
        "plain": lambda: nn.Linear(6, 3),
        "any": lambda **given: nn.Linear(6, given.pop("num_classes"), **given),
        "built": nn.Linear(6, 3),
        "seven": 7,
        "word": lambda: "net",
        "Deep": type("Deep", (), {"make": staticmethod(lambda num_classes: nn.Linear(6, num_classes))}),
        "two": lambda num_classes: type("Two", (nn.Linear,), {"forward": lambda self, x: (x, x)})(6, num_classes),
    }
    for name, value in names.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "mine", module)


@pytest.mark.parametrize("spec", ["mine:Own(width=9)", "mine:plain", "mine:any(bias=false)", "mine:Deep.make"])
@pytest.mark.usefixtures("mine")
def test_ones_own_network(spec: str) -> None:
    def built(seed: int) -> nn.Module:
        return models.build(spec, num_classes=3, in_shape=(6,), seed=seed)

    net, x = built(1), torch.ones(2, 6)
    assert net.training
    assert net(x).shape == (2, 3)
    assert torch.equal(net(x), built(1)(x))
    assert not torch.equal(net(x), built(2)(x))


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.usefixtures("mine")
def test_features_of_ones_own_network() -> None:
    net = models.build("mine:Own(width=9)", num_classes=3, in_shape=(6,))
    assert models.features(net, torch.ones(2, 6)).shape == (2, 9)
    with pytest.raises(ValueError, match="has no linear layer"):
        models.features(nn.Conv2d(1, 1, 1), torch.ones(1, 1, 1, 1))


@pytest.mark.parametrize(
    ("spec", "in_shape", "error", "says"),
    [
        ("nowhere_at_all:Net", (6,), ImportError, "set PYTHONPATH to the folder it is in"),
        ("mine:plane", (6,), ValueError, "mine has no 'plane'; did you mean 'plain'?"),
        ("mine:built", (6,), ValueError, "built is a Linear; give a class, or a function"),
        ("mine:seven", (6,), ValueError, "seven is a int"),
        ("mine:word", (6,), ValueError, "gave a str, not a torch.nn.Module"),
        ("mine:two", (6,), ValueError, "gives a tuple for one example"),
        ("mine:Own(depth=2)", (6,), ValueError, "unexpected keyword argument 'depth'"),
        ("mine:Own(fail=true)", (6,), ValueError, "RuntimeError: no luck"),
        ("mine:plain", (7,), ValueError, "does not take examples of shape (7,)"),
        ("mine:Own(num_classes=4)", (6,), ValueError, "gives logits of shape (1, 4) for one example; 3 classes need"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_errors_about_ones_own_network(spec: str, in_shape: tuple[int], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        models.build(spec, num_classes=3, in_shape=in_shape)
    assert says in str(caught.value)


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, object]]]]:
    calls: list[tuple[str, dict[str, object]]] = []

    class Net(nn.Module):
        def __init__(self, num_classes: int, in_chans: int) -> None:
            super().__init__()
            self.classifier = nn.Linear(in_chans, num_classes)
            self.extra = nn.Linear(1, 1)

        def get_classifier(self) -> nn.Module:
            return self.classifier

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.classifier(x.mean((2, 3)))
            return out

    def create_model(name: str, num_classes: int, in_chans: int, **rest: object) -> nn.Module:
        calls.append((name, {"num_classes": num_classes, "in_chans": in_chans, **rest}))
        return Net(num_classes, in_chans)

    module = types.ModuleType("timm")
    module.create_model = create_model  # type: ignore[attr-defined]
    module.list_models = lambda: ["resnet18", "vit_tiny"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", module)
    return calls


def test_timm(timm: list[tuple[str, dict[str, object]]]) -> None:
    net = models.build("timm:vit_tiny.in1k(drop_rate=0.1, pretrained=true)", num_classes=3, in_shape=(2, 4, 4))
    assert timm == [("vit_tiny.in1k", {"num_classes": 3, "in_chans": 2, "drop_rate": 0.1, "pretrained": True})]
    assert models.features(net, torch.ones(5, 2, 4, 4)).shape == (5, 2)
    models.build("timm:hf-hub:me/net", num_classes=3, in_shape=(2, 4, 4))
    with pytest.raises(ValueError, match=r"timm has no model 'resnet19'; did you mean 'resnet18'\?"):
        models.build("timm:resnet19", num_classes=3, in_shape=(2, 4, 4))
    with pytest.raises(ValueError, match="takes images"):
        models.build("timm:resnet18", num_classes=3, in_shape=(2,))


def test_timm_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="timm:resnet18 needs timm: pip install timm"):
        models.build("timm:resnet18", num_classes=3, in_shape=(3, 32, 32))
