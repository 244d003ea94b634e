"""The engine of many machines: every piece of work is a task of Ray, with the resources it needs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from unswayed.bench.sources import Sources
from unswayed.bench.store import Store
from unswayed.bench.work import Outcome, Task, work
from unswayed.training import Stopped
from unswayed.training.stopping import asked_to_stop

# How often to look for a signal, and how long workers may take to write a checkpoint, in seconds.
_LOOK, _PATIENCE = 0.5, 120.0


def connect(address: str | None) -> Any:
    """Return ray, connected to the cluster at ``address`` (``auto``: the one that runs here), or to one of its own."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(f"--engine ray needs Ray: pip install 'unswayed[ray]' ({error})") from None
    own: dict[str, Any] = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address or "local", logging_level="ERROR", log_to_driver=False, **own)
    except ConnectionError as error:
        raise ValueError(
            f"--address {address}: there is no cluster to be reached ({str(error).splitlines()[0]})"
        ) from None
    return ray


def run_ray(
    ray: Any,
    tasks: Sequence[Task],
    sources: Sources,
    store: Store,
    *,
    gpus: float,
    tell: Callable[[list[Outcome]], None],
) -> None:
    """Do tasks on a cluster, each on one processor and ``gpus`` of a GPU; ``tell`` hears of what comes of them.

    What a lost worker or node was at is done again, from its last checkpoint; so folder and data must be at one place
    on all machines. Runs that another process is at are waited for. Ctrl-C and SIGTERM stop all tasks, after a
    checkpoint.
    """
    # Workers have a working directory of their own.
    store = Store(store.path.resolve())
    places = tuple((name, str(Path(place).resolve()) if place else "") for name, place in sources.places.items())
    remote = ray.remote(_task).options(num_cpus=1, num_gpus=gpus, max_retries=-1)
    elsewhere: dict[str, Task] = {}
    with asked_to_stop() as asked:
        at = {remote.remote(task, places, sources.embeddings, store): task for task in tasks}
        while at or elsewhere:
            if asked:
                for ref in at:
                    ray.cancel(ref)
                ray.wait(list(at), num_returns=len(at), timeout=_PATIENCE)
                raise Stopped(asked[0], "; the same command goes on from there")
            if not at:
                time.sleep(_LOOK)
            for ref in ray.wait(list(at), timeout=_LOOK)[0] if at else ():
                task = at.pop(ref)
                try:
                    outcomes = ray.get(ref)
                except ray.exceptions.RayError as error:
                    outcomes = [_failed(one.id, store, error) for one in task.experiments]
                lone = {one.id: replace(task, experiments=(one,)) for one in task.experiments}
                elsewhere |= {o.id: lone[o.id] for o in outcomes if o.name == "elsewhere"}
                tell([outcome for outcome in outcomes if outcome.name != "elsewhere"])
            for id, task in list(elsewhere.items()):
                state = store.state(id).name
                if state == "running":
                    continue
                del elsewhere[id]
                if state == "done":
                    tell([Outcome(id, "elsewhere", 0.0)])
                else:
                    at[remote.remote(task, places, sources.embeddings, store)] = task


def _task(task: Task, places: tuple[tuple[str, str], ...], embeddings: bool, store: Store) -> list[Outcome]:
    import torch

    torch.set_num_threads(1)
    return work(task, _sources(places, embeddings), store)


@cache
def _sources(places: tuple[tuple[str, str], ...], embeddings: bool) -> Sources:
    """Return the data sets of this process, which does one task after another and reads each set once."""
    return Sources(dict(places), embeddings)


def _failed(id: str, store: Store, error: Exception) -> Outcome:
    """Return a failure, unless the run came to its end before."""
    if store.state(id).name == "done":
        return Outcome(id, "done", 0.0)
    store.fail(id, error)
    return Outcome(id, "failed", 0.0, str(error).splitlines()[0])
