"""What a new Python version changes in the bytecode, as seen from the normal form.

    python tools/opcode_diff.py OTHER_PYTHON [ONE_MORE ...]

Asks the running interpreter and the given ones for their opcodes and prints, from each to the next: instructions that
came, went, or changed their cache units, their operand or their stack effect, with `known` or `NEW` saying whether
`dynamo.eval.bytecode` mentions the name. `docs/versions.md` walks through what to do with the answer.
Needs no torch; interpreters may be of any version that has `dis.stack_effect(jump=)`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

PACKAGE = Path(__file__).parents[1] / "packages/dynamo-eval/src/dynamo/eval/bytecode"

# Runs in the other interpreter, so plain and self-contained.
PROBE = """
import dis, json, opcode, sys
caches = getattr(opcode, "_inline_cache_entries", {})
if not isinstance(caches, dict):
    caches = {opcode.opname[number]: count for number, count in enumerate(caches)}
with_operand = getattr(dis, "hasarg", None)
kinds = {"const": dis.hasconst, "name": dis.hasname, "local": dis.haslocal, "free": dis.hasfree, "jump": dis.hasjrel}
instructions = {}
for name, number in dis.opmap.items():
    if number > 255 or name.startswith("INSTRUMENTED_") or name in ("RESERVED", "CACHE"):
        continue
    has = number in with_operand if with_operand is not None else number >= dis.HAVE_ARGUMENT
    effects = []
    for operand in (1, 2, 5) if has else (None,):
        for jump in (False, True):
            try:
                effects.append(dis.stack_effect(number, operand, jump=jump))
            except ValueError:
                effects.append(None)
    kind = [word for word, numbers in kinds.items() if number in numbers]
    instructions[name] = {
        "caches": caches.get(name, 0), "operand": has, "effects": effects, "kind": kind[0] if kind else "number"
    }
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "instructions": instructions}))
"""


class Facts(TypedDict):
    """What is compared of one instruction; effects for operands 1, 2, 5, each without and with a jump."""

    caches: int
    operand: bool
    effects: list[int | None]
    kind: str


class Version(TypedDict):
    """One interpreter."""

    version: str
    instructions: dict[str, Facts]


def probe(python: str) -> Version:
    """Ask an interpreter for its instructions.

    Raises:
        subprocess.CalledProcessError: it cannot answer.
    """
    done = subprocess.run([python, "-I", "-c", PROBE], capture_output=True, text=True, check=True, timeout=60)
    answer: Version = json.loads(done.stdout)
    return answer


def mentioned_names() -> frozenset[str]:
    """Names of instructions that the bytecode package mentions anywhere."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    return frozenset(re.findall(r"\b[A-Z][A-Z0-9_]{2,}\b", text))


def changes(old: Facts, new: Facts) -> list[str]:
    """What differs between two facts of one instruction, in words."""
    words = []
    if old["caches"] != new["caches"]:
        words.append(f"caches {old['caches']} → {new['caches']}")
    if old["operand"] != new["operand"]:
        words.append("has an operand now" if new["operand"] else "has no operand any more")
    if old["kind"] != new["kind"]:
        words.append(f"operand {old['kind']} → {new['kind']}")
    if old["operand"] == new["operand"] and old["effects"] != new["effects"]:
        words.append(f"stack effects {old['effects']} → {new['effects']}")
    return words


def report(old: Version, new: Version, known: frozenset[str]) -> list[str]:
    """The lines to print for the step from `old` to `new`."""
    before, after = old["instructions"], new["instructions"]
    lines = [f"{old['version']} → {new['version']}: {len(before)} → {len(after)} instructions"]
    for name in sorted(after.keys() - before.keys()):
        facts = after[name]
        mark = "known" if name in known else "NEW"
        lines.append(
            f"  + {name:30} {mark:5} {facts['kind'] if facts['operand'] else 'no operand'}, {facts['caches']} caches"
        )
    lines += [f"  - {name}" for name in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        words = changes(before[name], after[name])
        if words:
            lines.append(f"  ~ {name:30} {'; '.join(words)}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="interpreters, in order")
    options = parser.parse_args()
    versions = [probe(python) for python in options.pythons]
    if len(versions) == 1:
        versions.insert(0, probe(sys.executable))
    known = mentioned_names()
    for old, new in zip(versions, versions[1:], strict=False):
        print("\n".join(report(old, new, known)))


if __name__ == "__main__":
    main()
