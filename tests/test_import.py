"""What importing costs, and what it does not import."""

import subprocess
import sys

SCRIPT = """
import sys, time
import torch
start = time.process_time()
import unswayed
imported = time.process_time() - start
unswayed.NCE() + 10 * unswayed.VCE(a=4)
unswayed.bounded("gce(q=0.5)", v=4)
built = time.process_time() - start
print(imported, built, *(name for name in {heavy!r} if name in sys.modules))
"""
HEAVY = ["torch._dynamo", "torch._inductor", "typer", "rich", "matplotlib", "polars", "sklearn", "PIL", "plotly"]


def test_importing_costs_little_more_than_torch_even_with_the_first_losses() -> None:
    command = [sys.executable, "-c", SCRIPT.format(heavy=HEAVY)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    imported, built = (min(float(run[i]) for run in runs) for i in (0, 1))
    assert imported < 0.15
    assert built < 0.15
    assert runs[0][2:] == []
