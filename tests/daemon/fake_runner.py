"""A runner without a model: speaks the real frames and does what it is told, also what no runner should.

The stem of the model's path says how it loads, the prompt how a request goes; see the two functions. It
appends what happens to `loads`, `cancels` and `pings` beside the model's path.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO, NoReturn

# The daemon starts runners with a safe path; the tests run from a checkout, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from llmrun.errors import CANCELLED, NO_MEMORY, LlmrunError
from llmrun.runner.frames import (
    PREFIX_SIZE,
    Cancel,
    Down,
    Events,
    Load,
    LoadFailed,
    LoadProgress,
    ModelInfo,
    Ping,
    Pong,
    Ready,
    Shutdown,
    Submit,
    Up,
    decode_down,
    encode,
    frame_length,
)
from llmrun.types import (
    AnyRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Started,
    Stats,
    Stopped,
    Text,
    Timings,
    Tokenized,
    Usage,
)

STDIN: BinaryIO = open(0, "rb", buffering=0)  # noqa: SIM115 (select sees what a buffer hides)
STDOUT: BinaryIO = sys.stdout.buffer


def main() -> None:
    load = receive()
    if load is None:
        return
    assert isinstance(load, Load)
    folder, script = Path(load.path).parent, Path(load.path).stem
    note(folder / "loads", load.name)
    load_model(load, script)
    stubborn = "stubborn" in script
    while frame := receive():
        if isinstance(frame, Submit):
            serve(frame.request)
        elif isinstance(frame, Cancel):
            note(folder / "cancels", frame.id)
            if "mute" not in script:
                send_event(frame.id, Failed(LlmrunError(CANCELLED, "the client left").info()))
        elif isinstance(frame, Ping):
            note(folder / "pings", load.name)
            if "frozen" not in script:
                send(Pong())
        elif isinstance(frame, Shutdown) and not stubborn and "deaf" not in script:
            return
    if stubborn:
        hang()


def load_model(load: Load, script: str) -> None:
    """good; gate: ready once the file `open` lies beside, or ends when told to; fails; dies; starves: gets no
    memory; hangs; crawls: slow but going on (for 1.8 s; slowly: 4.8 s); stubborn: ends neither when asked nor
    on SIGTERM; mute: answers no cancel; deaf: ends at the end of its input only; frozen: gives no sign of
    life when asked."""
    log("info", f"loading {load.name}")
    if "stubborn" in script:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    send(LoadProgress(0.1))
    if "gate" in script:
        while not Path(load.path).with_name("open").exists():
            if select.select([STDIN], [], [], 0.005)[0] and not isinstance(receive(), Submit):
                sys.exit(0)
    if "fails" in script:
        send(LoadFailed(LlmrunError(NO_MEMORY, "the model needs 9 GB and 2 GB are free").info()))
        while receive():
            pass
        sys.exit(1)
    if "dies" in script:
        print("GGML_ASSERT(ctx) failed", file=sys.stderr, flush=True)
        os.abort()
    if "starves" in script:
        raise MemoryError
    if "hangs" in script:
        hang()
    if "crawls" in script:
        for step in range(12):
            time.sleep(0.4 if "slowly" in script else 0.15)
            send(LoadProgress(0.2 + step / 20))
    send(LoadProgress(1.0))
    ctx = load.ctx or 4096
    send(
        Ready(
            ModelInfo(
                ctx=ctx,
                ctx_train=8192,
                parallel=load.parallel or 2,
                vocab=1000,
                params=1_000_000,
                size=100,
                kv_bytes=ctx,
                device="CPU",
                description="fake",
            )
        )
    )


def serve(request: AnyRequest) -> None:
    """See `generate`; what is no generation gets two tokens."""
    if isinstance(request, GenerateRequest):
        generate(request)
    else:
        send_event(request.id, Tokenized((1, 2)))
        timings = Timings(queue_ms=1, prefill_ms=0, decode_ms=0, ttft_ms=1, itl_ms=0)
        send_event(request.id, Finished(Usage(prompt=0, completion=0), timings))


def generate(request: GenerateRequest) -> None:
    """A number: that many pieces of text. stall: one piece, and then nothing. silent: nothing at all.
    kill, segv, exit: one piece, then that end. garbage: no frame. partial: half a frame, then the end.
    twice: two last events. fail: an error of its own. options: some of those it got."""
    prompt = str(request.prompt)
    if prompt == "silent":
        return
    send_event(request.id, Started(prompt_tokens=7, seed=1))
    if prompt.isdigit():
        for number in range(int(prompt)):
            send_event(request.id, Text(0, f"{number} "))
        finish(request, int(prompt))
        return
    if prompt == "options":
        options = request.options
        send_event(request.id, Text(0, f"{options.temperature} {options.top_k} {options.ctx} {options.stop}"))
        finish(request, 1)
        return
    if prompt == "fail":
        send_event(request.id, Failed(LlmrunError(NO_MEMORY, "no cells").info()))
        return
    send_event(request.id, Text(0, "one"))
    log("warning", f"about to {prompt}")
    if prompt == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif prompt == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif prompt == "exit":
        os._exit(3)
    elif prompt == "garbage":
        STDOUT.write(b"this was printed by some library\n")
        STDOUT.flush()
    elif prompt == "partial":
        STDOUT.write(encode(Events([(request.id, Text(0, "two"))]))[:-3])
        STDOUT.flush()
        os._exit(0)
    elif prompt == "twice":
        finish(request, 1)
        finish(request, 1)
        send_event(request.id, Text(0, "late"))


def finish(request: GenerateRequest, tokens: int) -> None:
    timings = Timings(queue_ms=1, prefill_ms=2, decode_ms=3, ttft_ms=4, itl_ms=5)
    send(
        Stats(
            running=0,
            waiting=0,
            kv_used=0,
            kv_retained=0,
            kv_total=4096,
            prompt_tokens=7,
            cached_tokens=2,
            completion_tokens=tokens,
            drafted=0,
            accepted=0,
            steps=tokens,
            preemptions=0,
            decode_tps=10.0,
        )
    )
    send_event(request.id, Stopped(0, "stop"))
    send_event(request.id, Finished(usage=Usage(prompt=7, completion=tokens, cached=2), timings=timings))


def send(frame: Up) -> None:
    STDOUT.write(encode(frame))
    STDOUT.flush()


def send_event(request_id: str, event: Event) -> None:
    send(Events([(request_id, event)]))


def receive() -> Down | None:
    prefix = read(PREFIX_SIZE)
    return decode_down(read(frame_length(prefix))) if prefix else None


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := STDIN.read(size - len(data))):
            return b""
        data += more
    return data


def log(level: str, text: str) -> None:
    told = {"level": level, "logger": "llmrun.runner", "message": text}
    print(json.dumps(told), file=sys.stderr, flush=True)


def note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def hang() -> NoReturn:
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
