"""CheckFunctionManager: guards in, a check in two forms out, and its validity.

The native program is made at once; the Python form when someone asks for it.  Neither keeps a user's object: identities
are ids, each with a weak reference that makes the check invalid when the object dies, so that a new object at the same
address never passes.  Where there are no weak references, a constant is compared by value, what belongs to a builtin class
is kept, and a guard on the identity of anything else (a list, a cell) is refused.

Source: seed "TorchDynamo overview", part on making guards (``CheckFunctionManager``, ``compile_check_fn``, ``.valid``).
"""

from __future__ import annotations

import builtins
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CellType, ModuleType
from typing import final

from dynamo.guards._check import GuardProgram
from dynamo.guards.assemble import assemble
from dynamo.guards.builder import GuardBuilder, has_weak_references
from dynamo.guards.errors import GuardError
from dynamo.guards.kinds.clause import Clause
from dynamo.guards.python import CheckFn, CheckText, generate
from dynamo.guards.scope import GuardScope
from dynamo.guards.sources import Guard
from dynamo.guards.status import report_error
from dynamo.guards.why import Failure, failures, in_words, one_by_one


class _Scope:
    """What remains of the capture's scope: names, and where cells and globals are; no argument."""

    __slots__ = ("_builtins", "_globals", "_module", "arg_names", "closure", "free_names")

    def __init__(self, scope: GuardScope) -> None:
        self.arg_names = tuple(scope.arg_names)
        self.free_names = tuple(scope.free_names)
        self.closure: Sequence[CellType] | None = scope.closure
        self._globals: Mapping[str, object] | None = scope.globals
        self._builtins: Mapping[str, object] | None = scope.builtins
        self._module: weakref.ref[ModuleType] | None = None

    def detach(self) -> None:
        """Keep no namespace alive: that of a living module is found through the module, any other is forgotten."""
        self.closure = None
        if self._globals is not None:
            module = sys.modules.get(str(self._globals.get("__name__")))
            if module is not None and getattr(module, "__dict__", None) is self._globals:
                self._module = weakref.ref(module)
            self._globals = None
        if self._builtins is not vars(builtins):
            self._builtins = None

    @property
    def globals(self) -> Mapping[str, object]:
        """The capture's globals. Raises: GuardError when they are not kept any more."""
        module = self._module() if self._module is not None else None
        return self._known(self._globals if module is None else vars(module))

    @property
    def builtins(self) -> Mapping[str, object]:
        """The capture's builtins. Raises: GuardError when they are not kept any more."""
        return self._known(self._builtins)

    def _known(self, namespace: Mapping[str, object] | None) -> Mapping[str, object]:
        if namespace is None:
            raise GuardError(
                "the check was detached from its namespaces; use bind(closure, globals, builtins)"
            )
        return namespace


def collect(guards: Iterable[Guard], scope: GuardScope, guard_nn_modules: bool = True) -> GuardBuilder:
    """Run every guard's ``create_fn``, bases first. Raises: GuardBuildError naming the source."""
    builder = GuardBuilder(scope)
    for guard in sorted(guards, key=Guard.sort_key):
        if guard_nn_modules or not guard.is_nn_module():
            guard.create(builder)
    return builder


def _lives(values: Sequence[object], died: Callable[[object], None]) -> list[object]:
    """Weak references to what can be weakly referenced, the others (`outlives_checks`) themselves."""
    return [weakref.ref(value, died) if has_weak_references(value) else value for value in values]


@final
class CheckFunctionManager:
    """The check for a set of guards.

    Args:
        guards: the guards; duplicates count once.
        scope: the values at capture.
        guard_nn_modules: False leaves out guards on state of ``nn.Module`` (see `Guard.is_nn_module`).

    Raises:
        GuardBuildError: a guard cannot be generated; names the source.
    """

    __slots__ = (
        "__weakref__",
        "_bound",
        "_callbacks",
        "_clauses",
        "_questions",
        "_scope",
        "_text",
        "program",
    )

    def __init__(self, guards: Iterable[Guard], scope: GuardScope, *, guard_nn_modules: bool = True) -> None:
        builder = collect(guards, scope, guard_nn_modules)
        keep: list[object] = []
        self.program: GuardProgram = assemble(builder.clauses, builder.tests, scope, keep)
        self._clauses: tuple[Clause, ...] = tuple(builder.clauses)
        self._scope = _Scope(scope)
        self._text: CheckText | None = None
        self._questions: CheckText | None = None
        self._bound: CheckFn | None = None
        self._callbacks: list[Callable[[], None]] = []
        keep += _lives(builder.watched, _on_death(self))

    @property
    def valid(self) -> bool:
        """False once an object that the guards name has died, or after `invalidate`; every check then misses."""
        return self.program.valid

    def invalidate(self) -> None:
        """Make every check miss from now on, and drop what only checking needs."""
        self.program.invalidate()
        self._clauses = ()
        self._questions = None
        self._bound = None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_invalidate(self, callback: Callable[[], None], /) -> None:
        """Call back once, when the check becomes invalid; at once if it is already.

        What the callback raises where an object's death is the cause is reported, not raised (`sys.unraisablehook`).
        """
        if self.valid:
            self._callbacks.append(callback)
        else:
            callback()

    @property
    def text(self) -> CheckText:
        """The Python form, generated when first asked for."""
        if self._text is None:
            self._text = generate(self._clauses, self._scope.arg_names)
        return self._text

    @property
    def code_parts(self) -> tuple[str, ...]:
        """One Python expression per clause; the check is their conjunction."""
        return self.text.code_parts

    @property
    def verbose_code_parts(self) -> tuple[str, ...]:
        """`code_parts` with the user's lines in comments."""
        return self.text.verbose_code_parts

    @property
    def words(self) -> tuple[str, ...]:
        """The guards in words, a sentence for each source: ``x: Tensor of torch.float32, shape (2×3), on cpu``."""
        return in_words(self._clauses)

    @property
    def source(self) -> str:
        """The whole generated function as text."""
        return self.text.source

    @property
    def check_fn(self) -> CheckFn:
        """The Python form: takes the arguments in order, looks at the capture's cells and globals.

        Raises: GuardError after `detach`, when it would need cells or namespaces that are not kept any more.
        """
        if self._bound is None:
            scope = self._scope
            if scope.free_names and scope.closure is None:
                raise GuardError(
                    "the check was detached from its cells; use bind(closure, globals, builtins)"
                )
            self._bound = self.bind(scope.closure, scope.globals, scope.builtins)
        return self._bound

    def bind(
        self,
        closure: Sequence[CellType] | None,
        globals: Mapping[str, object],
        builtins: Mapping[str, object],
    ) -> CheckFn:
        """The Python form for another function of the same code: its cells, globals and builtins."""
        cells = dict(zip(self._scope.free_names, closure or (), strict=True))
        return self.text.bind(self.program, report_error, cells, globals, builtins)

    def detach(self) -> None:
        """Forget the capture's cells and namespaces, so that nothing of the user's is kept through them.

        The globals of a module are still found while the module lives; others must be given from then on.
        """
        self._scope.detach()
        self._bound = None

    def check(
        self,
        args: Sequence[object],
        closure: Sequence[CellType] | None = None,
        globals: Mapping[str, object] | None = None,
        builtins: Mapping[str, object] | None = None,
    ) -> bool:
        """The native form; cells, globals and builtins default to those at capture."""
        scope = self.scope_of(args, closure, globals, builtins)
        cells = tuple(scope.closure) if scope.closure is not None else None
        return self.program.check(tuple(scope.args), cells, scope.globals, scope.builtins)

    def scope_of(
        self,
        args: Sequence[object],
        closure: Sequence[CellType] | None = None,
        globals: Mapping[str, object] | None = None,
        builtins: Mapping[str, object] | None = None,
    ) -> GuardScope:
        """A scope for other arguments. Raises: ValueError when their number is wrong."""
        own = self._scope
        return GuardScope(
            own.arg_names,
            own.free_names,
            args,
            closure if closure is not None else own.closure,
            globals if globals is not None else own.globals,
            builtins if builtins is not None else own.builtins,
        )

    def failures(
        self,
        args: Sequence[object],
        closure: Sequence[CellType] | None = None,
        globals: Mapping[str, object] | None = None,
        builtins: Mapping[str, object] | None = None,
        limit: int | None = None,
    ) -> list[Failure]:
        """The guards that do not hold for these values, in the order of checking; at most ``limit``."""
        scope = self.scope_of(args, closure, globals, builtins)
        if self._questions is None:
            self._questions = one_by_one(self._clauses, scope.arg_names)
        return failures(self._clauses, self._questions, scope, limit)

    def explain_failure(
        self,
        args: Sequence[object],
        closure: Sequence[CellType] | None = None,
        globals: Mapping[str, object] | None = None,
        builtins: Mapping[str, object] | None = None,
    ) -> str:
        """The first guard that does not hold, in words; empty when all hold."""
        if not self.valid:
            return "the check is not valid any more: an object that it names has died, or it was invalidated"
        found = self.failures(args, closure, globals, builtins, limit=1)
        return str(found[0]) if found else ""


def _on_death(manager: CheckFunctionManager) -> Callable[[object], None]:
    """What the weak references call: marks the program at once, and lets a living manager drop the rest."""
    program_ref = weakref.ref(manager.program)
    manager_ref = weakref.ref(manager)

    def died(reference: object) -> None:
        program = program_ref()
        if program is not None:
            program.invalidate()
        alive = manager_ref()
        if alive is not None:
            alive.invalidate()

    return died
