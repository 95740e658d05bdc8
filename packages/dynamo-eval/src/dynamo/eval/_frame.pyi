"""The C core: frame hook (PEP 523), cache per code object, entry points."""

from collections.abc import Callable
from types import CellType, CodeType, FunctionType, GenericAlias, NotImplementedType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeAlias, TypedDict, TypeVar, final, overload

from typing_extensions import disjoint_base

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _Manager(Protocol):
    """Owner of guards: its `program` (native) is asked when it has one, else its `check_fn`."""

    @property
    def check_fn(self) -> Callable[..., bool]: ...

class _CodeStats(TypedDict):
    entries: int
    hits: int
    misses: int
    captures: int
    recompiles: int
    dropped: int
    skip: bool

class _Stats(TypedDict):
    codes: int
    entries: int
    hits: int
    misses: int
    captures: int
    recompiles: int
    dropped: int
    skipped: int

@final
class FrameView:
    """A frame that is about to start, as the capture callback sees it.

    `args` holds the bound arguments in the order of `co_varnames`; `f_locals` is a new dict of them.
    """

    @property
    def f_code(self) -> CodeType: ...
    @property
    def f_globals(self) -> dict[str, Any]: ...  # any Python object at all
    @property
    def f_builtins(self) -> dict[str, Any]: ...  # any Python object at all
    @property
    def f_locals(self) -> dict[str, Any]: ...  # any Python object at all
    @property
    def f_lineno(self) -> int: ...
    @property
    def function(self) -> FunctionType: ...
    @property
    def closure(self) -> tuple[CellType, ...] | None: ...
    @property
    def args(self) -> list[Any]: ...  # any Python object at all

@disjoint_base
class GuardedCode:
    """New code, and the guards under which it may run in place of the original.

    The new code has the arguments, the free variables and the kind (function, generator, coroutine) of
    the original. `needs_hook=False` says that it calls no frame worth capturing: then the hook is off
    while it runs. `release()` takes it out of its cache and frees what was built for it.

    Raises:
        TypeError: `manager.program` is no program of dynamo.guards.
        AttributeError: `manager` has neither `program` nor `check_fn`.
    """

    def __new__(
        cls, code: CodeType, manager: _Manager, *, needs_hook: bool = True, reason: str | None = None
    ) -> Self: ...
    @property
    def code(self) -> CodeType: ...
    @property
    def manager(self) -> Any: ...  # the object that was given
    @property
    def check_fn(self) -> Callable[..., bool]: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def hits(self) -> int: ...
    @property
    def needs_hook(self) -> bool: ...
    @property
    def cached(self) -> bool: ...
    @property
    def valid(self) -> bool: ...
    def release(self) -> None: ...

_Callback: TypeAlias = Callable[[FrameView, int], GuardedCode | NotImplementedType | None]

@disjoint_base
class KeyedCallback:
    """Base of capture callbacks whose captures serve only callbacks with the same key, compared by identity.

    Captures refer to the key weakly and are dropped when it is gone. Callbacks without a key share theirs.

    Raises:
        TypeError: a key that cannot be referred to weakly.
    """

    def __new__(cls, key: object, /) -> Self: ...
    @property
    def key(self) -> object: ...

@disjoint_base
class EntryPoint(Generic[_P, _R]):
    """Callable that runs captures of the given one when their guards hold, without the frame hook.

    For a function it makes a `FunctionEntryPoint`. With `None` as callback the callable runs with
    capture off. Attributes that it has not itself are those of the callable.
    """

    def __new__(cls, callable: Callable[_P, _R], callback: _Callback | None, /) -> Self: ...
    @property
    def capture_callback(self) -> _Callback | None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __reduce__(self) -> str: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, object], /) -> Self: ...
    def __class_getitem__(cls, item: object, /) -> GenericAlias: ...
    def __getattribute__(self, name: str, /) -> Any: ...  # what the wrapped callable has

class FunctionEntryPoint(EntryPoint[_P, _R]):
    """Entry point of a function; binds to instances as a function does."""

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None, /) -> Callable[..., _R]: ...

@final
class Rest:
    """What cached code calls to go on after a graph break: enters the captures of a resume function.

    It is called with the tuple of cells first when the code has free variables, then the arguments, from a frame
    with the function's globals; it works in the name of the callback whose captured code is running.

    Raises:
        TypeError: the code takes keywords or a variable number of arguments.
    """

    def __new__(cls, code: CodeType, /) -> Self: ...
    @property
    def code(self) -> CodeType: ...
    def __call__(self, *args: Any) -> Any: ...  # what the function takes and returns

def set_eval_frame(callback: _Callback | None, /) -> _Callback | None:
    """Set this thread's capture callback; returns the previous one.

    While it is set, each function frame that starts in this thread, and that no capture of its code
    fits, is shown to ``callback(frame, entries)``. `GuardedCode` joins the captures of the code and
    runs; `None` runs the code plainly, and it is not asked about again; an exception reaches the caller.
    """

def get_eval_frame() -> _Callback | None:
    """This thread's capture callback, or None."""

def skip_code(code: CodeType, /) -> None:
    """Capture this code no more; captures that exist stay in use."""

def reset_code(code: CodeType, /) -> None:
    """Forget captures, counters, reasons and the skip mark of this code."""

def reset() -> None:
    """Forget captures, counters, reasons and skip marks of every code."""

def cache_entries(code: CodeType, /) -> list[GuardedCode]:
    """Captures of this code, latest hit first."""

def add_reason(code: CodeType, reason: str, /) -> None:
    """Keep why this code was captured again."""

def reasons(code: CodeType, /) -> list[str]:
    """Why this code was captured again, in order."""

def code_stats(code: CodeType, /) -> _CodeStats:
    """Counters of this code."""

def codes() -> list[CodeType]:
    """Code objects that captures, skip marks or counters are kept for."""

def stats() -> _Stats:
    """Counters over all code objects."""

def drop_invalid() -> int:
    """Free captures whose guards refer to dead objects; returns how many."""
