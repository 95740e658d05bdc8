"""Every operation on a graph far deeper than Python's stack."""

import pytest

from benchmarks.ir_scale import operations


def test_every_operation_works_on_a_deep_graph() -> None:
    seen = set()
    for name, run in operations(20_000):
        run()
        seen.add(name)
    assert len(seen) == 28


@pytest.mark.parametrize("size", [1, 2, 7])
def test_every_operation_works_on_a_small_graph(size: int) -> None:
    for _, run in operations(size):
        run()
