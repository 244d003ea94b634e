"""``unswayed doctor``: what is there, what is missing, what is broken."""

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import torch

import unswayed
from unswayed.cli import doctor


def test_versions_devices_and_precision(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.command()
    shown = capsys.readouterr().out
    for words in (
        f"torch             {torch.__version__}",
        f"unswayed          {unswayed.__version__}",
        "threads, fp32",
    ):
        assert words in shown
    doctor.command(as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert set(facts) == {"versions", "devices", "extras", "troubles"}
    assert facts["versions"]["python"] == sys.version.split()[0]
    assert facts["devices"]["cpu"].startswith(f"{torch.get_num_threads()} threads")


@pytest.mark.parametrize(("native", "says"), [(True, "fp32 and bf16; auto is bf16"), (False, "bf16 would be slower")])
def test_precision_by_capability(native: bool, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native, raising=False)
    assert says in doctor.examine()["devices"]["cpu"]


def test_what_each_missing_extra_would_give(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    missing = ("matplotlib", "polars", "lightning_fabric", "timm")

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in missing else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    extras = doctor.examine()["extras"]
    assert extras["cli"] == "ready: the command line"
    assert extras["plot"].startswith("missing: pip install 'unswayed[plot]' for figures")
    assert (
        extras["data"]
        == "missing: pip install 'unswayed[data]' for the digits data, parquet and CSV files, folders of images"
    )
    assert extras["train"] == "missing: pip install 'unswayed[train]' for training"
    assert extras["timm"].startswith("missing: pip install timm for networks")


def test_all_extras_of_the_project_are_known() -> None:
    import tomllib

    project = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(declared) - {"all", "dev"}
    names = {"scikit-learn": "sklearn", "pillow": "PIL", "lightning-fabric": "lightning_fabric"}
    for extra, (modules, _) in doctor.EXTRAS.items():
        packages = [line.split(">")[0] for line in declared[extra]]
        assert sorted(modules) == sorted(names.get(package, package) for package in packages), extra


def test_a_torchvision_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    doctor.command()
    shown = capsys.readouterr().out
    assert "trouble" in shown
    assert "RuntimeError: operator torchvision::nms does not exist" in shown
    assert "unswayed does not need it" in shown
    assert "pip uninstall torchvision" in shown
    assert "torchvision" not in sys.modules
    (package / "__init__.py").write_text("")
    assert doctor.examine()["troubles"] == []
