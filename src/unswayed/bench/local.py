"""The engine of one machine: worker processes, each with its share of the threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from unswayed.bench.sources import Sources
from unswayed.bench.store import Store
from unswayed.bench.work import Outcome, Task, work
from unswayed.training import Stopped
from unswayed.training.stopping import asked_to_stop

# How often the parent looks for a signal, in seconds.
_LOOK = 0.5


def cores() -> int:
    """Return how many processors this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(workers: int) -> int:
    """Return how many threads each of some workers has.

    >>> threads_each(10_000)
    1
    """
    return max(1, cores() // workers)


def usual_workers() -> int:
    """Return a worker for each GPU, or for each processor where there is none.

    >>> usual_workers() >= 1
    True
    """
    import torch

    return torch.cuda.device_count() or cores()


def run_local(
    tasks: Sequence[Task],
    sources: Sources,
    store: Store,
    *,
    workers: int,
    tell: Callable[[list[Outcome]], None],
) -> None:
    """Do tasks in ``workers`` processes; ``tell`` hears of what comes of them.

    A worker that dies fails the cells it was at, and another one takes its place. Ctrl-C and SIGTERM stop all of them,
    after a checkpoint; :class:`~unswayed.training.Stopped` is then raised.
    """
    import torch

    workers = max(1, min(workers, len(tasks)))
    threads, gpus = threads_each(workers), torch.cuda.device_count()
    waiting = list(tasks)[::-1]
    with asked_to_stop() as asked, _ended() as crew:
        while waiting or any(worker.task is not None for worker in crew):
            if asked:
                _stop(crew)
                raise Stopped(asked[0], "; the same command goes on from there")
            while waiting and len(crew) < workers:
                place = min(set(range(workers)) - {worker.place for worker in crew})
                device = f"cuda:{place % gpus}" if gpus else "auto"
                crew.append(_Worker.start(place, sources, store, device, threads))
            for worker in crew:
                if worker.task is None and waiting:
                    worker.give(waiting.pop())
            ready = wait([worker.line for worker in crew], _LOOK)
            for worker in [w for w in crew if w.line in ready]:
                outcomes = worker.hear()
                if outcomes is None:
                    crew.remove(worker)
                    # Where a signal has come too, the worker was stopped, and did not fail.
                    if not asked:
                        tell(_died(worker, store))
                    worker.task = None
                else:
                    worker.task = None
                    tell(outcomes)


@dataclass(eq=False)
class _Worker:
    """A process, the line to it, and what it is at."""

    place: int
    process: Any
    line: Connection
    task: Task | None = None

    @classmethod
    def start(cls, place: int, sources: Sources, store: Store, device: str, threads: int) -> _Worker:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        # What has been read is not sent along: it may be large, and each process reads it once.
        bare = Sources(sources.places, sources.embeddings)
        process = context.Process(target=_serve, args=(theirs, bare, store, device, threads), daemon=False)
        process.start()
        # The process has the only other end, so that its death is heard on this one.
        theirs.close()
        return cls(place, process, mine)

    def give(self, task: Task | None) -> None:
        self.task = task
        try:
            self.line.send(task)
        except OSError:
            # It has died; hear() will tell.
            return

    def hear(self) -> list[Outcome] | None:
        """Return what has come of its task; ``None`` if the process has ended instead."""
        try:
            found: list[Outcome] = self.line.recv()
        except (EOFError, OSError):
            self.process.join()
            return None
        return found


def _serve(line: Connection, sources: Sources, store: Store, device: str, threads: int) -> None:
    """Be a worker: do tasks until there are no more."""
    # Ctrl-C goes to all processes of a group: here, the parent passes it on, so that no worker hears it twice.
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    import torch

    torch.set_num_threads(threads)
    # Where the parent is gone, there is nobody to listen, and nothing more to do.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, Stopped):
        while (task := line.recv()) is not None:
            line.send(work(task, sources, store, device))


@contextmanager
def _ended() -> Iterator[list[_Worker]]:
    """Give a list of workers that are sent home at the end, or killed if there is an error."""
    crew: list[_Worker] = []
    try:
        yield crew
    except BaseException:
        for worker in crew:
            worker.process.kill()
        raise
    finally:
        for worker in crew:
            if worker.process.is_alive():
                worker.give(None)
            worker.process.join()
            worker.line.close()


def _stop(crew: list[_Worker]) -> None:
    """Ask all workers to write a checkpoint and end; a second signal ends this by an exception."""
    for worker in crew:
        worker.process.terminate()
    for worker in crew:
        while worker.process.is_alive():
            worker.process.join(_LOOK)


def _died(worker: _Worker, store: Store) -> list[Outcome]:
    """Fail the cells of a worker that is no more, those that it had not brought to an end."""
    code = worker.process.exitcode
    name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
    reason = f"the process that ran this died ({name})"
    if name == "SIGKILL":
        reason += "; perhaps there was not enough memory: try fewer --workers"
    found = []
    for one in worker.task.experiments if worker.task else ():
        state = store.state(one.id).name
        if state in ("open", "begun"):
            store.fail(one.id, reason)
            found.append(Outcome(one.id, "failed", 0.0, reason))
        else:
            found.append(Outcome(one.id, "elsewhere" if state == "running" else state, 0.0))
    return found
