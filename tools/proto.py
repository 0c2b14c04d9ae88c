"""Generate src/antiphon/core/v1 from proto/. A test calls `generate(target)` to check that it is up to date."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "antiphon" / "core" / "v1"


def generate(target: Path) -> None:
    """Write the generated modules into `target`, importable as antiphon.core.v1."""
    sources = sorted((ROOT / "proto").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        code = protoc.main(
            ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={scratch}", f"--pyi_out={scratch}"]
            + [str(source) for source in sources]
        )
        if code != 0:
            raise SystemExit(f"protoc ended with {code}")
        target.mkdir(parents=True, exist_ok=True)
        for made in sorted(Path(scratch).rglob("*_pb2.py*")):
            text = made.read_text().replace("from antiphon.v1 import", "from antiphon.core.v1 import")
            (target / made.name).write_text(text)
    (target / "__init__.py").write_text('"""Generated from proto/antiphon/v1 by `make proto`; do not edit."""\n')


if __name__ == "__main__":
    shutil.rmtree(PACKAGE, ignore_errors=True)
    generate(PACKAGE)
    print(f"generated {PACKAGE.relative_to(ROOT)}", file=sys.stderr)
