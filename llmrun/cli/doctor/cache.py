"""The KV prefixes that runners keep on disk."""

from __future__ import annotations

import shlex
from pathlib import Path

from llmrun.cli.doctor.finding import Finding, ok, warning
from llmrun.store.disk import human
from llmrun.store.kv_files import is_whole, kv_files

READ = 1_000_000_000  # bytes whose checksums are looked at, the newest first: a second or so


def check_cache(folder: Path, bound: int | None) -> list[Finding]:
    """How much there is, and what is damaged. `bound`: bytes at most, as set; None: sized to the disk."""
    files = sorted(kv_files(folder), reverse=True)
    total = sum(file.size for file in files)
    limit = "sized to the disk" if bound is None else f"at most {human(bound)}"
    if bound == 0 and not files:
        return [ok("kv cache", "on disk: off (LLMRUN_CACHE_DISK=0)")]
    findings = [ok("kv cache", f"{len(files)} prefixes on disk, {human(total)}, {limit}")]
    read, damaged = 0, []
    for file in files:
        if (read := read + file.size) > READ:
            break
        if not is_whole(file.path):
            damaged.append(file.path)
    if damaged:
        text = f"{len(damaged)} of them are damaged; they are computed again when they are wanted"
        findings.append(warning("kv cache", text, shlex.join(["rm", *map(str, damaged)])))
    if bound is not None and total > bound:
        text = f"{human(total)} is more than LLMRUN_CACHE_DISK allows"
        mend = shlex.join(["rm", "-r", str(folder)])
        findings.append(warning("kv cache", text, f"the next prefix makes room; to have it at once: {mend}"))
    return findings
