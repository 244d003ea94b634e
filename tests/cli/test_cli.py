"""The command line, as a stranger uses it: in a process of its own."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import unswayed


def run(*args: str, columns: int = 120, code: int = 0) -> str:
    """Run ``unswayed`` and return what it printed; on an expected failure, what it said on stderr."""
    command = [sys.executable, "-m", "unswayed", *args]
    environment = {"COLUMNS": str(columns), "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("-h",),
        ("--version",),
        ("losses", "--help"),
        ("theory", "--help"),
        ("losses",),
        ("noise", "make", "-h"),
        ("data", "check", "--help"),
    ],
)
def test_what_needs_no_torch_does_not_import_it(args: tuple[str, ...]) -> None:
    script = (
        "import sys; from unswayed.cli import main; sys.argv = ['unswayed', *{args!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {{'torch', 'numpy', 'matplotlib'}} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script.format(args=args)], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("losses", "--help")])
def test_help_answers_in_half_a_second(args: tuple[str, ...]) -> None:
    """Of the processor's time: a machine that does other things at the same time says nothing about the program."""
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*args)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert 0 < min(seconds) < 0.5


def test_version() -> None:
    assert run("--version").strip() == f"unswayed {unswayed.__version__}"


def test_table_names_every_loss_with_its_formula() -> None:
    table = run("losses", columns=220)
    for name in unswayed.list_losses():
        assert re.search(rf"^ {name}\b", table, re.M), name
    # brackets are formulas, not markup
    assert "[log(a u + 1) - log 2]^2 / a" in table
    assert "a [k=y]" in table


def test_one_loss_in_detail() -> None:
    text = run("losses", "vce")
    for piece in ("-log(u + a)", "(1+a)/a", "a >= 0", "AAAI 2026", "5*nce + vce(a=0.4)", r"-\log(u+a)"):
        assert piece in text


def test_losses_as_json() -> None:
    entries = json.loads(run("losses", "--json"))
    assert [entry["name"] for entry in entries] == unswayed.list_losses()
    (vsl,) = json.loads(run("losses", "vsl", "--json"))
    assert vsl["parameters"][0]["range"] == "0 < a <= 1"
    (row,) = [p for p in vsl["presets"] if (p["method"], p["dataset"]) == ("nce+vsl", "cifar100")]
    assert any("asymmetric condition" in note for note in row["notes"])
    assert row["l1"] == 5e-6


def test_theory_json_has_the_promised_keys() -> None:
    facts = json.loads(run("theory", "5*nce + vsl(a=0.65)", "--noise", "asymmetric(0.2)", "--classes", "100", "--json"))
    assert facts["holds"] is False
    assert facts["ratio"] == pytest.approx(5.94522, rel=1e-5)
    assert facts["threshold"] == pytest.approx(4)
    assert facts["margin"] == pytest.approx(-1.94522, rel=1e-5)
    assert facts["bound"] == pytest.approx(11.54, abs=0.01)


def test_theory_reads_as_sentences_and_figures() -> None:
    text = run("theory", "vce(a=1)", "--noise", "symmetric(0.8)", "--classes", "10")
    assert "vce(a=1) is certified against symmetric(0.8)" in text
    assert re.search(r"threshold of the noise\s+2.25", text)
    assert re.search(r"variation ratio v\s+∞", run("theory", "ce"))
    assert re.search(r"margin\s+-∞", run("theory", "ce", "--noise", "symmetric(0.8)", "-k", "10"))
    assert json.loads(run("theory", "nce", "--json"))["ratio"] is None


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_plots_are_files_of_their_kind(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"slopes.{suffix}"
    assert str(file) in run("losses", "ce", "vce(a=4)", "--plot", str(file), "--normalise")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert file.read_bytes().startswith(start)
    assert file.stat().st_size > 5000


def test_plot_of_a_certificate(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "slopes.svg"
    run("theory", "nce + 10*vce(a=4)", "--noise", "symmetric(0.8)", "-k", "10", "--plot", str(file))
    assert file.exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("losses", "vcee"), "did you mean 'vce'"),
        (("losses", "vce(a=4)"), "unknown loss 'vce(a=4)'; did you mean 'vce'"),
        (("losses", "nce", "--plot", "a.png"), "no function of the given class's probability alone"),
        (("losses", "ce", "--plot", "a.bmp"), ".png, .pdf, .svg"),
        (("losses", "ce", "--plot", "nowhere/a.png"), "there is no folder 'nowhere'"),
        (("theory", "vce(a=-1)"), "a >= 0"),
        (("theory", "nce + vcee"), "      ^"),
        (("theory", "vce", "--noise", "symmetric(0.2)"), "--classes K"),
        (("theory", "vce", "--noise", "symmetric(2)", "-k", "10"), "0 <= rate <= 1"),
        (("theory", "vce", "--noise", "matrix(none.csv)"), "no such file"),
        (("theory", "nce", "--plot", "a.png"), "no slope to draw"),
    ],
)
def test_mistakes_get_one_message_and_exit_code_2(args: tuple[str, ...], message: str) -> None:
    assert message in run(*args, code=2)
    assert not Path("a.png").exists()


@pytest.mark.parametrize("args", [("lossess",), ("losses", "--jsn"), ("theory",), ("theory", "vce", "-k", "1")])
def test_usage_errors_exit_with_2(args: tuple[str, ...]) -> None:
    assert "Usage" in run(*args, code=2)


def test_without_typer_the_program_says_what_to_install() -> None:
    script = "import sys; sys.modules['typer'] = None; from unswayed.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "pip install 'unswayed[cli]'" in done.stderr
