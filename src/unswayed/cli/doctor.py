"""``unswayed doctor``: what this installation has, what it can do, and what is wrong with it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib import metadata
from typing import Annotated, Any

import typer

EXAMPLES = """Examples:

`unswayed doctor` - versions, devices, precisions, extras, known troubles

`unswayed doctor --json` - the same, to be attached to a report of a bug
"""
EXTRAS = {
    "cli": (("typer", "rich"), "the command line"),
    "plot": (("matplotlib",), "figures for papers, heat maps, contact sheets"),
    "data": (("sklearn", "polars", "PIL"), "the digits data, parquet and CSV files, folders of images"),
    "train": (("lightning_fabric",), "training"),
    "ray": (("ray",), "grids on many machines"),
}
OTHERS = {"timm": "networks by `timm:NAME`"}


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, devices, precision support, extras, and known troubles of this installation."""
    facts = examine()
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for title in ("versions", "devices", "extras"):
        console.print(f"[bold]{title}[/bold]")
        for name, value in facts[title].items():
            console.print(f"  {name:<18}{value}", markup=False)
    for trouble in facts["troubles"]:
        console.print(f"[bold red]trouble[/bold red]  {trouble}")
    if not facts["troubles"]:
        console.print("no troubles found")


def examine() -> dict[str, Any]:
    """Return what :func:`command` shows, as plain values."""
    import torch

    from unswayed.training.precision import fast_bf16

    cpu = torch.device("cpu")
    devices = {"cpu": f"{torch.get_num_threads()} threads, {_precisions(fast_bf16(cpu))}"}
    for i in range(torch.cuda.device_count()):
        cuda = torch.device("cuda", i)
        devices[f"cuda:{i}"] = f"{torch.cuda.get_device_name(i)}, {_precisions(fast_bf16(cuda))}"
    if not torch.cuda.is_available():
        devices["cuda"] = "none" + ("" if torch.version.cuda else " (this build of torch is for the CPU only)")
    names = (
        "unswayed",
        "torch",
        "numpy",
        "scikit-learn",
        "polars",
        "pillow",
        "matplotlib",
        "lightning-fabric",
    )
    versions = {"python": sys.version.split()[0]} | {name: _version(name) for name in names}
    return {"versions": versions, "devices": devices, "extras": _extras(), "troubles": _troubles()}


def _precisions(bf16: bool) -> str:
    return "fp32 and bf16; auto is bf16 for networks with convolutions" if bf16 else "fp32; bf16 would be slower here"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"


def _extras() -> dict[str, str]:
    found = {}
    for extra, (modules, what) in EXTRAS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        found[extra] = f"ready: {what}" if not missing else f"missing: pip install 'unswayed[{extra}]' for {what}"
    for module, what in OTHERS.items():
        there = importlib.util.find_spec(module) is not None
        found[module] = f"ready: {what}" if there else f"missing: pip install {module} for {what}"
    return found


def _troubles() -> list[str]:
    """Return known defects of the installation, each with its remedy."""
    if importlib.util.find_spec("torchvision") is None:
        return []
    # In a process of its own: a torchvision that fails half-way leaves torch damaged.
    done = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    return [
        f"torchvision {_version('torchvision')} cannot be imported beside torch {_version('torch')} ({reason}). "
        "It breaks timm, torchmetrics and the Hugging Face Trainer, which import it if it is there. unswayed does not "
        "need it: pip uninstall torchvision, or install the build that belongs to your torch."
    ]
