"""The namespaces `fx` and `dynamo` hold several distributions only while neither has an __init__."""

from pathlib import Path

import pytest

import dynamo
import fx

PACKAGES = Path(__file__).parents[2] / "packages"


def test_namespaces_have_no_init() -> None:
    assert fx.__file__ is None
    assert dynamo.__file__ is None
    assert not list(PACKAGES.glob("*/src/*/__init__.py"))


def test_every_package_ships_its_types_and_papers() -> None:
    folders = [path for path in PACKAGES.iterdir() if path.is_dir()]
    assert len(folders) == 5
    assert len(list(PACKAGES.glob("*/src/*/*/py.typed"))) == len(folders)
    for folder in folders:
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
            assert (folder / name).stat().st_size > 0, folder / name


def test_build_hooks_are_the_same_file() -> None:
    hooks = [path.read_text() for path in PACKAGES.glob("*/hatch_build.py")]
    assert len(hooks) == 2
    assert len(set(hooks)) == 1


@pytest.mark.parametrize("path", sorted(PACKAGES.glob("*/csrc")), ids=lambda path: path.parent.name)
def test_internal_headers_stay_in_the_package_that_needs_them(path: Path) -> None:
    users = {file.parent.parent.name for file in path.rglob("*.[ch]") if "Py_BUILD_CORE" in file.read_text()}
    assert users <= {"dynamo-eval"}
