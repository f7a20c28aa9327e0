"""A wall clock that a test sets, for a whole daemon with its runners: a few lines of C in front of the C
library.

Only the time of day is moved. What counts on (the monotonic clocks) stays, as when somebody sets a machine's
clock.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
    int file = open(getenv("CLOCK_FILE"), O_RDONLY);
    void *place = file < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
    ahead = place == MAP_FAILED ? NULL : place;
    if (file >= 0) close(file);
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t id, struct timespec *now) {
    if (!real) start();
    int failed = real(id, now);
    if (!failed && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}
"""


class WallClock:
    """`env` is for the process whose clock it is, and its children; `ahead` moves it, also while they run."""

    def __init__(self, folder: Path) -> None:
        """RuntimeError where there is no C compiler, or nothing can be put in front of the C library."""
        compiler = shutil.which("cc")
        library = folder / "clock.so"
        self._file = folder / "clock"
        source = folder / "clock.c"
        source.write_text(SOURCE)
        if compiler is None:
            raise RuntimeError("there is no C compiler")
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise RuntimeError(made.stderr)
        self.env = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(self._file)}
        self._file.write_bytes(bytes(8))

    def ahead(self, seconds: int) -> None:
        """Seconds that it is ahead of the machine's; negative: behind."""
        with self._file.open("r+b") as file:  # the same file, which the processes look into
            file.write(struct.pack("=q", seconds))
