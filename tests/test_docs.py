"""What README and docs show runs, and prints what they say it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_code_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    examples = torch.utils.data.TensorDataset(torch.eye(3).repeat(500, 1), torch.arange(3).repeat(500))
    names = {
        "logits": torch.randn(8, 10, requires_grad=True),
        "target": torch.randint(10, (8,)),
        "trust": torch.rand(8),
        "my_dataset": examples,
        "my_test_set": examples,
        "my_network": torch.nn.Linear(3, 3),
    }
    for code in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(code, names)
    assert names["loss"].shape == (8,)
    assert names["result"].last["test_accuracy"] == 1
    assert (tmp_path / "runs/mine/result.json").is_file()


def commands() -> list[tuple[str, str]]:
    """Each ``$ unswayed ...`` line of the README with what is shown below it."""
    blocks = re.findall(r"(?:^    .*\n)+", README, re.M)
    found = []
    for block in blocks:
        lines = [line[4:] for line in block.splitlines()]
        for i, line in enumerate(lines):
            if line.startswith("$ unswayed"):
                shown = [text for text in lines[i + 1 :] if text]
                cut = next((n for n, text in enumerate(shown) if text.startswith("$")), len(shown))
                found.append((line[2:].split(" # ")[0].strip(), " ".join(shown[:cut])))
    return found


@pytest.mark.parametrize(("command", "shown"), commands(), ids=[c for c, _ in commands()])
def test_readme_commands_print_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    args = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "unswayed", *args], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert " ".join(shown.split()) in " ".join(done.stdout.split())


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target
