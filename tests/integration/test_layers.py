"""What each package may import, as the README's table says it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "packages"
TORCH_FREE = {"fx.ir"}


def allowed_by_readme() -> dict[str, set[str]]:
    """The README's package table: import name → what it may import of the project and of torch."""
    table: dict[str, set[str]] = {}
    for line in (ROOT / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"`(fx|dynamo)\.\w+`", cells[1]):
            table[cells[1].strip("`")] = set(re.findall(r"`([\w.]+)`", cells[3]))
    return table


ALLOWED = allowed_by_readme()


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def portion(name: str) -> str | None:
    """The part of the table that an imported name belongs to, or None for anything else."""
    head = ".".join(name.split(".")[:2])
    if head in ALLOWED:
        return head
    return "torch" if name.split(".")[0] == "torch" else None


def test_the_readme_lists_all_five_packages() -> None:
    assert set(ALLOWED) == {"fx.ir", "fx.codegen", "fx.trace", "dynamo.guards", "dynamo.eval"}


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_the_readme_allows(package: str) -> None:
    sources = list(PACKAGES.glob(f"*/src/{package.replace('.', '/')}/**/*.py"))
    assert sources
    for path in sources:
        met = {portion(name) for name in imports_of(path)} - {None, package}
        assert met <= ALLOWED[package], f"{path.relative_to(ROOT)} imports {met - ALLOWED[package]}"


def test_python_versions_are_told_apart_only_where_they_should_be() -> None:
    places = re.compile(r"/(bytecode|interpret)/versions/|/csrc/compat")
    sign = re.compile(r"sys\.version_info|PY_VERSION_HEX")
    found = [
        str(path.relative_to(ROOT))
        for pattern in ("*/src/**/*.py", "*/csrc/*.[ch]")
        for path in PACKAGES.glob(pattern)
        if sign.search(path.read_text()) and not places.search(path.as_posix())
    ]
    assert found == []


def test_this_python_is_the_one_that_the_environment_names() -> None:
    named = re.search(r"py\.?(3\.\d+)", Path(sys.prefix).name)
    if named is None:
        pytest.skip("not an environment of the version matrix")
    assert named.group(1) == f"{sys.version_info.major}.{sys.version_info.minor}"
