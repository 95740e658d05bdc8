"""``python -m tests.fuzz --programs N --seed S``: compare N random programs from number S on, print what differs."""

import argparse
import functools
import os
import sys
import time
import warnings

from tests.fuzz.compare import TooLong, difference
from tests.fuzz.grammar import calls, program
from tests.fuzz.shrink import shrunk


def _differs(source: str, seed: int) -> str | None:
    """What differs, found in a process of its own, so that a crash is found too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            pipe.write(_difference(source, seed) or "")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text or (f"the process ended with status {status}" if status else None)


def _difference(source: str, seed: int) -> str | None:
    try:
        return difference(source, calls(seed), dynamic=(None, None, True, False)[seed % 4])
    except (SyntaxError, TooLong):
        return None
    except BaseException as error:
        return f"the comparison failed: {error!r}"


def _differs_alike(seed: int, known: str, candidate: str) -> bool:
    """Whether `candidate` differs, and in the same way: a result, a failure of capture, or a crash."""
    text = _differs(candidate, seed)
    return text is not None and text.split()[:2] == known.split()[:2]


def main() -> int:
    """Exit code 1 where a program differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shrink", action="store_true", help="make each program that differs small")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and stop")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)
    if asked.show:
        print(program(asked.seed))
        return 0
    for seed in (0, 2):
        _difference(program(seed), seed)  # what is imported now, each child has
    found = 0
    began = time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.programs):
        source = program(seed)
        text = _differs(source, seed)
        if text is None:
            continue
        found += 1
        if asked.shrink:
            source = shrunk(source, functools.partial(_differs_alike, seed, text))
            text = _differs(source, seed)
        print(
            f"# program {seed}: {text}\n{source}" if asked.shrink else f"# program {seed}: {text}", flush=True
        )
    print(f"{asked.programs} programs, {found} differed, {time.monotonic() - began:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
