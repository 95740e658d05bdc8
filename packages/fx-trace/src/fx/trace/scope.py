"""Which module a node was recorded in.

``Tracer.call_module`` enters and leaves scopes; ``TracerBase.create_node`` writes the present one down.
"""

from __future__ import annotations

from types import TracebackType
from typing import final

__all__ = ["Scope", "ScopeContextManager"]


@final
class Scope:
    """Path and class of the module whose ``forward`` is being traced; ``("", None)`` at the root.

    Source: torch.fx ``Scope``.
    """

    __slots__ = ("module_path", "module_type")

    def __init__(self, module_path: str, module_type: type | None) -> None:
        self.module_path = module_path
        self.module_type = module_type

    def __repr__(self) -> str:
        return f"Scope({self.module_path!r}, {self.module_type!r})"


@final
class ScopeContextManager:
    """Gives ``scope`` the contents of ``current_scope`` until the context is left.

    Source: torch.fx ``ScopeContextManager``.
    """

    __slots__ = ("_before", "_scope")

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = (scope.module_path, scope.module_type)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.module_path, self._scope.module_type = self._before
