"""Builds src/antiphon/feed/_hashing.clib on installing. Without a compiler nothing is built, and Python serves."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/antiphon/feed/_hashing.c")


class HashingBuildHook(BuildHookInterface[Any]):
    """Compiles one C file; a wheel that holds it is for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        source = Path(self.root) / SOURCE
        library = source.with_suffix(".clib")  # not .so: it is no Python module
        compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or shutil.which("cc")
        if compiler is None:
            sys.stderr.write("antiphon: no C compiler here; hashing will be done in Python, which is slower\n")
            return
        made = library.with_suffix(".new")
        command = [compiler, "-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(made), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(f"antiphon: {SOURCE} did not compile; hashing will be done in Python:\n{done.stderr}")
            return
        made.replace(library)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(library.relative_to(self.root)))
