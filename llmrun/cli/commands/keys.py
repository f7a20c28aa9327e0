"""`llmrun keys`: API keys for others who use this daemon."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from llmrun.cli import completion
from llmrun.cli.args import AsJson, complete_model, new_app
from llmrun.cli.layout import Columns
from llmrun.cli.session import session_of

app = new_app()

_NAME = typer.Argument(metavar="NAME", help="What to call the key.", show_default=False)


@app.callback()
def keys() -> None:
    """Give others keys to the daemon, with limits, and take them back. A running daemon notices at once."""


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, _NAME],
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="A model it may use, * for any part; repeatable.",
            autocompletion=complete_model,
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, help="Requests that it may send.")
    ] = None,
    tokens_per_day: Annotated[
        int | None,
        typer.Option(metavar="COUNT", min=1, help="Tokens of prompts and answers, midnight to midnight UTC."),
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="It may also pull, create and remove models and end the daemon.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it: it is shown this once, and kept as a hash only.

    \b
    Examples:
      llmrun keys create laptop
      llmrun keys create guest --model 'smollm2:*' --requests-per-minute 20 --tokens-per-day 50000
    """
    from llmrun.access.keyring import Keyring

    session = session_of(context, as_json=as_json)
    keyring = Keyring.of(session.paths)
    first = not keyring.entries()
    secret = keyring.create(
        name,
        models=tuple(model or ()),
        requests_per_minute=requests_per_minute,
        tokens_per_day=tokens_per_day,
        admin=admin,
    )
    if as_json:
        session.out.json({"name": name, "key": secret})
    else:
        session.out.result(secret)
        session.out.note("it is shown this once; clients send it as LLMRUN_API_KEY, or as their API key")
    if first:
        session.out.note(
            "from now on the daemon wants a key of everybody, of your own commands too: set LLMRUN_API_KEY"
        )


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the keys, their limits and what they used.

    \b
    Example:
      llmrun keys list
    """
    from llmrun.access.keyring import Keyring
    from llmrun.access.limiter import day_of
    from llmrun.access.usage import UsageLog

    session = session_of(context, as_json=as_json)
    usage = UsageLog.of(session.paths)
    today = day_of(datetime.now().timestamp())
    records = []
    for key in Keyring.of(session.paths).entries():
        used = usage.used(key.id)
        records.append(
            {
                "name": key.name,
                "models": list(key.models),
                "admin": key.admin,
                "requests_per_minute": key.requests_per_minute,
                "tokens_per_day": key.tokens_per_day,
                "requests": used.requests,
                "prompt_tokens": used.prompt_tokens,
                "completion_tokens": used.completion_tokens,
                "tokens_today": used.tokens_on(today),
                "created": key.created,
                "last_used": used.last_used or None,
                "revoked": key.revoked,
            }
        )
    session.out.records(records, COLUMNS)


@app.command()
def revoke(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="What the key is called.",
            show_default=False,
            autocompletion=completion.keys,
        ),
    ],
) -> None:
    """Take a key back: it is refused from now on.

    \b
    Example:
      llmrun keys revoke laptop
    """
    from llmrun.access.keyring import Keyring

    session = session_of(context)
    keyring = Keyring.of(session.paths)
    keyring.revoke(name)
    session.out.note(f"the key {name} is revoked")
    if all(key.revoked for key in keyring.entries()):
        session.out.note(
            f"none is left, and the daemon goes on to want one: make another, or remove {keyring.path}"
        )


def _day(key: Any) -> str:
    return f"{datetime.fromtimestamp(key['last_used']):%Y-%m-%d %H:%M}" if key["last_used"] else "never"


COLUMNS: Columns = {
    "NAME": lambda key: key["name"],
    "STATE": lambda key: "revoked" if key["revoked"] else "admin" if key["admin"] else "in use",
    "MODELS": lambda key: " ".join(key["models"]) or "all",
    "REQUESTS/MIN": lambda key: str(key["requests_per_minute"] or "any"),
    "TOKENS/DAY": lambda key: str(key["tokens_per_day"] or "any"),
    "TODAY": lambda key: str(key["tokens_today"]),
    "REQUESTS": lambda key: str(key["requests"]),
    "TOKENS": lambda key: str(key["prompt_tokens"] + key["completion_tokens"]),
    "LAST USED": _day,
}
