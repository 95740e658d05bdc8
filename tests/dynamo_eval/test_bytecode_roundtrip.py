"""Decoding and assembling gives back the same code object.

`FXDYNAMO_SWEEP=1` takes the whole standard library, torch and transformers (where installed) instead of a sample.
"""

import glob
import importlib.util
import os
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynamo.eval.bytecode import Instruction, assemble, decode, stack_depths
from dynamo.eval.bytecode.exceptions import decode_exception_table, encode_exception_table
from dynamo.eval.bytecode.versions.select import FACTS

STDLIB = Path(os.__file__).parent
SWEEP = os.environ.get("FXDYNAMO_SWEEP") == "1"
SAMPLE = (
    *("argparse.py", "ast.py", "contextlib.py", "dataclasses.py", "enum.py", "functools.py", "inspect.py"),
    *(
        "asyncio/tasks.py",
        "subprocess.py",
        "tarfile.py",
        "typing.py",
        "test/test_grammar.py",
        "test/test_patma.py",
    ),
    *(
        "test/test_exceptions.py",
        "test/test_generators.py",
        "test/test_coroutines.py",
        "test/test_fstring.py",
    ),
    *("test/test_contextlib.py", "test/test_hashlib.py"),  # jumps of two lengths on 3.13
    *("test/test_except_star.py", "test/test_super.py", "test/test_listcomps.py", "test/test_type_params.py"),
)

ATTRIBUTES = [
    name
    for name in dir(types.CodeType)
    if name.startswith("co_") and name not in ("co_positions", "co_lines", "co_lnotab")
]


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def code_objects(paths: list[str]) -> Iterator[types.CodeType]:
    for path in paths:
        source = Path(path).read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                code = compile(source, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):  # the standard library ships files that are wrong on purpose
                continue
        yield from nested(code)


def stdlib_paths() -> list[str]:
    patterns = ("**/*.py",) if SWEEP else SAMPLE
    return [path for pattern in patterns for path in glob.glob(str(STDLIB / pattern), recursive=True)]


def package_paths(name: str) -> list[str]:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{name} is not installed")
    return [
        path
        for place in spec.submodule_search_locations
        for path in glob.glob(os.path.join(place, "**/*.py"), recursive=True)
    ]


def differences(code: types.CodeType) -> list[str]:
    again = assemble(code, decode(code))
    found = [name for name in ATTRIBUTES if getattr(code, name) != getattr(again, name)]
    if "co_stacksize" in found and again.co_stacksize == code.co_stacksize + 1:
        # RETURN_CONST needs no stack where the two instructions that stand for it need one value's.
        assert any(inst.fuse and inst.opname == "LOAD_CONST" for inst in decode(code))
        found.remove("co_stacksize")
    if list(code.co_positions()) != list(again.co_positions()):
        found.append("positions")
    return found


def assert_round_trip(paths: list[str]) -> None:
    assert paths
    count = 0
    for code in code_objects(paths):
        count += 1
        assert differences(code) == [], code
    assert count > 1000


def test_standard_library_comes_back_byte_for_byte() -> None:
    assert_round_trip(stdlib_paths())


@pytest.mark.skipif(not SWEEP, reason="minutes; FXDYNAMO_SWEEP=1 runs it")
@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_large_packages_come_back_byte_for_byte(package: str) -> None:
    assert_round_trip(package_paths(package))


def test_long_operands_and_far_jumps_come_back() -> None:
    lines = [f"x{n} = {n + 1000} + y{n % 300}" for n in range(800)]
    source = "def far(y, c):\n while c():\n" + "".join(f"  {line}\n" for line in lines)
    source += "  try:\n" + "".join(f"   {line}\n" for line in lines) + "  finally:\n   y()\n"
    for code in nested(compile(source, "far.py", "exec")):
        assert differences(code) == []


def test_exception_table_comes_back() -> None:
    for code in code_objects([str(STDLIB / "contextlib.py"), str(STDLIB / "subprocess.py")]):
        assert (
            encode_exception_table(decode_exception_table(code.co_exceptiontable)) == code.co_exceptiontable
        )


def test_decoding_runs_agree_with_dis() -> None:
    """The oracle counts the same lines, and the same offsets are jumped to."""
    import dis

    for code in code_objects([str(STDLIB / "tarfile.py")]):
        ours = decode(code)
        labels = {inst.argval for inst in dis.get_instructions(code) if inst.opcode in dis.hasjrel}
        assert labels == {inst.target.offset for inst in ours if inst.target is not None}
        starts = [line for _, line in dis.findlinestarts(code) if line is not None]
        mine = [inst.starts_line for inst in ours if inst.starts_line is not None]
        assert set(mine) <= set(starts)


def test_names_of_the_normal_form_are_few_and_shared() -> None:
    gone = {
        "CACHE",
        "EXTENDED_ARG",
        "PRECALL",
        "KW_NAMES",
        "RETURN_CONST",
        "LOAD_FAST_LOAD_FAST",
        "FORMAT_VALUE",
    }
    gone |= {physical for pair in FACTS.jump_names.values() for physical in pair} - set(FACTS.jump_names)
    seen: set[str] = set()
    for code in code_objects(stdlib_paths()[:12]):
        seen |= {inst.opname for inst in decode(code)}
    assert not seen & gone
    assert {"CALL", "CALL_KW", "JUMP", "LOAD_METHOD", "FORMAT_SIMPLE", "POP_JUMP_IF_FALSE"} <= seen


def stirred(code: types.CodeType) -> types.CodeType:
    """The same program written differently: nothing joined, a NOP before everything that bears one."""
    instructions: list[Instruction] = []
    for inst in decode(code):
        inst.fuse = False
        inst.arg = inst.arg if inst.argval is None or inst.opname == "CALL_KW" else None
        # A generator looks for RESUME right after where it stopped (CPython, Objects/genobject.c).
        if inst.opname not in ("RESUME", "MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR"):
            instructions.append(Instruction("NOP").copy_place(inst))
        instructions.append(inst)
    consts = [stirred(item) if isinstance(item, types.CodeType) else item for item in code.co_consts]
    for inst in instructions:
        if inst.opname == "LOAD_CONST" and isinstance(inst.argval, types.CodeType):
            inst.argval = consts[code.co_consts.index(inst.argval)]
    return assemble(code, instructions, consts=consts)


def test_a_rewritten_program_does_the_same() -> None:
    source = textwrap.dedent(
        """
        import asyncio
        log = []
        def generate(n):
            for item in range(n):
                try:
                    got = yield item * 2
                    log.append(("got", got))
                except ValueError as error:
                    log.append(str(error))
                finally:
                    log.append("finally")
        def drive():
            gen = generate(4)
            log.append(next(gen))
            log.append(gen.send("hello"))
            log.append(gen.throw(ValueError("thrown")))
            gen.close()
        def delegate():
            yield from generate(2)
            return (yield 7)
        async def wait(n):
            async with Lock() as lock:
                await asyncio.sleep(0)
                return [x async for x in count(n) if x != 1] + [lock]
        async def count(n):
            for x in range(n):
                yield x
        class Lock:
            async def __aenter__(self): return "locked"
            async def __aexit__(self, *exc): log.append(exc[0])
        class Base:
            def hello(self, *args, sep="-", **kwargs): return sep.join(map(str, args)) + repr(sorted(kwargs))
        class Child(Base):
            def hello(self, *args, **kwargs): return "child " + super().hello(*args, **kwargs)
        def nested_try(x):
            try:
                try:
                    return 10 / x
                except ZeroDivisionError:
                    return "zero"
                finally:
                    log.append("inner")
            finally:
                log.append("outer")
        def match(value):
            match value:
                case [1, *rest]: return rest
                case {"a": a, **more}: return a, more
                case str() as s: return f"{s!r:>6}{s:<4}{len(s)}"
                case _: return None
        def groups():
            try:
                raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
            except* ValueError as group:
                log.append(len(group.exceptions))
            except* TypeError:
                log.append("type")
            except* KeyError:
                pass
        def closures():
            total = 0
            def add(x, *, by=3):
                nonlocal total
                total += x * by
                return total
            return [add(n) for n in range(5)], {n: (lambda: n)() for n in range(3)}, total
        def slices(x):
            x = list(range(x)); x[1:3] = [9, 9, 9]; del x[0]
            return x[::2], x[1:], x[-1], 1 < len(x) < 10 and "small" or "large"
        drive()
        out = [list(delegate()), asyncio.run(wait(4)), Child().hello(1, 2, sep="+", b=1), nested_try(0), nested_try(4)]
        out += [match([1, 2, 3]), match({"a": 1, "b": 2}), match("xy"), match(3), groups(), closures(), slices(6)]
        """
    )
    code = compile(source, "program.py", "exec")
    plain: dict[str, object] = {}
    changed: dict[str, object] = {}
    exec(code, plain)
    exec(stirred(code), changed)
    assert changed["out"] == plain["out"]
    assert changed["log"] == plain["log"]
    assert plain["log"]


def test_a_rewritten_function_raises_at_the_same_line_and_column() -> None:
    source = "def f(a):\n    b = a + 1\n    return (b *\n        b.missing)\n"
    namespaces: list[dict[str, object]] = [{}, {}]
    code = compile(source, "place.py", "exec")
    exec(code, namespaces[0])
    exec(stirred(code), namespaces[1])
    places = []
    for namespace in namespaces:
        function = namespace["f"]
        assert callable(function)
        with pytest.raises(AttributeError) as caught:
            function(1)
        frame = caught.value.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        assert frame is not None
        positions = list(frame.tb_frame.f_code.co_positions())
        places.append(positions[frame.tb_lasti // 2])
    assert places[0] == places[1] == (4, 4, 8, 17)


def test_stack_size_follows_the_compiler() -> None:
    """With the template's size out of the way, what we compute equals what the compiler computed, or is a little more."""
    for code in code_objects(
        [str(STDLIB / "inspect.py"), str(STDLIB / "ast.py"), str(STDLIB / "tarfile.py")]
    ):
        depth = stack_depths(decode(code)).maximum
        assert depth <= code.co_stacksize + 1, code
        assert depth >= code.co_stacksize - 4, code


def test_bytecode_needs_neither_torch_nor_site_packages() -> None:
    package = Path(sys.modules[assemble.__module__].__file__ or "").parent
    program = f"""
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location(
            "bytecode", {str(package / "__init__.py")!r}, submodule_search_locations=[{str(package)!r}]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["bytecode"] = module
        spec.loader.exec_module(module)
        def f(x): return x + 1
        f.__code__ = module.assemble(f.__code__, module.decode(f.__code__))
        assert f(1) == 2 and "torch" not in sys.modules
        print("ok")
    """
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "ok\n", done.stderr
