"""``python -m dynamo.eval.run SCRIPT.py [args]``: run a script with capture on, then report what was captured.

Capture is on for the frames of functions that the script defines and for the functions they call; the module body
itself runs plainly, as it runs once.
"""

import os
import runpy
import sys
from collections.abc import Sequence

from dynamo.eval import _frame
from dynamo.eval.api import optimize
from dynamo.eval.explanation import Record, guard_words


def run_script(path: str, arguments: Sequence[str], record: Record) -> int:
    """Run a script as ``python path arguments…`` would, with capture on.

    Returns:
        The exit status.
    """
    before_argv, before_path = sys.argv[:], sys.path[:]
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        with optimize("eager", observer=record):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    finally:
        sys.argv, sys.path[:] = before_argv, before_path
    return 0


def print_report(record: Record) -> None:
    """Print each graph, its guards in words, breaks, and the counters."""
    graphs = 0
    for capture in record.captures:
        code, graph = capture.code, capture.captured.graph
        place = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
        if graph is not None:
            graphs += 1
            print(f"\nGraph {graphs} of {place}")
            graph.graph.print_tabular()
        else:
            print(f"\nNo graph in {place}")
        print("Guards:")
        for line in guard_words(capture):
            print(f"  {line}")
        if capture.captured.reason is not None:
            print(f"Break: {capture.captured.reason}")
        if capture.recompile_reason is not None:
            print(f"Captured again because: {capture.recompile_reason}")
    stats = _frame.stats()
    calls = stats["hits"] + stats["captures"]
    print(
        f"\ncalls: {calls}  cache hits: {stats['hits']}  graphs: {graphs}  recompiles: {stats['recompiles']}"
    )


def main(arguments: Sequence[str]) -> int:
    """The command.

    Returns:
        The script's exit status, or 2 for a wrong command line.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m dynamo.eval.run SCRIPT.py [args]", file=sys.stderr)
        return 0 if arguments else 2
    if not os.path.isfile(arguments[0]):
        print(f"no such script: {arguments[0]}", file=sys.stderr)
        return 2
    record = Record()
    status = 1
    try:
        status = run_script(arguments[0], arguments[1:], record)
    finally:
        print_report(record)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
