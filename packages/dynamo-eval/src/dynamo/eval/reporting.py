"""What is captured at the moment, and what came of the calls: the text that `report` gives."""

from types import CodeType

from dynamo.eval import _frame
from dynamo.eval.cache import recompile_reasons
from dynamo.eval.statistics import counters


def report() -> str:
    """Guards of each living capture in words, recompiles with their reasons, and the counters."""
    lines: list[str] = []
    for code in sorted(_frame.codes(), key=lambda code: (code.co_filename, code.co_firstlineno)):
        lines.extend(_of_code(code))
    stats = _frame.stats()
    calls = stats["hits"] + stats["captures"]
    lines.append(
        f"calls (rests of broken functions included): {calls}  cache hits: {stats['hits']}  graphs: {counters.graphs}  "
        f"recompiles: {stats['recompiles']}"
    )
    return "\n".join(lines)


def _of_code(code: CodeType) -> list[str]:
    entries = _frame.cache_entries(code)
    if not entries:
        return []
    lines = [f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"]
    for entry in entries:
        lines.append(f"  guards ({entry.hits} hits):")
        lines.extend(f"    {part}" for part in entry.manager.words)
    lines.extend(f"  recompiled: {reason}" for reason in recompile_reasons(code))
    return lines
