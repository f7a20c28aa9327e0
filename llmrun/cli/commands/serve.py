"""`llmrun serve`: the daemon in the foreground."""

from __future__ import annotations

import os
from enum import Enum
from typing import Annotated, Any

import typer

from llmrun.cli.args import new_app
from llmrun.cli.session import session_of
from llmrun.config import load_settings, parse_setting

app = new_app()


class LogFormat(str, Enum):
    """How log lines look."""

    text = "text"
    json = "json"


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(metavar="KEY", help="Key that clients must send.")] = None,
    tls_cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="Certificate (PEM) to serve HTTPS with.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its private key, where not in the same file.")
    ] = None,
    parallel: Annotated[
        str | None, typer.Option(metavar="COUNT", help="Sequences decoded together per model, or auto.")
    ] = None,
    ctx: Annotated[str | None, typer.Option(metavar="TOKENS", help="Context per model, or auto.")] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option(metavar="text|json", help="Form of the log lines.")
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Serve beyond loopback without an API key.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", hidden=True)] = False,
) -> None:
    """Serve the HTTP API until Ctrl-C. Models are loaded when they are asked for.

    \b
    Examples:
      llmrun serve
      llmrun serve --host 0.0.0.0 --port 8080 --api-key "$KEY"
    """
    session = session_of(context)
    flags: dict[str, Any] = {"api_key": api_key, "log_format": log_format and log_format.value}
    texts = {"parallel": parallel, "ctx": ctx, "tls_cert": tls_cert, "tls_key": tls_key}
    for name, text in texts.items():
        if text is not None:
            flags[name] = parse_setting(name, text, f"--{name.replace('_', '-')}")
    if host is not None or port is not None:
        named = parse_setting("host", host, "--host") if host is not None else session.settings.host
        flags["host"] = named._replace(port=named.port if port is None else port)
    settings = load_settings(session.paths, os.environ, flags)

    from llmrun import log
    from llmrun.api import serve as server

    log.setup("DEBUG" if session.debug else "INFO", settings.log_format)
    if private:
        server.serve_private(settings, session.paths)
    else:
        server.serve(settings, session.paths, no_auth=no_auth)
