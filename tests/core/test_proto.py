"""The generated code that is shipped is what the schemas in proto/ give."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_generated_code_is_current(root: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("antiphon_tools_proto", root / "tools" / "proto.py")
    assert spec is not None
    assert spec.loader is not None
    proto = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(proto)

    proto.generate(tmp_path)

    shipped = {path.name: path.read_text() for path in (root / "src/antiphon/core/v1").glob("*.py*")}
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(shipped) == sorted(made), "run `make proto`"
    for name, text in made.items():
        assert shipped[name] == text, f"{name} is not what proto/ gives: run `make proto`"
