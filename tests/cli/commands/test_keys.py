"""`keys`: the file that the daemon reads, without a daemon."""

from __future__ import annotations

import json

from llmrun.access.key import find
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.config import Paths
from tests.cli.conftest import Shell


def test_keys_create_prints_the_key_alone_once(shell: Shell, paths: Paths) -> None:
    done = shell.run("keys", "create", "guest", "--model", "tiny:*", "--requests-per-minute", "20")
    assert done.code == 0
    key = find(Keyring.of(paths).entries(), done.out.strip())
    assert key is not None
    assert (key.models, key.requests_per_minute, key.admin) == (("tiny:*",), 20, False)
    assert "once" in done.err
    assert done.out.strip() not in shell.run("keys", "list", "--json").out
    made = json.loads(shell.run("keys", "create", "other", "--json").out)
    assert find(Keyring.of(paths).entries(), made["key"])


def test_keys_list_shows_limits_and_use(shell: Shell, paths: Paths) -> None:
    shell.run("keys", "create", "guest", "--tokens-per-day", "500")
    (key,) = Keyring.of(paths).entries()
    usage = UsageLog.of(paths)
    usage.add(key.id, 3 * 86400.0, requests=2, prompt=30, completion=12)
    usage.save(usage.snapshot())
    (record,) = json.loads(shell.run("keys", "list", "--json").out)
    assert (record["requests"], record["prompt_tokens"], record["completion_tokens"]) == (2, 30, 12)
    assert record["tokens_today"] == 0
    row = shell.run("keys", "list").out.splitlines()[1].split()
    assert row[:8] == ["guest", "in", "use", "all", "any", "500", "0", "2"]


def test_keys_revoke_takes_it_back(shell: Shell, paths: Paths) -> None:
    secret = shell.run("keys", "create", "guest").out.strip()
    assert shell.run("keys", "revoke", "guest").code == 0
    assert find(Keyring.of(paths).entries(), secret) is None
    assert "revoked" in shell.run("keys", "list").out
    again = shell.run("keys", "revoke", "guest")
    assert again.code == 1
    assert "there is no key 'guest'" in again.err


def test_keys_first_and_last_say_what_the_daemon_wants_from_then_on(shell: Shell, paths: Paths) -> None:
    assert "of your own commands too: set LLMRUN_API_KEY" in shell.run("keys", "create", "a").err
    assert "own commands" not in shell.run("keys", "create", "b").err
    assert "none is left" not in shell.run("keys", "revoke", "a").err
    assert f"make another, or remove {paths.config / 'keys.json'}" in shell.run("keys", "revoke", "b").err
