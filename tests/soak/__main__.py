"""`scripts/soak`: the soak for as long as wanted, its report as tables, and exit code 1 where something is
wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.soak.outcomes import End
from tests.soak.soak import Report, soak

HOME = Path(__file__).parents[2] / ".cache" / "tests" / "home"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description="Mixed requests against a real daemon.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: ten minutes)")
    parser.add_argument("--threads", default="auto", help="compute threads of each model, as LLMRUN_THREADS")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked when (default: 1)")
    wanted = parser.parse_args()
    Store(Paths.find({"LLMRUN_HOME": str(HOME)})).pull(DEFAULT_MODEL)
    with tempfile.TemporaryDirectory(prefix="llmrun-soak-") as place:
        report = soak(
            HOME,
            Path(place),
            seconds=wanted.seconds,
            round_seconds=8.0,
            seed=wanted.seed,
            threads=wanted.threads,
            told=lambda line: print(line, file=sys.stderr),
        )
    print(*tables(report), sep="\n")
    return 1 if report.failures else 0


def tables(report: Report) -> list[str]:
    """The report's lines."""
    kinds = sorted({kind for kind, _ in report.ends})
    lines = ["requests".ljust(30) + "".join(end.value.rjust(10) for end in End)]
    lines += [kind.ljust(30) + "".join(f"{report.ends[kind, end]:10}" for end in End) for kind in kinds]
    sums = [sum(count for (_, had), count in report.ends.items() if had is end) for end in End]
    lines += ["all".ljust(30) + "".join(f"{count:10}" for count in sums), ""]
    lines.append(f"at rest, {len(report.samples)} times".ljust(40) + "first third  last third     allowed")
    for name, trend in report.trends().items():
        verdict = "  GROWS" if trend.grows else ""
        lines.append(f"{name:40}{trend.first:11.1f}{trend.last:12.1f}{trend.allowed:+12.1f}{verdict}")
    return [*lines, "", *(f"FAULT {failure}" for failure in report.failures), verdict_of(report)]


def verdict_of(report: Report) -> str:
    return (
        f"{len(report.failures)} failures"
        if report.failures
        else "every request had one end, and nothing grew"
    )


if __name__ == "__main__":
    sys.exit(main())
