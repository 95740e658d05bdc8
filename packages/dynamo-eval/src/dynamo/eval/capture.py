"""One frame → new code, guards and a record of what was captured.

`capture_frame` runs the translator (again, if a step could not be undone), then writes the new code: the call of the
compiled graph, the effects, and either ``return``, or the broken instruction and a call of the rest.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, CodeType
from typing import Any, Final

import torch

from dynamo.eval import models as _models
from dynamo.eval._frame import EntryPoint, skip_code
from dynamo.eval.ambient_state import read_ambient, restore_ambient
from dynamo.eval.breaks import (
    Driver,
    ResumePoint,
    load_rest,
    operand_count,
    pushes,
    resume_function,
    splits_at,
)
from dynamo.eval.breaks.inert import runs_no_python
from dynamo.eval.breaks.segments import share_cells
from dynamo.eval.breaks.split import BRANCHES
from dynamo.eval.bytecode import (
    Instruction,
    assemble,
    copy_instructions,
    create,
    live_before,
    remove_unreachable,
)
from dynamo.eval.effects import AttributeWrite, ContentChange
from dynamo.eval.errors import BreakReason, Outlives, RestartCapture, SkipFrame
from dynamo.eval.interpret.translator import InstructionTranslator, Stop
from dynamo.eval.output_graph import Backend, OutputGraph
from dynamo.eval.rebuild import Emitter, Unrebuildable, replay_effects
from dynamo.eval.rebuild.emitter import RESULTS
from dynamo.eval.rebuild.sources import load_source
from dynamo.eval.settings import Config
from dynamo.eval.sizes import NeedsSymbols, SizePolicy
from dynamo.eval.variables import rules as _rules
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.null import NULL
from dynamo.guards import Guard
from fx.codegen import GraphModule

#: importing them fills the registries of values and of known callables
REGISTRIES: Final = (_models, _rules)

FAILING: Final = (
    "an effect or a try block in a frame whose graph may raise after it wrote to tensors or drew numbers"
)
FAILING_HINT: Final = "such a graph cannot be run again plainly; keep the effect out of the captured function"


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What a frame is about to run with."""

    code: CodeType
    arguments: dict[str, object]
    closure: tuple[CellType, ...] | None
    namespace: dict[str, Any]
    builtins: dict[str, Any]


@dataclass(slots=True)
class Captured:
    """What came of one frame.

    Attributes:
        code: the new code.
        guards: what must hold for it to be right.
        graph: the captured graph, or None if the frame had no torch call before it ended.
        reason: why the graph ended before the function did; None if it did not.
        needs_hook: whether the new code may call frames worth capturing, the rest after a break aside.
    """

    code: CodeType
    guards: list[Guard]
    graph: GraphModule | None
    reason: BreakReason | None
    needs_hook: bool
    inputs: list[str] = field(default_factory=list)


def capture_frame(
    frame: FrameInput,
    backend: Backend,
    settings: Config,
    *,
    one_graph: Callable[[BreakReason], Exception] | None = None,
    is_disabled: Callable[[CodeType], bool] = lambda code: False,
    is_foreign: Callable[[CodeType], bool] = lambda code: False,
    sizes: SizePolicy | None = None,
) -> Captured:
    """Capture one frame.

    Args:
        one_graph: makes the exception to raise at a break; None allows breaks.
        is_disabled: code objects that must not be followed into.
        is_foreign: code objects that are never captured, nor what they call.
        sizes: decides which sizes and integers are symbols; None takes all as they are.

    Raises:
        SkipFrame: there is nothing to capture, or a state at the break cannot be rebuilt.
        BackendError: the backend failed.
    """
    stop_at: int | None = None
    reason: BreakReason | None = None
    with_symbols = False
    while True:
        output = OutputGraph(is_disabled, sizes, with_symbols)
        tx = InstructionTranslator(
            frame.code,
            frame.arguments,
            frame.closure,
            frame.namespace,
            frame.builtins,
            output,
            settings,
            stop_at,
            reason,
        )
        try:
            try:
                with _ambient_kept(_nothing):
                    stop = tx.run()
            except RestartCapture as restart:
                stop_at, reason = restart.step, restart.reason
                continue
            if (
                output.raises_unlike_python()
                and not output.runs_twice_alike()
                and tx.first_effect is not None
            ):
                stop_at, line = tx.first_effect
                reason = BreakReason(FAILING, FAILING_HINT, frame.code.co_filename, line)
                continue
            if stop.reason is not None and one_graph is not None:
                raise one_graph(stop.reason)
            if stop.reason is not None and not output.calls and not _rest_is_worth_it(frame, tx, stop):
                raise SkipFrame(f"no torch call before the break: {stop.reason}")
            if stop.reason is None and not output.calls:
                raise SkipFrame("no torch call")
            _guard_aliasing(output)
            try:
                _refuse_open_generators(output)
                with _ambient_kept(_itself):
                    return _Writer(tx, output, stop, backend, is_foreign).write()
            except Outlives as error:
                if stop_at is not None and error.step >= stop_at:
                    raise SkipFrame(f"{error} ({stop.reason or 'at the return'})") from error
                stop_at = error.step
                reason = BreakReason(error.what, "", frame.code.co_filename, tx.lineno)
                if one_graph is not None:
                    raise one_graph(reason) from error
                continue
            except Unrebuildable as error:
                raise SkipFrame(f"{error} ({stop.reason or 'at the return'})") from error
        except NeedsSymbols:
            stop_at, reason, with_symbols = None, None, True
        finally:
            _forget_values(tx)


def _refuse_open_generators(output: OutputGraph) -> None:
    """Python closes a generator that is dropped inside a ``try``, and runs its ``finally`` just then.

    Raises:
        Unrebuildable: there is such a generator.
    """
    for generator in output.generators:
        if generator.must_be_closed:
            raise Unrebuildable(f"{generator.describe()} that is left inside a try or with block")


def _forget_values(tx: InstructionTranslator) -> None:
    """Let go of the user's values at once: kept until the collector comes, they would live longer than in eager Python."""
    for kept in (tx.output.wrapped, tx.output.tensors, tx.locals, tx.entry_locals, tx.cells, tx.stack):
        kept.clear()
    tx.output.generators.clear()


def _guard_aliasing(output: OutputGraph) -> None:
    """A change of one object was kept apart from all others: ask that they are still different objects."""
    changed = [effect.container for effect in output.effects if isinstance(effect, ContentChange)]
    changed += [effect.owner for effect in output.effects if isinstance(effect, AttributeWrite)]
    for target in changed:
        assert isinstance(target, VariableTracker)
        for _, other in output.wrapped.values():
            if other is target or other.source is None or target.source is None or not other.mutable:
                continue
            if other.python_type() is target.python_type():
                output.guard_distinct(other.source, target.source)


def _rest_is_worth_it(frame: FrameInput, tx: InstructionTranslator, stop: Stop) -> bool:
    """Whether to split although no torch call came before: the rest seems to work on tensors."""
    if any(isinstance(value, torch.Tensor | torch.nn.Module) for value in frame.arguments.values()):
        return True
    values = (frame.namespace.get(name) for name in frame.code.co_names)
    return any(value is torch or isinstance(value, torch.nn.Module) for value in values)


class _ambient_kept:
    """Symbolic execution may change grad mode and autocast for its fake calls; the real one comes back.

    Hooks on saved tensors, which `torch.utils.checkpoint` counts by, must not see what fake calls and backends save: a
    pair of hooks of our own hides those of the user.

    Args:
        pack: what is kept of a saved tensor.
    """

    def __init__(self, pack: Callable[[Any], Any]) -> None:
        self.pack = pack

    def __enter__(self) -> None:
        self.before = read_ambient()
        torch._C._autograd._push_saved_tensors_default_hooks(self.pack, _itself)

    def __exit__(self, *exc: object) -> None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
        restore_ambient(self.before)


def _nothing(value: object) -> None:
    """For fake calls, which are never differentiated."""


def _itself(value: Any) -> Any:
    """For backends, which may differentiate what they trace."""
    return value


class _Writer:
    """Writes the new code of one frame."""

    def __init__(
        self,
        tx: InstructionTranslator,
        output: OutputGraph,
        stop: Stop,
        backend: Backend,
        is_foreign: Callable[[CodeType], bool],
    ) -> None:
        self.tx = tx
        self.is_foreign = is_foreign
        self.code = tx.code
        self.output = output
        self.stop = stop
        self.backend = backend
        self.emit = Emitter(output, frozenset(self.code.co_cellvars) & set(tx.entry_locals))
        self.original: list[Instruction] = []
        self.shared: set[str] = set()
        self.extra: list[str] = []
        self.needs_hook = False

    def write(self) -> Captured:
        """The captured frame.

        Raises:
            Unrebuildable: a value that the rest needs cannot be made.
            BackendError: the backend failed.
        """
        if self.stop.reason is None:
            self._return()
        elif self._is_branch() or splits_at(self.tx.instructions, self.stop.index, self.code):
            self._break_with_resume()
        else:
            self._break_in_place()
        return self._assemble()

    # -- ways to end ------------------------------------------------------------------------------------
    def _return(self) -> None:
        emit, value = self.emit, self.tx.returned
        assert value is not None
        emit.load(value)
        if len(self.output.effects) or emit.later or emit.local_cells:
            held = emit.temporary()
            replay_effects(emit, self.tx.namespace, every_cell=False)
            emit.add(create.load_fast(held))
        emit.add(create.return_value())

    def _is_branch(self) -> bool:
        index = self._branch_index()
        return index is not None and splits_at(self.tx.instructions, index, self.code)

    def _branch_index(self) -> int | None:
        """Index of the conditional jump that the break is about: this instruction, or the next after TO_BOOL."""
        instructions, index = self.tx.instructions, self.stop.index
        if instructions[index].opname == "TO_BOOL" and index + 1 < len(instructions):
            index += 1
        return index if instructions[index].opname in BRANCHES else None

    def _break_with_resume(self) -> None:
        """Stack and locals to temporaries, the instruction, then ``return rest(…)``."""
        tx, emit, index = self.tx, self.emit, self.stop.index
        inst = tx.instructions[index]
        count = operand_count(inst)
        assert count is not None
        split = len(tx.stack) - count
        below, operands = tx.stack[:split], tx.stack[split:]
        self.needs_hook = not runs_no_python(operands, self.is_foreign)
        branch = self._branch_index()
        live = live_before(tx.instructions)
        points = [index + 1] if branch is None else [branch + 1, _target_index(tx, branch)]
        names = self._handed_over(frozenset().union(*(live[point] for point in points)))
        kept_stack = [None if var is NULL else self._save(var) for var in below]
        kept_locals = {name: self._save(tx.locals[name]) for name in names}
        kept_operands = [None if var is NULL else self._save(var) for var in operands]
        replay_effects(emit, tx.namespace, every_cell=True)
        for kept in kept_operands:
            emit.add(create.push_null() if kept is None else kept)
        if branch is None:
            emit.add(*_copied(inst, [inst]))
            results = [_loading(emit.temporary()) for _ in range(pushes(inst))][::-1]
            self._call_rest(index + 1, [*kept_stack, *results], kept_locals, live[index + 1], inst)
            return
        other = create.nop()
        for each in _copied(inst, tx.instructions[index : branch + 1]):
            if each.target is not None:
                each.target = other
            emit.add(each)
        self._call_rest(points[0], kept_stack, kept_locals, live[points[0]], inst)
        emit.add(other)
        self._call_rest(points[1], kept_stack, kept_locals, live[points[1]], inst)

    def _save(self, var: VariableTracker) -> Instruction:
        """Evaluate `var` now; returns the instruction that loads it later."""
        self.emit.load(var)
        return _loading(self.emit.temporary())

    def _handed_over(self, live: frozenset[str]) -> list[str]:
        """Bound locals that the rest needs; all of them where code may look at the frame by name."""
        code = self.code
        readers = {"locals", "vars", "eval", "exec", "dir"} & set(code.co_names)
        names = [name for name in self.tx.locals if (readers or name in live) and name not in self.tx.cells]
        first = code.co_varnames[0] if code.co_argcount else None
        if "__class__" in code.co_freevars and first in self.tx.locals:
            names = [str(first), *(name for name in names if name != first)]
        return names

    def _call_rest(
        self,
        index: int,
        stack: list[Instruction | None],
        named: dict[str, Instruction],
        live: frozenset[str],
        inst: Instruction,
    ) -> None:
        wanted = [name for name in self._handed_over(live) if name in named]
        point = ResumePoint(index, tuple(kept is None for kept in stack), tuple(wanted))
        code = resume_function(self.code, point)
        loads = [named[name] for name in wanted] + [kept for kept in stack if kept is not None]
        written = [
            *load_rest(code),
            *(_loading(str(load.argval)) for load in loads),
            create.call(len(loads) + bool(code.co_freevars)),
            create.return_value(),
        ]
        self.emit.add(*create.place_at(inst.positions, written))

    def _break_in_place(self) -> None:
        """Put stack and locals back and jump into a copy of the original code."""
        self.needs_hook = True
        tx, emit = self.tx, self.emit
        if _handling_exception(tx, self.stop.index):
            raise Unrebuildable("an exception that is being handled")
        changed = {
            name: var
            for name, var in tx.locals.items()
            if tx.entry_locals.get(name) is not var and name not in tx.cells
        }
        kept = [(name, self._save(var)) for name, var in changed.items()]
        stack = [None if var is NULL else self._save(var) for var in tx.stack]
        replay_effects(emit, tx.namespace, every_cell=True)
        for name, load in kept:
            emit.add(load, create.store_fast(name))
        for name in tx.entry_locals:
            if name not in tx.locals and name not in tx.cells:
                emit.add(create.delete_fast(name))
        for place in stack:
            emit.add(create.push_null() if place is None else place)
        nulls = tuple(var is NULL for var in tx.stack)
        bound = [name for name in tx.locals if name not in tx.cells]
        driver = Driver(self.code, tx.instructions, self.stop.index, bound, nulls)
        if not self.output.calls and not driver.segments:
            raise Unrebuildable("a block of which no part can be a graph")
        self.original = driver.instructions
        self.shared, self.extra = driver.shared, driver.names
        emit.add(create.jump(driver.entry))

    # -- putting it together ----------------------------------------------------------------------------
    def _assemble(self) -> Captured:
        module: GraphModule | None = None
        call: list[Instruction] = []
        if self.output.calls or self.emit.outputs:
            compiled, module = self.output.compile(self.backend, list(self.emit.outputs))
            call = self._graph_call(_uncaptured(compiled) if self.needs_hook else compiled)
        self.output.guard_symbols()
        head = _prologue(self.tx.instructions)
        again = call and self.output.raises_unlike_python() and self.output.runs_twice_alike()
        rerun = self._rerun(call, len(head)) if again else []
        first, *others = self.tx.lines or (self.code.co_firstlineno,)
        # Debuggers and coverage see the lines that the graph stands for, each once.
        marks = [create.place_at((line, line, None, None), [create.nop()])[0] for line in others]
        _place(head, self.code.co_firstlineno)
        _place(call, first)
        instructions = [*head, *call, *marks, *self.emit.instructions, *rerun, *self.original]
        _place(instructions, others[-1] if others else first)
        remove_unreachable(instructions)
        names = [RESULTS, *self.emit.temporaries, *self.extra]
        own = [
            name for name in self.code.co_varnames if name not in self.shared or name in self._parameters()
        ]
        cells = [*self.code.co_cellvars, *sorted(self.shared)]
        share_cells(instructions, self.shared)
        code = assemble(self.code, instructions, varnames=(*own, *names), cellvars=cells)
        return Captured(
            code,
            list(self.output.guards.values()),
            module,
            self.stop.reason,
            self.needs_hook,
            [each.source.name() for each in self.output.inputs],
        )

    def _parameters(self) -> tuple[str, ...]:
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return code.co_varnames[:count]

    def _rerun(self, call: list[Instruction], start: int) -> list[Instruction]:
        """What handles an exception of the graph: the original code, from its start, as nothing happened yet.

        The loads before the call are guarded with it: CPython 3.13 takes the unit before a call of a Python function
        for the place of its exception.
        """
        plain = copy_instructions(self.tx.instructions)
        self.original = [*self.original, *plain]
        again = create.reraise()
        handler = [
            create.load_const(Exception),
            create.create_instruction("CHECK_EXC_MATCH"),
            *create.pop_jump_if_false(again),
            create.pop_top(),
            create.jump(plain[start]),
            again,
        ]
        create.guard_with(handler[0], call)
        return handler

    def _graph_call(self, compiled: Callable[..., Any]) -> list[Instruction]:
        sink = Emitter(self.output, self.emit.cell_names)
        sink.callable(compiled)
        for each in self.output.inputs:
            load_source(sink, each.source)
        sink.call(len(self.output.inputs))
        sink.add(create.store_fast(RESULTS))
        return sink.instructions


def _uncaptured(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled graph, which must not be captured itself while the hook is on for what follows it."""
    code = getattr(compiled, "__code__", None)
    if isinstance(code, CodeType) and code.co_filename.startswith("<fx.codegen"):
        skip_code(code)
        return compiled
    return EntryPoint(compiled, None)


def _loading(name: str) -> Instruction:
    return create.load_fast(name)


def _target_index(tx: InstructionTranslator, branch: int) -> int:
    target = tx.instructions[branch].target
    assert target is not None
    return tx.view.index[target]


def _copied(place: Instruction, instructions: list[Instruction]) -> list[Instruction]:
    copies = copy_instructions(instructions)
    for copy in copies:
        copy.handler = None
        if copy.positions[0] is None:
            copy.positions = place.positions
    return copies


def _prologue(instructions: list[Instruction]) -> list[Instruction]:
    """The head of the original up to RESUME, which the new code begins with too."""
    head: list[Instruction] = []
    for inst in instructions:
        if inst.opname not in ("MAKE_CELL", "COPY_FREE_VARS", "RESUME", "NOP"):
            break
        head.append(inst)
        if inst.opname == "RESUME":
            break
    return copy_instructions(head)


def _place(instructions: list[Instruction], lineno: int) -> None:
    """Give instructions without a place this line."""
    for inst in instructions:
        if inst.positions[0] is None:
            inst.positions = (lineno, lineno, 0, 0)


def _handling_exception(tx: InstructionTranslator, index: int) -> bool:
    """Whether the place lies inside an ``except`` or ``finally`` that an exception entered.

    Symbolic execution never enters one, so a frame that began at its start is never there; a resume function whose
    original stopped there does not exist.
    """
    return tx.instructions[index].opname in ("RERAISE", "POP_EXCEPT", "PUSH_EXC_INFO", "WITH_EXCEPT_START")
