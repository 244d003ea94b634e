"""Devices and processes, by Lightning Fabric; there is no launcher of our own."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_T = TypeVar("_T")
_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def where(device: str) -> torch.device:
    """Return the device that a name means; ``auto`` is CUDA where there is one.

    >>> where("cpu")
    device(type='cpu')
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device={device!r} is not allowed; it is auto, cpu, cuda or cuda:N") from None
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        built = "" if torch.version.cuda or torch.version.hip else "; this torch is built for the CPU only"
        raise ValueError(f"device={device!r}: there are {torch.cuda.device_count()} CUDA devices here{built}")
    return found


def start(device: torch.device, devices: int, precision: str) -> Fabric:
    """Start Fabric on ``devices`` devices, each with a process of its own.

    Under ``torchrun`` the processes are there already. Elsewhere this program is started once more for each further
    device, with the same arguments, as Fabric and Lightning do it.
    """
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    except ImportError:
        raise ImportError("training needs Lightning Fabric: pip install 'unswayed[train]'") from None
    nodes = 1
    if TorchElasticEnvironment.detect():
        local, world = (int(os.environ[key]) for key in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
        if devices not in (1, local):
            raise ValueError(f"devices={devices}, but torchrun started {local} processes here; leave devices out")
        devices, nodes = local, world // local
    elif devices > 1 and "LOCAL_RANK" not in os.environ:
        _can_start_again()
    if device.type == "cuda" and devices > torch.cuda.device_count():
        raise ValueError(f"devices={devices}: there are {torch.cuda.device_count()} CUDA devices here")
    alone = devices * nodes == 1
    # Fabric tells on standard error that it starts; who asked for quiet shall have it.
    log = logging.getLogger("lightning_fabric")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        fabric = Fabric(
            accelerator=device.type,
            devices=[device.index] if alone and device.index is not None else devices,
            num_nodes=nodes,
            strategy="auto" if alone else "ddp",
            precision=_PRECISION[precision],  # type: ignore[arg-type]
        )
        fabric.launch()
    finally:
        log.setLevel(level)
    if not alone:
        # Threads of the exchange that are still there at the end can make Python abort.
        atexit.register(_leave)
    return fabric


def _leave() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _can_start_again() -> None:
    import __main__

    if getattr(__main__, "__spec__", None) is None and not Path(sys.argv[0]).is_file():
        raise ValueError(
            "more than one device needs a program that can be started once for each: a script, `unswayed train`, or "
            "torchrun; not a notebook or python -c"
        )


def on_first(fabric: Fabric, act: Callable[[], _T]) -> _T:
    """Do something in the first process alone, while the others wait; what it returns or raises reaches all.

    Without the second, the others would wait for the first for ever.
    """
    if fabric.world_size == 1:
        return act()
    outcome: tuple[Any, BaseException | None] = (None, None)
    if fabric.is_global_zero:
        try:
            outcome = act(), None
        except Exception as error:
            outcome = None, error
    value, problem = fabric.broadcast(outcome)
    if problem is not None:
        raise problem
    result: _T = value
    return result
