"""The pages for users and the examples pass `mypy --strict` and pyright, like an application that copies them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_examples import examples_in
from tests.docs.test_tutorial import PAGE as TUTORIAL, steps_in

SAMPLE = "recipes.py"
#: Every block of these is a program; the steps of the tutorial are one program.
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("api", "parts", "queries", "examples/planner"))]


@pytest.fixture(scope="module")
def code(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, each block of the pages as a file, and the steps of the tutorial as one."""
    folder = tmp_path_factory.mktemp("code")
    shutil.copytree(root / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for page in PAGES:
        blocks = list(examples_in(page, (root / page).read_text()))
        assert blocks
        for block in blocks:
            assert not re.search(r"^>>> ", block.code, re.MULTILINE)
            (folder / f"{Path(page).stem.lower()}_{block.line}.py").write_text(block.code)
    steps = "\n".join(step.code for step in steps_in((root / TUTORIAL).read_text()))
    (folder / "tutorial.py").write_text(steps)
    assert steps
    return folder


def check_clean(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sample_application_is_small(root: Path) -> None:
    assert len((root / "examples" / SAMPLE).read_text().splitlines()) <= 150


@pytest.mark.slow
def test_mypy_finds_nothing(root: Path, code: Path) -> None:
    settings = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache")]
    # From the root, so that what `make lint` has cached of the package is used.
    check_clean(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            *settings,
            *map(str, [code / "examples" / SAMPLE, *sorted(code.glob("*.py"))]),
        ],
        root,
    )


@pytest.mark.slow
def test_pyright_finds_nothing(root: Path, code: Path) -> None:
    if shutil.which("node") is None:
        assert "CI" not in os.environ, "CI machines have Node, which pyright needs"
        pytest.skip("pyright needs Node, and there is none on the PATH")
    (code / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{root / "src"}"], "pythonVersion": "3.11"}}')
    check_clean([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", "."], code)
