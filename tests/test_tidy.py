"""Style as a test: what CONTRIBUTING.md asks for and a machine can tell."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/antiphon")
GENERATED = SOURCE / "core" / "v1"
CODE_FOLDERS = ("src", "tests", "bench", "tools", "examples")
FILE_LINES_MAX = 600
FILE_LINES_USUAL = 400
FUNCTION_LINES_MAX = 70
FOLDER_MODULES_MAX = 25
SUBJECT_SIZE_MAX = 72
#: A docstring that begins like this points at a thing instead of naming it.
POINTING = re.compile(r"(?:What|Who|Whoever|Whether|That|Those|It|One that|The one)\b")
#: Commits after the one that adds this line have short subjects in the imperative.
FIRST_COMMIT = "Hold commit subjects to 72 characters, in the imperative"
#: Folders of tests that are about something else than a package.
OTHER_TESTS = {"attacks", "bench", "docs", "examples", "tools"}

# Put together here, so that this file does not hold what it forbids.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("registry", "npmmirror", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("security", "ubuntu", "com"),
        ("dl-cdn", "alpinelinux", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("index", "crates", "io"),
        ("static", "crates", "io"),
        ("proxy", "golang", "org"),
        ("conda", "anaconda", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
    )
]
# A folder of that name deeper in a path is nobody's machine.
MACHINE_PATH = re.compile(r"(?<![\w.~*-])/" + "(?:root|home|work)/" + "|/" + "tmp/bash_jobs")
SLEEPING = re.compile(r"\b" + "time" + r"(?:\.|\s+import .*\b)" + r"sleep\b")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


# -- the files


@cache
def tracked() -> tuple[Path, ...]:
    """What is or would be in the repository; without git, everything but what .gitignore names."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        output = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        names: Iterable[str] = output.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = walked()
    return tuple(sorted(Path(name) for name in names if name and (ROOT / name).is_file()))


def walked() -> Iterator[str]:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()} | {".git"}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ignored]
        for name in files:
            yield str(Path(folder, name).relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    """A file's text; empty for a binary file."""
    data = (ROOT / path).read_bytes()
    try:
        return "" if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path), filename=str(path))


def python(*folders: str) -> list[Path]:
    """The Python files that people wrote, in these folders."""
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and path.parts[0] in folders and not path.is_relative_to(GENERATED)
    ]


def lines_with(pattern: re.Pattern[str], paths: Iterable[Path]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]


def check_none(problems: Iterable[str]) -> None:
    found = list(problems)
    assert not found, "\n".join(["", *found])


# -- nothing of this machine, and pinned packages


def test_the_files_are_found() -> None:
    assert {Path("pyproject.toml"), Path("tests/test_tidy.py"), SOURCE / "core" / "keys.py"} <= set(tracked())
    assert set(tracked()) <= {Path(name) for name in walked()}


def test_no_file_names_a_package_registry() -> None:
    check_none(lines_with(re.compile("|".join(map(re.escape, REGISTRIES)), re.IGNORECASE), tracked()))


def test_no_file_names_a_path_of_one_machine() -> None:
    check_none(lines_with(MACHINE_PATH, tracked()))


@pytest.mark.parametrize("folder", ["root", "home", "work"])
def test_a_path_of_one_machine_is_told_from_a_folder_of_that_name(folder: str) -> None:
    assert MACHINE_PATH.search(f"see /{folder}/someone")
    assert not MACHINE_PATH.search(f"see tests/{folder}/someone")


LOCKS = [path for path in tracked() if re.fullmatch(r"requirements.*\.lock", path.name)]


@pytest.mark.parametrize("path", LOCKS, ids=str)
def test_every_package_is_pinned_with_its_hash(path: Path) -> None:
    joined = re.sub(r"\\\n", " ", text_of(path))
    entries = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    pinned = re.compile(
        r"[A-Za-z0-9][\w.\-]*(?:\[[\w,\-]+\])?==[^\s;@]+(?:\s*;[^@]*?)?(?:\s+--hash=sha256:[0-9a-f]{64})+\s*"
    )

    check_none(f"{path}: {line[:100]}" for line in entries if not pinned.fullmatch(line) or "://" in line)
    assert entries


def test_the_build_is_pinned_to_the_versions_of_the_lock() -> None:
    wanted = tomllib.loads(text_of(Path("pyproject.toml")))["build-system"]["requires"]
    locked = re.findall(r"^[\w.\-]+==[^\s;]+", text_of(Path("requirements.lock")), re.MULTILINE)
    assert wanted
    assert set(wanted) <= set(locked)


def test_the_javascript_packages_are_pinned_with_their_hashes() -> None:
    path = Path("bench/anchors/package-lock.json")
    packages = {name: package for name, package in json.loads(text_of(path))["packages"].items() if name}

    check_none(f"{path}: {name} has no integrity" for name, package in packages.items() if not package.get("integrity"))
    check_none(
        f"{path}: {name} names where it came from" for name, package in packages.items() if "resolved" in package
    )
    assert LOCKS
    assert packages


# -- the size and shape of code


def test_files_are_short() -> None:
    lengths = {path: len(text_of(path).splitlines()) for path in python(*CODE_FOLDERS)}
    check_none(f"{path}: {count} lines" for path, count in lengths.items() if count > FILE_LINES_MAX)

    source = [count for path, count in lengths.items() if path.is_relative_to(SOURCE)]
    assert sum(count >= FILE_LINES_USUAL for count in source) <= len(source) // 10, "few files have 400 lines or more"


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.slow
def test_functions_are_short() -> None:
    check_none(
        f"{path}:{node.lineno}: {node.name} has {count} lines"
        for path in python(*CODE_FOLDERS)
        for node in functions(path)
        if (count := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    )


def test_every_module_says_what_it_is_for() -> None:
    check_none(f"{path}: no docstring" for path in python("src") if not ast.get_docstring(tree_of(path)))


def test_folders_are_small() -> None:
    counts = Counter(path.parent for path in python("src"))
    check_none(f"{folder}: {count} modules" for folder, count in counts.items() if count > FOLDER_MODULES_MAX)


def test_a_class_name_is_unique_within_its_folder() -> None:
    names: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for path in python("src"):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                names[path.parent, node.name].append(path.name)
    check_none(
        f"{folder}: class {name} in {', '.join(files)}" for (folder, name), files in names.items() if len(files) > 1
    )


@pytest.mark.slow
def test_docstrings_name_things_instead_of_pointing_at_them() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    check_none(
        f"{path}: {text[:60]!r}"
        for path in python("src")
        for node in ast.walk(tree_of(path))
        if isinstance(node, kinds) and POINTING.match(text := ast.get_docstring(node) or "")
    )


def named_in(room: Path) -> set[str]:
    """The modules and rooms of a package."""
    inside = [path.relative_to(room) for path in python("src") if room in path.parents]
    return {path.parts[0].removesuffix(".py") for path in inside} - {"__init__", "__main__"}


def test_every_room_has_a_map() -> None:
    """The docstring of a package names each of its modules and rooms."""
    rooms = [path.parent for path in python("src") if path.name == "__init__.py"]
    maps = {room: set(re.findall(r"\w+", ast.get_docstring(tree_of(room / "__init__.py")) or "")) for room in rooms}
    check_none(
        f"{room}/__init__.py does not name {name}" for room in rooms for name in sorted(named_in(room) - maps[room])
    )


@pytest.mark.slow
def test_the_library_does_not_print() -> None:
    quiet = [path for path in python("src") if path.parts[2] not in ("cli", "cli.py")]
    check_none(
        f"{path}:{node.lineno}: print"
        for path in quiet
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def test_nothing_is_left_to_do_in_comments() -> None:
    check_none(lines_with(UNFINISHED, python("src")))


def test_nothing_sleeps() -> None:
    check_none(lines_with(SLEEPING, python("src", "tests")))


# -- tests


def packages() -> set[str]:
    """Packages with modules in them."""
    paths = [path for path in python("src") if path.is_relative_to(SOURCE)]
    return {path.parts[2] for path in paths if len(path.parts) > 3 and path.name != "__init__.py"}


def test_every_package_has_its_tests() -> None:
    folders = {path.parts[1] for path in python("tests") if len(path.parts) > 2 and path.name.startswith("test_")}

    check_none(f"tests/{name}: no tests of antiphon.{name}" for name in packages() - folders)
    check_none(f"tests/{name}: there is no antiphon.{name}" for name in folders - packages() - OTHER_TESTS)


def asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in ("raises", "fail", "warns") or any(part in name for part in ("check", "verify", "assert", "run_"))


@pytest.mark.slow
def test_every_test_asserts_something() -> None:
    check_none(
        f"{path}:{node.lineno}: {node.name}"
        for path in python("tests")
        for node in functions(path)
        if node.name.startswith("test_") and not any(map(asserts, ast.walk(node)))
    )


# -- layers


def layers_of(table: str) -> list[str]:
    """The packages in the table of layers of a design page, lowest first."""
    rows = re.findall(r"^\| (`antiphon\.\w+`(?:, `antiphon\.\w+`)*) \|", table, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"antiphon\.\w+", row)]


def contract() -> list[str]:
    """The same from import-linter's contract, which has the highest first."""
    settings = tomllib.loads(text_of(Path("pyproject.toml")))["tool"]["importlinter"]
    layered = [contract for contract in settings["contracts"] if "containers" not in contract]
    assert len(layered) == 1
    return re.findall(r"antiphon\.\w+", " ".join(reversed(layered[0]["layers"])))


def test_no_package_imports_one_above_it() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_that_are_checked_are_those_of_the_design() -> None:
    designed, checked = layers_of(text_of(Path("docs/design/README.md"))), contract()

    assert [name for name in designed if name in checked] == [name for name in checked if name in designed]
    assert {f"antiphon.{name}" for name in packages()} <= set(checked)


def test_the_design_page_has_the_layers_of_the_founding_design() -> None:
    founding = ROOT.parent / "shared" / "design" / "DESIGN.md"
    if not founding.is_file():
        pytest.skip("the founding design is not beside this repository")
    added = {f"antiphon.{name}" for name in ("schema", "api", "generate", "testing")}
    planned = {f"antiphon.{name}" for name in ("coherence", "console")}
    ours = [name for name in layers_of(text_of(Path("docs/design/README.md"))) if name not in added]
    assert ours == [name for name in layers_of(founding.read_text()) if name not in planned]


# -- documents


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", ".ci/run", "docs/SPEC-LEDGER.md"]
)
def test_what_everybody_looks_for_is_there(name: str) -> None:
    assert text_of(Path(name)).strip()


def test_the_readme_says_how_to_begin() -> None:
    readme = text_of(Path("README.md"))
    assert "make demo" in readme
    assert "make test" in readme
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads(text_of(Path("pyproject.toml")))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[\[<>=;\s]", line, maxsplit=1)[0] for line in wanted} - {project["name"]}
    page = text_of(Path("docs/design/dependencies.md"))
    check_none(f"docs/design/dependencies.md: nothing on {name}" for name in names if f"`{name}`" not in page)


def prose(path: Path) -> str:
    """Markdown without code, where brackets are no links."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+?)\s*$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name) if name else path
        if not (ROOT / page).exists():
            yield f"{path}: {target}: no such file"
        elif anchor and page.suffix == ".md" and anchor not in anchors(page):
            yield f"{path}: {target}: no such heading"


def test_links_lead_somewhere() -> None:
    pages = [path for path in tracked() if path.suffix == ".md"]
    assert pages
    check_none(problem for path in pages for problem in broken_links(path))


# -- commits


def subjects() -> list[str]:
    """The subjects of the commits after the one that introduced this rule; none without history."""
    listing = ["git", "log", "--no-merges", "--format=%s"]
    try:
        found = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []
    return found[: found.index(FIRST_COMMIT)] if FIRST_COMMIT in found else []


#: Verbs that end like a participle, or like a third person, and are imperatives all the same.
VERBS = (
    "Embed|Feed|Seed|Speed|Need|Heed|Bring|Ring|String|Discuss|Pass|Process|Press|Address|Express|Compress|Focus|Miss"
)
IMPERATIVE = re.compile(rf"(?:{VERBS}|[A-Z](?!\w*(?:ed|ing|s)\b)[a-z-]+) \S(?:.*[^.])?")


def test_commit_subjects_are_short_and_imperative() -> None:
    found = subjects()
    if not found:
        pytest.skip("no commits after the rule are at hand")
    check_none(f"{subject!r}: {len(subject)} characters" for subject in found if len(subject) > SUBJECT_SIZE_MAX)
    check_none(
        f"{subject!r} is no sentence like 'Add a thing'" for subject in found if not IMPERATIVE.fullmatch(subject)
    )


@pytest.mark.parametrize(
    "subject", ["Added a thing", "Adds a thing", "API tests", "api: more", "Adding it", "rename it", "Rename it."]
)
def test_other_subjects_are_told_apart(subject: str) -> None:
    assert not IMPERATIVE.fullmatch(subject)
    assert all(map(IMPERATIVE.fullmatch, ("Rename the feed store", "Embed the child", "Speed up appends", "Fix C")))
