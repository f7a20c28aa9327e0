"""Makes the pictures and transcripts under docs/ from the real program.

Run it with `.venv/bin/python scripts/screens [PART…]`; without a name it makes all parts. The default model
is fetched where it is not here yet. They show one machine on one day; another's differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

import page  # noqa: E402 (the path is set above)
import terminal  # noqa: E402

PARTS = {"terminal": terminal.main, "page": page.main}


def main(names: list[str]) -> int:
    if unknown := sorted({*names} - {*PARTS}):
        print(f"error: no part {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in names or PARTS:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
