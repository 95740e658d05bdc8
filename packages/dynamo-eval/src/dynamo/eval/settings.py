"""The typed settings of capture: `config` for the process, `patch` to change them for a while."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(slots=True)
class Config:
    """Settings of capture; assign to a field, or use `patch` as a context manager or decorator.

    Attributes:
        cache_size_limit: compiled entries per code object; beyond it the frame runs plainly.
        accumulated_cache_size_limit: entries ever made of one code object, those since dropped included.
        inline_depth_limit: how deep calls are followed into user functions.
        loop_limit: steps of one capture; more means a loop too long to unroll.
        suppress_errors: on a backend or internal fault run the function plainly and log the reason.
        automatic_dynamic_shapes: make a size or integer a symbol when it was seen to vary.
        verbose: log every graph, guard and break at INFO level.
    """

    cache_size_limit: int = 8
    accumulated_cache_size_limit: int = 256
    inline_depth_limit: int = 40
    loop_limit: int = 200_000
    suppress_errors: bool = True
    automatic_dynamic_shapes: bool = True
    verbose: bool = False

    @contextlib.contextmanager
    def patch(self, **changes: object) -> Iterator["Config"]:
        """Set the named fields inside a ``with`` block or a decorated function, then restore them.

        Raises:
            AttributeError: a name that is no setting; nothing is changed.
        """
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise AttributeError(f"no setting named {name!r}; there are {', '.join(sorted(known))}")
        before = {name: getattr(self, name) for name in changes}
        try:
            for name, value in changes.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config = Config()
