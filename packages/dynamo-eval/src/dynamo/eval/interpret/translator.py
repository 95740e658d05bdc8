"""`InstructionTranslator`: runs a frame's bytecode symbolically, one `step` per instruction.

It stops at ``return`` or at an instruction that Python must run. A break in a followed callee is a break at
the root's call instruction: what the callee did so far cannot be taken back, so the capture starts again and stops
one step earlier (`RestartCapture`).
"""

import inspect
import os
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any, Final, Literal, final

import torch

from dynamo.eval.errors import BreakReason, GraphBreak, PythonRaise, RestartCapture
from dynamo.eval.interpret.code_view import DecodedCode, decoded
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.handlers import HANDLERS
from dynamo.eval.interpret.unwinding import ends_generator, unwind
from dynamo.eval.output_graph import OutputGraph
from dynamo.eval.settings import Config
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.function import FrameParts, FunctionVariable, bind
from dynamo.eval.variables.generator import GeneratorVariable
from dynamo.eval.variables.lookup import NoSuchAttribute
from dynamo.eval.variables.wrap import Builder
from dynamo.guards import CellSource, ClosureSource, LocalSource

TORCH_ROOT: Final = os.path.dirname(torch.__file__) + os.sep
#: torch's own Python that capture follows like user code
FOLLOWED: Final = tuple(
    os.path.join(TORCH_ROOT, *path)
    for path in (
        ("nn", ""), ("autograd", "grad_mode.py"), ("amp", "autocast_mode.py"), ("cpu", "amp", "autocast_mode.py"),
        ("utils", "_contextlib.py"), ("distributions", ""), ("backends", ""),
    )
)  # fmt: skip
_ASYNCHRONOUS: Final = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, slots=True)
class Stop:
    """Where symbolic execution ended: at ``return`` (`reason` None) or before instruction `index`."""

    index: int
    reason: BreakReason | None = None


#: torch's own Python whose frames are captured where they start: the classes of modules
CAPTURED: Final = (os.path.join(TORCH_ROOT, "nn", "modules") + os.sep,)


_PROLOGUE: Final = ("RESUME", "MAKE_CELL", "COPY_FREE_VARS")


def is_torch_internal(code: CodeType) -> bool:
    """Whether code is part of torch and a frame of it, called by Python, runs plainly."""
    filename = code.co_filename
    return filename.startswith(TORCH_ROOT) and not filename.startswith(CAPTURED)


def is_not_followed(code: CodeType) -> bool:
    """Whether code is part of torch and a call of it in captured code breaks the graph."""
    filename = code.co_filename
    return filename.startswith(TORCH_ROOT) and not filename.startswith(FOLLOWED)


class InstructionTranslatorBase(SymbolicFrame):
    """What root and followed frames share."""

    def __init__(
        self,
        view: DecodedCode,
        output: OutputGraph,
        settings: Config,
        namespace: dict[str, Any],
        builtins: dict[str, Any],
        depth: int,
    ) -> None:
        super().__init__(view, output, namespace, builtins)
        self.settings = settings
        self.depth = depth
        self.lineno = view.code.co_firstlineno

    def place(self) -> tuple[str, int] | None:
        """File and line that run now; None in code of torch."""
        return None if is_torch_internal(self.code) else (self.code.co_filename, self.lineno)

    def step(self) -> None:
        """Run one instruction.

        Raises:
            GraphBreak: Python must run it.
        """
        inst = self.instructions[self.ip]
        self.ip += 1
        if inst.positions[0] is not None:
            self.lineno = inst.positions[0]
        if inst.handler is not None and not self.output.guarded_block and not ends_generator(inst.handler):
            entry = self.instructions[self.view.index[inst.handler.target] + 1 :]
            self.output.guarded_block = not (entry and entry[0].opname == "WITH_EXCEPT_START")
        handler = HANDLERS.get(inst.opname)
        if handler is None:
            raise GraphBreak(f"missing: {inst.opname}", "this opcode is not known")
        handler(self, inst)

    def guarded_step(self) -> None:
        """Run one instruction; an exception that a handler of this frame takes goes on there.

        Raises:
            PythonRaise: no handler takes it.
            GraphBreak: Python must run the instruction.
        """
        inst = self.instructions[self.ip]
        try:
            self.step()
        except PythonRaise as error:
            if not unwind(self, inst, error):
                raise

    def inline(
        self, function: VariableTracker, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Follow a call into a user function.

        Raises:
            GraphBreak: it cannot be followed, or something in it cannot be captured.
        """
        if not isinstance(function, FunctionVariable):
            raise GraphBreak(f"calling {function.describe()}")
        parts = function.parts(self)
        code = parts.code
        if code.co_flags & _ASYNCHRONOUS:
            raise GraphBreak(f"calling {function.describe()}, a coroutine or an asynchronous generator")
        if is_not_followed(code):
            raise GraphBreak(f"calling {code.co_qualname}() inside torch")
        if self.output.is_disabled(code):
            raise GraphBreak(f"calling {function.describe()}, which is marked to run plainly")
        if self.depth >= self.settings.inline_depth_limit:
            raise GraphBreak(f"calls nested deeper than {self.settings.inline_depth_limit}")
        child = InliningInstructionTranslator(self, parts, bind(parts, args, kwargs))
        self.output.inlined += 1
        result = child.run()
        if not code.co_flags & inspect.CO_GENERATOR:
            return result
        generator = GeneratorVariable(child, code.co_name, self.output.root_step)
        self.output.generators.append(generator)
        return generator


@final
class InliningInstructionTranslator(InstructionTranslatorBase):
    """A frame of a function that the captured code calls."""

    def __init__(
        self, parent: InstructionTranslatorBase, parts: FrameParts, bound: dict[str, VariableTracker]
    ) -> None:
        super().__init__(
            decoded(parts.code),
            parent.output,
            parent.settings,
            parts.namespace,
            _builtins_of(parts.namespace, parent.builtins),
            parent.depth + 1,
        )
        self.namespace_source = parts.namespace_source
        if parts.namespace is parent.output.root_namespace:
            self.namespace_source = None
        self.locals = bound
        self.cells = dict(parts.cells)

    def resume(
        self, sent: VariableTracker, error: PythonRaise | None
    ) -> tuple[Literal["yielded", "returned"], VariableTracker]:
        """Go on behind the ``yield``, or with `error` raised there, to the next one or the end.

        Raises:
            PythonRaise: an exception left the frame.
        """
        self.yielded = None
        if error is None:
            self.push(sent)
        elif not unwind(self, self.instructions[self.ip - 1], error):
            raise error
        value = self.run()
        return ("returned" if self.yielded is None else "yielded"), value

    @property
    def delegates(self) -> bool:
        """Whether the frame is suspended in a ``yield from``."""
        after = self.instructions[self.ip]
        return after.opname == "RESUME" and (after.arg or 0) & 3 == 2

    @property
    def has_blocks(self) -> bool:
        """Whether the code has a ``try`` or ``with`` block."""
        handlers = [inst.handler for inst in self.instructions if inst.handler is not None]
        return any(not ends_generator(each) and each.target.opname != "CLEANUP_THROW" for each in handlers)

    @property
    def is_guarded(self) -> bool:
        """Whether the frame is suspended where leaving it runs code: in a ``try`` or ``with``."""
        handler = self.instructions[self.ip - 1].handler
        if handler is not None and handler.target.opname == "CLEANUP_THROW":
            handler = handler.target.handler
        return handler is not None and not ends_generator(handler)

    def run(self) -> VariableTracker:
        """Run to the end, or to a ``yield``, and give what the function returns or yields.

        Raises:
            PythonRaise: an exception that no handler of the frame takes.
            GraphBreak: an instruction that Python must run.
        """
        output, limit = self.output, self.settings.loop_limit
        output.frames.append(self.place)
        try:
            while self.returned is None and self.yielded is None:
                output.steps += 1
                if output.steps > limit:
                    raise GraphBreak(
                        f"more than {limit} steps in one capture", "the loop is too long to unroll"
                    )
                self.guarded_step()
        except NoSuchAttribute as error:
            raise self._placed(GraphBreak(error.what, error.hint)) from error
        except GraphBreak as error:
            self._placed(error)
            raise
        finally:
            output.frames.pop()
        result = self.yielded if self.returned is None else self.returned
        assert result is not None
        return result

    def _placed(self, error: GraphBreak) -> GraphBreak:
        if error.location is None:
            error.location = (self.code.co_filename, self.lineno)
        return error


def _builtins_of(namespace: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    found = namespace.get("__builtins__", default)
    return found if isinstance(found, dict) else vars(found)


@final
class InstructionTranslator(InstructionTranslatorBase):
    """The frame that is captured.

    Args:
        code: its code.
        arguments: bound arguments by name, in the order of ``co_varnames``.
        closure: the cells of its free variables.
        stop_at: number of the step before which to stop, from an earlier attempt; None to go as far as possible.
        stop_reason: why, with `stop_at`.

    Attributes:
        first_effect: number and line of the first step that had an effect or lay in a ``try`` block.
        lines: the lines of the frame itself that were run, as the keys, in the order of their first step.
    """

    is_root = True

    def __init__(
        self,
        code: CodeType,
        arguments: dict[str, object],
        closure: tuple[CellType, ...] | None,
        namespace: dict[str, Any],
        builtins: dict[str, Any],
        output: OutputGraph,
        settings: Config,
        stop_at: int | None = None,
        stop_reason: BreakReason | None = None,
    ) -> None:
        super().__init__(decoded(code), output, settings, namespace, builtins, 0)
        output.root_namespace = namespace
        self.stop_at = stop_at
        self.stop_reason = stop_reason
        self.first_effect: tuple[int, int] | None = None
        self.lines: dict[int, None] = {}
        build = Builder(output)
        self.symbolic_locals = self.locals
        self.entry_locals: dict[str, VariableTracker] = {}
        for name, value in arguments.items():
            self.locals[name] = build(value, LocalSource(name))
        self.entry_locals.update(self.locals)
        for name, cell in zip(code.co_freevars, closure or (), strict=True):
            self.cells[name] = self._free_cell(name, cell)

    def _free_cell(self, name: str, cell: CellType) -> CellVariable:
        var = CellVariable(outer=True, source=CellSource(name))
        try:
            content = cell.cell_contents
        except ValueError:
            pass
        else:
            var.content = Builder(self.output)(content, ClosureSource(name))
        self.output.wrapped[id(cell)] = (cell, var)
        return var

    def run(self) -> Stop:
        """Run until ``return`` or a break.

        Raises:
            RestartCapture: the step that broke had changed things; run again with its number as `stop_at`.
        """
        output = self.output
        output.frames.append(self.place)
        try:
            return self._run()
        finally:
            output.frames.pop()

    def _run(self) -> Stop:
        output = self.output
        number = 0
        while True:
            number += 1
            output.root_step = number
            if number == self.stop_at:
                assert self.stop_reason is not None
                return self._stopped(number, Stop(self.ip, self.stop_reason))
            index, stack, before = self.ip, list(self.stack), self._marks()
            locals_before = dict(self.locals)
            output.steps += 1
            try:
                if output.steps > self.settings.loop_limit:
                    raise GraphBreak(f"more than {self.settings.loop_limit} steps in one capture")
                self.guarded_step()
            except GraphBreak as error:
                reason = error.reason(self.code.co_filename, self.lineno)
                if self._marks() != before:
                    raise RestartCapture(number, reason) from error
                self.ip, self.stack[:] = index, stack
                self.locals.clear()
                self.locals.update(locals_before)
                return self._stopped(number, Stop(index, reason))
            if self.instructions[index].opname not in _PROLOGUE:
                self.lines[self.lineno] = None
            if self.first_effect is None and (len(output.effects) or output.guarded_block):
                self.first_effect = number, self.lineno
            if self.returned is not None:
                return Stop(index)

    def _stopped(self, number: int, stop: Stop) -> Stop:
        """The end of capture, unless an exception is being handled: that only Python can go on with.

        Raises:
            RestartCapture: stop before the step that raised it, and let Python raise it.
        """
        raised = [each.raised_at for each in self.output.handled if each.raised_at is not None]
        if raised and min(raised) < number:
            assert stop.reason is not None
            raise RestartCapture(min(raised), stop.reason)
        return stop

    def _marks(self) -> tuple[int, int, int, int]:
        output = self.output
        return output.calls, output.effects.count, output.inlined, len(output.graph.nodes)
