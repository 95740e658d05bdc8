"""CPython's own tests pass when every module loaded from source was decoded and assembled first.

They run in a process of their own, without torch, with the loader of the standard library changed.
"""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dynamo.eval.bytecode import assemble

PROGRAM = """
    import importlib.util, sys, types, unittest
    from importlib.machinery import SourceFileLoader

    _, package, module, *tests = sys.argv
    spec = importlib.util.spec_from_file_location(
        "bytecode", package + "/__init__.py", submodule_search_locations=[package]
    )
    bytecode = importlib.util.module_from_spec(spec)
    sys.modules["bytecode"] = bytecode
    spec.loader.exec_module(bytecode)
    written = 0

    def again(code):
        global written
        written += 1
        consts = tuple([again(c) if isinstance(c, types.CodeType) else c for c in code.co_consts])
        code = code.replace(co_consts=consts)
        return bytecode.assemble(code, bytecode.decode(code))

    def get_code(self, name):
        path = self.get_filename(name)
        return again(self.source_to_code(self.get_data(path), path))

    SourceFileLoader.get_code = get_code
    sys.modules.pop(module, None)
    suite = unittest.defaultTestLoader.loadTestsFromNames(tests)
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    print("passed" if result.wasSuccessful() and result.testsRun and written > 100 else "failed")
"""


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("contextlib", ["test.test_contextlib", "test.test_with"]),
        ("textwrap", ["test.test_textwrap"]),
        ("typing", ["test.test_generators", "test.test_raise", "test.test_exception_variations"]),
        ("string", ["test.test_grammar", "test.test_scope"]),
    ],
)
def test_cpython_tests_pass_on_assembled_modules(module: str, tests: list[str]) -> None:
    if importlib.util.find_spec("test") is None or any(
        importlib.util.find_spec(name) is None for name in tests
    ):
        pytest.skip("this Python comes without its tests")
    package = Path(sys.modules[assemble.__module__].__file__ or "").parent
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(PROGRAM), str(package), module, *tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr
