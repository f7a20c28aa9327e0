"""`llmrun chat` in a pseudo-terminal, with the real model and a daemon that dies."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.daemon.lock import find_daemon
from llmrun.store import Store
from tests.real.daemons import CLEAN, COMMAND, eventually, free_port, has_ended
from tests.support.terminal import Terminal

pytestmark = pytest.mark.real

SPINNER = "[\u2800-\u28ff] (waiting for the answer|reading the prompt)[^\\r]*\\r"
# A template that shows the default model how to think before it answers, and opens its thinking: so it does.
THINKER = """FROM smollm2:135m
PARAMETER temperature 0
TEMPLATE \"\"\"{% for question, thought, answer in [
    ("What is one and one?", "I add one and one.", "Two."),
    ("What colour is snow?", "I think of snow.", "White."),
] %}<|im_start|>user
{{ question }}<|im_end|>
<|im_start|>assistant
<think>
{{ thought }}
</think>

{{ answer }}<|im_end|>
{% endfor %}{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == "assistant" and message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}\"\"\"
"""
ANSWERING = SPINNER + "[^\u2800-\u28ff]*?(\\w+\\W+){6}"  # six words, and no spinner any more


@pytest.fixture
def env(model_path: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home of its own that has the model. The daemon that a command starts there is ended."""
    home = tmp_path / "home"
    Store(Paths.find({"LLMRUN_HOME": str(home)})).copy(str(model_path), DEFAULT_MODEL)
    env = {
        **CLEAN,
        "LLMRUN_HOME": str(home),
        "LLMRUN_HOST": f"127.0.0.1:{free_port()}",
        "LLMRUN_CTX": "2048",
        "LLMRUN_CACHE_DISK": "0",
    }
    yield env
    subprocess.run([*COMMAND, "stop", "--daemon"], env=env, timeout=60, capture_output=True, check=False)


def running(env: dict[str, str]) -> int:
    """Answers that the loaded model is at work on."""
    listed = subprocess.run([*COMMAND, "ps", "--json"], env=env, capture_output=True, timeout=60, check=True)
    (loaded,) = json.loads(listed.stdout)
    return int(loaded["stats"]["running"])


def test_chat_outlives_a_daemon_that_is_killed_and_asks_again(env: dict[str, str]) -> None:
    chat = Terminal(env, "chat", "-o", "temperature=0", "-o", "max_tokens=400")
    chat.expect(">>>")
    chat.type("Tell me a very long story about a lighthouse.\r")
    chat.expect(ANSWERING)
    daemon = find_daemon(Paths.find(env))
    assert daemon is not None
    process = psutil.Process(daemon.pid)
    runners = process.children(recursive=True)
    process.kill()
    chat.expect(r"error: the daemon went away.*your\s+message\s+is\s+kept.*>>>")
    assert eventually(lambda: all(map(has_ended, runners)), 10)

    chat.type("/set max_tokens 20\r")
    chat.expect("max_tokens.*20.*>>>")
    chat.type("/retry\r")
    chat.expect(f"starting the daemon.*{ANSWERING}.*>>>")
    chat.type("/context\r")
    shown = chat.expect(r"([\d,]+) of 2,048 tokens.*>>>")
    used = int(re.findall(r"([\d,]+) of 2,048", shown)[0].replace(",", ""))
    assert 50 < used < 100  # the template's system prompt, the question, twenty tokens of answer
    chat.type("\x04")
    assert chat.process.wait(30) == 0
    chat.close()

    again = Terminal(env, "chat", "--continue", "-o", "max_tokens=5")
    again.expect("1 answer by smollm2:135m.*>>>")
    again.type("/stats\r")
    again.expect("nothing has been answered yet.*>>>")
    again.type("And then?\r")
    again.expect(f"{SPINNER}.*>>>")
    again.type("/stats\r")
    again.expect(r"prompt\s+\d+ tokens.*ended\s+length")
    again.close()


def test_ctrl_c_ends_the_answer_in_the_engine_too(env: dict[str, str]) -> None:
    chat = Terminal(env, "chat", "-o", "temperature=0", "-o", "max_tokens=1500", "-o", "ignore_eos=true")
    chat.expect(">>>")
    chat.type("Tell me a story.\r")
    chat.expect(ANSWERING)
    chat.type("\x03")
    chat.expect("(stopped).*>>>")
    assert eventually(lambda: running(env) == 0, 10)
    chat.type("/show\r")
    chat.expect(r"turns\s+1\r")
    chat.close()


def test_lines_pasted_while_an_answer_is_written_are_one_message(env: dict[str, str]) -> None:
    chat = Terminal(env, "chat", "-o", "temperature=0", "-o", "max_tokens=60", "-o", "ignore_eos=true")
    chat.expect(">>>")
    chat.type("Tell me a story.\r")
    chat.expect(ANSWERING)
    assert chat.raw.rindex("\x1b[?2004h") > chat.raw.rindex("\x1b[?2004l")  # pastes are to be marked
    chat.type("\x1b[200~first line\rsecond line\x1b[201~")
    chat.expect(">>>.*first line.*second line")
    chat.type("\r")
    chat.expect(f"{SPINNER}.*>>>")
    chat.type("/show\r")
    chat.expect(r"turns\s+2\r")
    chat.close()


def _joined(text: str) -> str:
    """Without spaces and line breaks: lines are broken between words."""
    return "".join(text.split())


def test_thoughts_are_dim_and_fold_and_unfold(env: dict[str, str]) -> None:
    made = [*COMMAND, "create", "thinker", "-f", "-"]
    subprocess.run(made, env=env, input=THINKER.encode(), check=True, capture_output=True, timeout=60)
    chat = Terminal(env, "chat", "thinker", "-o", "max_tokens=60")
    chat.expect(">>>")
    chat.type("What is two and two?\r")
    shown = chat.expect(f"{SPINNER}.*\\r\n\\r\n.*\\w.*>>>")
    thought = "".join(re.findall("\x1b\\[2m([^\x1b]+)\x1b\\[22m", chat.raw))
    assert len(thought.split()) > 2, repr(chat.raw)
    assert "<think>" not in shown
    assert "</think>" not in shown

    chat.type("/think hide\r")
    chat.expect("hidden.*>>>")
    chat.type("/retry\r")
    folded = chat.expect(r"\(thought first, \d+ words; /think show unfolds it\).*>>>")
    assert _joined(thought) not in _joined(folded)
    assert int(re.findall(r"first, (\d+) words", folded)[0]) > 2
    chat.type("/think show\r")
    assert _joined(thought) in _joined(chat.expect("reasoning: .*, shown.*>>>"))
    chat.type("/stats\r")
    chat.expect(r"answer\s+\d+ tokens, \d+ of them reasoning.*>>>")
    chat.close()


def test_saved_chat_is_loaded_by_name_and_from_a_file_and_goes_on(
    env: dict[str, str], tmp_path: Path
) -> None:
    chat = Terminal(env, "chat", "--system", "Be brief.", "-o", "temperature=0", "-o", "max_tokens=8")
    chat.expect(">>>")
    chat.type("My name is Ann.\r")
    chat.expect(f"{SPINNER}.*>>>")
    chat.type("/save ann\r")
    chat.expect(r"saved as ann\s.*chats/ann.json.*>>>")
    chat.type(f"/export {tmp_path}/ann.json\r")
    chat.expect("written to.*>>>")
    chat.type("\x04")
    assert chat.process.wait(30) == 0
    chat.close()

    other = Terminal(env, "chat", "-o", "max_tokens=8")
    other.expect(">>>")
    other.type("/load bob\r")
    other.expect(r"error: there is no session 'bob'\. see:\s/sessions.*>>>")
    other.type("/load an\t\r")
    other.expect("ann: 1 answer by smollm2:135m.*>>>")
    other.type("/show\r")
    other.expect(r"session\s+ann\r\n.*system\s+Be brief\..*turns\s+1\r\n.*temperature\s+0\.0\r\n.*>>>")
    other.type("Who am I?\r")
    other.expect(f"{SPINNER}.*>>>")
    other.type("/sessions\r")
    assert re.search(r"ann \*.*\s2\s+My name is Ann\.", other.expect("BEGINS.*>>>"))
    other.type("/clear\r/show\r")
    other.expect(r"turns\s+0\r\n.*>>>")
    other.type(f"/load {tmp_path}/ann.js\t\r")
    other.expect(r"ann.json:\s+1\s+answer\s+by\s+smollm2:135m.*>>>")
    other.type("/undo\r")
    other.expect("forgotten: My name is Ann..*>>>")
    other.close()


def test_chat_reasoning_that_the_model_cannot_do_is_set_back(env: dict[str, str]) -> None:
    chat = Terminal(env, "chat", "-o", "max_tokens=8")
    chat.expect(">>>")
    chat.type("/think on\rHello\r")
    chat.expect("does not think")
    chat.expect("reasoning is again as the model has it")
    chat.type("/retry\r")
    chat.expect(ANSWERING.replace("{6}", "{2}"))
    chat.close()
