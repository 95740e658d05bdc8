"""Build hook: compile ``csrc/*.c`` into the one extension module of this package, in place.

The wheel takes the library as an artifact; an editable install finds it through the ``.pth`` entry
for ``src``.  The file name carries the interpreter's ABI tag, so libraries for several Python
versions lie side by side; so do the object files, in ``build/`` under that tag, for two interpreters
may build in one tree at once.  ``build_ext`` leaves a library alone that is newer than its sources.
Both packages that hold C carry this same file; the module's name comes from pyproject.toml.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS: Final = (
    "-std=c11",
    "-O3",
    "-fno-plt",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
)


class ExtensionHook(BuildHookInterface[BuilderConfig]):
    """Build the extension that ``[tool.hatch.build.targets.wheel.hooks.custom] module`` names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before hatchling collects files, and add the library to them."""
        library = self._compile().relative_to(self.root)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"/{library.as_posix()}")

    def clean(self, versions: list[str]) -> None:
        """Delete the libraries of every Python version."""
        module = Path(self.root, "src", *self._module.split("."))
        for library in module.parent.glob(f"{module.name}.*.so"):
            library.unlink()

    @property
    def _module(self) -> str:
        return str(self.config["module"])

    def _compile(self) -> Path:
        from setuptools import Distribution, Extension

        csrc = Path(self.root, "csrc")
        extension = Extension(
            self._module,
            sources=sorted(map(str, csrc.glob("*.c"))),
            depends=sorted(map(str, csrc.glob("*.h"))),
            include_dirs=[str(csrc)],
            extra_compile_args=list(FLAGS),
        )
        build = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        build.build_lib = str(Path(self.root, "src"))
        build.build_temp = str(Path(self.root, "build", sysconfig.get_config_var("SOABI")))
        build.ensure_finalized()
        build.run()
        return Path(build.get_ext_fullpath(self._module))
