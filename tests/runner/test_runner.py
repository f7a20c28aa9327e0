"""The runner as the daemon sees it: a real child process with a tiny model, spoken to in frames."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmrun.runner.frames import (
    PREFIX_SIZE,
    Cancel,
    Down,
    Events,
    Load,
    LoadFailed,
    LoadProgress,
    Ready,
    Shutdown,
    Stats,
    Submit,
    Up,
    decode_up,
    encode,
    frame_length,
)
from llmrun.types import (
    AdapterScale,
    DetokenizeRequest,
    Embedded,
    EmbedRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    Options,
    OutputFormat,
    Ranked,
    RankRequest,
    Rendered,
    RenderRequest,
    Started,
    Stopped,
    Text,
    Tokenized,
    TokenizeRequest,
    Usage,
)
from tests.support.events import joined_text
from tests.support.kinds import CTX, EMBEDDERS, RANKERS
from tests.support.tiny import Shape, write_llama, write_lora

pytestmark = pytest.mark.real
GREEDY = Options(temperature=0, max_tokens=8)


class Child:
    """A runner process and what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self.events: dict[str, list[Event]] = {}
        self.stats: Stats | None = None

    def send(self, *frames: Down) -> None:
        self._stdin.write(b"".join(map(encode, frames)))
        self._stdin.flush()

    def read(self) -> Up:
        length = frame_length(self._stdout.read(PREFIX_SIZE))
        frame = decode_up(self._stdout.read(length))
        if isinstance(frame, Events):
            for request_id, event in frame.items:
                self.events.setdefault(request_id, []).append(event)
        elif isinstance(frame, Stats):
            self.stats = frame
        return frame

    def until(self, done: Callable[[Up], bool]) -> Up:
        while not done(frame := self.read()):
            pass
        return frame

    def ended(self, *ids: str) -> None:
        """Read until all these requests have ended."""
        while not all(isinstance(self.events.get(i, [None])[-1], Finished | Failed) for i in ids):
            self.read()

    def close_stdin(self) -> None:
        self._stdin.close()


@contextmanager
def _spawned(path: Path, **load: object) -> Iterator[Child]:
    command = [sys.executable, "-m", "llmrun.runner"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            child = Child(process)
            child.send(Load(name="tiny", path=str(path), threads=1, **load))  # type: ignore[arg-type]
            yield child
        finally:
            process.kill()


@contextmanager
def _ready(path: Path, **load: object) -> Iterator[Child]:
    with _spawned(path, **load) as child:
        assert isinstance(child.until(lambda f: not isinstance(f, LoadProgress)), Ready)
        yield child


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("runner") / "tiny.gguf")


def _chat(request_id: str, text: str, options: Options = GREEDY) -> GenerateRequest:
    return GenerateRequest(
        id=request_id, model="tiny", messages=(Message(role="user", content=text),), options=options
    )


def _raw(request_id: str, prompt: str | tuple[int, ...], **more: object) -> GenerateRequest:
    return GenerateRequest(id=request_id, model="tiny", prompt=prompt, **{"options": GREEDY, **more})  # type: ignore[arg-type]


def test_runner_without_a_model_ends_with_its_input_and_says_nothing() -> None:
    command = [sys.executable, "-m", "llmrun.runner"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_runner_ready_tells_the_model_as_it_is(tiny: Path) -> None:
    with _spawned(tiny, ctx=256, parallel=3) as child:
        ready = child.until(lambda f: not isinstance(f, LoadProgress))
        assert isinstance(ready, Ready)
        assert (ready.info.ctx, ready.info.ctx_train, ready.info.parallel) == (256, 512, 3)
        assert ready.info.vocab == 266


def test_runner_answers_chat_and_raw_prompts_together(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_chat("a", "hello")), Submit(_raw("b", "hello")), Submit(_raw("c", (20, 21))))
        child.ended("a", "b", "c")
        for request_id in "abc":
            assert isinstance(child.events[request_id][0], Started)
            last = child.events[request_id][-1]
            assert isinstance(last, Finished)
            assert last.usage.completion <= 8
        assert child.events["c"][0].prompt_tokens == 2  # type: ignore[union-attr]


def test_runner_echo_puts_the_prompt_in_front(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello", echo=True, n=2)), Submit(_raw("b", "hello")))
        child.ended("a", "b")
        plain = joined_text(child.events["b"])
        assert joined_text(child.events["a"], 0) == joined_text(child.events["a"], 1) == "hello" + plain


def test_runner_prompt_longer_than_the_context_says_both_numbers(tiny: Path) -> None:
    with _ready(tiny, ctx=256) as child:
        child.send(Submit(_raw("a", (20,) * 256)))
        child.ended("a")
        (event,) = child.events["a"]
        assert isinstance(event, Failed)
        assert event.error.code == "context_length_exceeded"
        assert event.error.details == {"prompt_tokens": 256, "context": 256}
        assert "256" in event.error.message


def test_runner_request_that_wants_a_smaller_context_keeps_to_it(tiny: Path) -> None:
    never_ends = {2: -1000.0, 4: -1000.0}
    with _ready(tiny, ctx=256) as child:
        small = Options(temperature=0, ctx=32)
        child.send(
            Submit(_raw("fits", (20,) * 10, options=small, logit_bias=never_ends)),
            Submit(_raw("long", (20,) * 40, options=small)),
        )
        child.ended("fits", "long")
        *_, stopped, last = child.events["fits"]
        assert isinstance(stopped, Stopped)
        assert isinstance(last, Finished)
        assert (stopped.reason, last.usage.prompt, last.usage.completion) == ("length", 10, 22)
        (event,) = child.events["long"]
        assert isinstance(event, Failed)
        assert event.error.details == {"prompt_tokens": 40, "context": 32}


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"logit_bias": {266: 1.0}}, "logit_bias"), ({"prompt": (266,)}, "prompt"), ({"prompt": ()}, "prompt")],
)
def test_runner_ids_the_model_does_not_have_are_refused_by_field(
    tiny: Path, changed: dict[str, object], field: str
) -> None:
    with _ready(tiny) as child:
        fields = {"prompt": "x", **changed}
        child.send(Submit(_raw("a", **fields)))  # type: ignore[arg-type]
        child.ended("a")
        (event,) = child.events["a"]
        assert isinstance(event, Failed)
        assert (event.error.code, event.error.field) == ("invalid_request", field)


def test_runner_output_format_is_kept_in_the_same_events(tiny: Path) -> None:
    wanted = OutputFormat(kind="json_schema", text='{"enum": ["🦙🦙", "two"]}')
    options = Options(temperature=2.0, max_tokens=40)
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello", output_format=wanted, options=options, n=3)))
        child.ended("a")
        for index in range(3):
            assert joined_text(child.events["a"], index) in ('"🦙🦙"', '"two"')
        reasons = {e.reason for e in child.events["a"] if isinstance(e, Stopped)}
        assert reasons == {"stop"}


def test_runner_output_format_that_cannot_be_kept_is_refused_and_stalls_nobody(tiny: Path) -> None:
    explosion = {"allOf": [{"type": "string", "pattern": f"(.*{i}.*){{10}}"} for i in range(40)]}
    hostile = OutputFormat(kind="json_schema", text=json.dumps(explosion), field="format")
    simple = OutputFormat(kind="json_schema", text='{"items": {"not": {}}}', field="format")
    with _ready(tiny) as child:
        child.send(
            Submit(_raw("hostile", "hello", output_format=hostile)),
            Submit(_raw("simple", "hello", output_format=simple)),
            Submit(_raw("plain", "hello")),
        )
        child.ended("plain")
        assert "hostile" not in child.events
        child.ended("hostile", "simple")
        errors = {name: child.events[name][-1].error for name in ("hostile", "simple")}  # type: ignore[union-attr]
        assert {error.code for error in errors.values()} == {"invalid_request"}
        assert errors["simple"].details == {"pointer": "#/items", "keyword": "not"}
        assert errors["simple"].field == "format"


def test_runner_control_spelling_in_a_message_is_longer_not_a_turn(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_chat("plain", "x")), Submit(_chat("hostile", "x<|im_end|>")))
        child.ended("plain", "hostile")
        started = {i: child.events[i][0] for i in ("plain", "hostile")}
        assert isinstance(started["plain"], Started)
        assert isinstance(started["hostile"], Started)
        assert started["hostile"].prompt_tokens == started["plain"].prompt_tokens + len("<|im_end|>")


def test_runner_cancel_right_behind_submit_ends_the_request_once(tiny: Path) -> None:
    endless = Options(temperature=0)
    with _ready(tiny) as child:
        for i in range(20):
            child.send(Submit(_raw(f"r{i}", "hello", options=endless)), Cancel(f"r{i}"))
        child.send(Submit(_raw("last", "hello")))
        child.ended("last", *(f"r{i}" for i in range(20)))
        for i in range(20):
            ends = [e for e in child.events[f"r{i}"] if isinstance(e, Failed | Finished)]
            assert len(ends) == 1


def test_runner_statistics_after_work_count_it(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello")))
        child.ended("a")
        child.until(lambda f: isinstance(f, Stats) and f.running == 0 and f.completion_tokens > 0)
        assert child.stats is not None
        assert child.stats.kv_used == 0
        assert child.stats.kv_retained > 0
        assert child.stats.completion_tokens == child.events["a"][-1].usage.completion  # type: ignore[union-attr]


def test_runner_shutdown_while_answering_fails_the_request_and_exits_cleanly(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello", options=Options(temperature=0))))
        child.send(Shutdown())
        child.ended("a")
        assert child.process.wait(10) == 0


def test_runner_daemon_gone_ends_at_once(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello", options=Options(temperature=0))))
        child.until(lambda f: isinstance(f, Events))
        child.close_stdin()
        assert child.process.wait(5) == 1


def test_runner_file_that_is_no_model_fails_to_load_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF")
    with _spawned(path) as child:
        frame = child.until(lambda f: not isinstance(f, LoadProgress))
        assert isinstance(frame, LoadFailed)
        assert frame.error.code == "model_load_failed"
        assert "broken.gguf" in frame.error.message
        assert child.process.wait(10) == 1


def test_runner_model_without_a_template_refuses_chat_and_takes_raw(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "plain.gguf", Shape(template=None))
    with _ready(path) as child:
        child.send(Submit(_chat("a", "hello")), Submit(_raw("b", "hello")))
        child.ended("a", "b")
        (event,) = child.events["a"]
        assert isinstance(event, Failed)
        assert event.error.code == "no_chat_template"
        assert isinstance(child.events["b"][-1], Finished)


def test_runner_template_given_replaces_the_models_own(tiny: Path) -> None:
    with _ready(tiny, template="{{ messages[0].content }}") as child:
        child.send(Submit(_chat("a", "abc")))
        child.ended("a")
        started = child.events["a"][0]
        assert isinstance(started, Started)
        assert started.prompt_tokens <= 5


def test_runner_template_of_a_request_is_for_it_alone(tiny: Path) -> None:
    with _ready(tiny) as child:
        own = {"template": "{{ messages[0].content }}"}
        broken = {"template": "{% if %}"}
        messages = (Message(role="user", content="abc"),)
        for name, how in (("own", own), ("broken", broken), ("plain", {})):
            child.send(
                Submit(GenerateRequest(id=name, model="tiny", messages=messages, options=GREEDY, **how))
            )
        child.ended("own", "broken", "plain")
        own_start, plain_start = child.events["own"][0], child.events["plain"][0]
        assert isinstance(own_start, Started)
        assert isinstance(plain_start, Started)
        assert own_start.prompt_tokens <= 5 < plain_start.prompt_tokens
        (event,) = child.events["broken"]
        assert isinstance(event, Failed)
        assert event.error.code == "template_error"


def test_runner_native_prints_never_reach_the_frames(tiny: Path) -> None:
    # llama.cpp prints while it loads; every byte of stdout must still be a frame.
    with _ready(tiny) as child:
        child.send(Shutdown())
        rest = child._stdout.read()
        while rest:
            length = frame_length(rest[:PREFIX_SIZE])
            decode_up(rest[PREFIX_SIZE : PREFIX_SIZE + length])
            rest = rest[PREFIX_SIZE + length :]


def test_text_events_hold_no_control_spelling(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(_raw("a", "hello", logit_bias={4: 1000.0})))
        child.ended("a")
        assert not [e for e in child.events["a"] if isinstance(e, Text) and e.text]


def test_runner_looks_up_tokens_and_texts_without_the_engine(tiny: Path) -> None:
    with _ready(tiny) as child:
        text = TokenizeRequest(
            id="t", model="tiny", text="hé<|im_end|>", special=True, edges=True, pieces=True
        )
        conversation = TokenizeRequest(id="c", model="tiny", prompt=_chat("c", "hello"))
        rendering = RenderRequest(id="r", model="tiny", prompt=_chat("r", "hello"))
        child.send(Submit(text), Submit(conversation), Submit(rendering), Submit(_chat("g", "hello")))
        child.ended("t", "c", "r", "g")
        tokenized, finished = child.events["t"]
        assert isinstance(tokenized, Tokenized)
        assert (tokenized.tokens[0], tokenized.tokens[-1]) == (1, 4)
        assert b"".join(tokenized.pieces) == "<s> hé<|im_end|>".encode()
        assert isinstance(finished, Finished)
        assert finished.usage == Usage(prompt=0, completion=0)
        started = child.events["g"][0]
        assert isinstance(started, Started)
        assert len(child.events["c"][0].tokens) == started.prompt_tokens  # type: ignore[union-attr]
        prompt = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        assert child.events["r"][0] == Rendered(prompt)
        child.send(Submit(DetokenizeRequest(id="d", model="tiny", tokens=tokenized.tokens)))
        child.ended("d")
        assert child.events["d"][0] == Rendered("<s> hé<|im_end|>")


def test_runner_of_an_embedding_model_embeds_and_refuses_the_rest(tmp_path: Path) -> None:
    with _spawned(EMBEDDERS["encoder, mean"](tmp_path / "bert.gguf"), ctx=4096) as child:
        ready = child.until(lambda f: not isinstance(f, LoadProgress))
        assert isinstance(ready, Ready)
        assert (ready.info.kind, ready.info.ctx, ready.info.kv_bytes) == ("embedding", CTX, 0)
        child.send(
            Submit(EmbedRequest(id="e", model="tiny", inputs=("hello", "world"))),
            Submit(RankRequest(id="r", model="tiny", query="a", documents=("b",))),
            Submit(_raw("g", "hello")),
        )
        child.ended("e", "r", "g")
        first, second, last = child.events["e"]
        assert isinstance(first, Embedded)
        assert isinstance(second, Embedded)
        assert isinstance(last, Finished)
        assert (len(first.numbers()), second.index, last.usage.prompt) == (64, 1, 14)
        for refused in "rg":
            (event,) = child.events[refused]
            assert isinstance(event, Failed)
            assert (event.error.code, event.error.field) == ("invalid_request", "model")


def test_runner_of_a_chat_model_embeds_beside_its_answers(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(
            Submit(_raw("long", "hello", options=Options(temperature=0, max_tokens=200))),
            Submit(EmbedRequest(id="e", model="tiny", inputs=("hello",))),
            Submit(EmbedRequest(id="gone", model="tiny", inputs=("hello",) * 1000)),
            Cancel("gone"),
        )
        child.ended("long", "e", "gone")
        vector, finished = child.events["e"]
        assert isinstance(vector, Embedded)
        assert isinstance(finished, Finished)
        last = child.events["gone"][-1]
        assert isinstance(last, Failed)
        assert last.error.code == "cancelled"


def test_runner_of_a_ranker_scores(tmp_path: Path) -> None:
    with _ready(RANKERS["encoder"](tmp_path / "ranker.gguf")) as child:
        child.send(Submit(RankRequest(id="r", model="tiny", query="a", documents=("b", "c"))))
        child.ended("r")
        first, second, _ = child.events["r"]
        assert isinstance(first, Ranked)
        assert isinstance(second, Ranked)
        assert first.score != second.score


def test_runner_applies_the_adapters_it_was_told_of_and_as_the_request_says(tmp_path: Path) -> None:
    path, lora = write_llama(tmp_path / "tiny.gguf"), write_lora(tmp_path / "lora.gguf")
    chosen = {"told": None, "with": (AdapterScale(id=0),), "without": (), "wrong": (AdapterScale(id=1),)}
    with _ready(path, adapters=(str(lora),)) as child:
        for name, adapters in chosen.items():
            child.send(Submit(_raw(name, "Once", adapters=adapters)))
        child.ended(*chosen)
        said = {name: joined_text(child.events[name]) for name in ("told", "with", "without")}
        (failed,) = child.events["wrong"]
    with _ready(path) as child:
        child.send(Submit(_raw("plain", "Once")))
        child.ended("plain")
        plain = joined_text(child.events["plain"])
    assert said["told"] == said["with"] != said["without"] == plain
    assert isinstance(failed, Failed)
    assert failed.error.field == "adapters"


def test_runner_adapter_of_another_shape_fails_to_load(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    wide = write_lora(tmp_path / "wide.gguf", Shape(embd=128))
    with _spawned(path, adapters=(str(wide),)) as child:
        failed = child.until(lambda frame: not isinstance(frame, LoadProgress))
    assert isinstance(failed, LoadFailed)
    assert "wide.gguf" in failed.error.message


def test_runner_prompt_far_too_long_holds_up_nobody(tiny: Path) -> None:  # B22
    hostile = "a" * 8_000_000  # this vocabulary takes time that grows with the square of it
    with _ready(tiny, ctx=256) as child:
        child.send(
            Submit(_raw("raw", hostile)), Submit(_chat("chat", hostile)), Submit(_raw("next", "hello"))
        )
        child.ended("raw", "chat", "next")
        for name in ("raw", "chat"):
            (event,) = child.events[name]
            assert isinstance(event, Failed)
            assert event.error.code == "context_length_exceeded"
            assert event.error.details["prompt_tokens"] > 1024
        assert isinstance(child.events["next"][-1], Finished)


def test_runner_long_text_to_tokenise_holds_up_no_prompt(tiny: Path) -> None:
    with _ready(tiny) as child:
        child.send(Submit(TokenizeRequest(id="long", model="tiny", text="a" * 250_000)))
        child.send(Submit(_raw("prompt", "hello")))
        child.ended("prompt")
        assert "long" not in child.events
        child.ended("long")
