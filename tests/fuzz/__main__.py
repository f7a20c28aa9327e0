"""`python -m tests.fuzz [TARGET…] --seconds 60`: fuzz for so long each; exit code 1 where something fell."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.fuzzing import Fuzzer
from tests.fuzz.targets import targets


def main() -> int:
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("names", nargs="*", metavar="TARGET", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    fallen = 0
    for name in wanted.names or known:
        fuzzer = Fuzzer(known[name], wanted.seed)
        falls = fuzzer.falls(seconds=wanted.seconds)
        fallen += len(falls)
        print(f"{name:12} {fuzzer.runs:8} inputs  {fuzzer.lines:5} lines  {len(falls)} falls")
        for fall in falls:
            print(f"  {fall.why}\n  {fall.data[:2000]!r}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
