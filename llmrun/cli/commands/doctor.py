"""`llmrun doctor`: what is wrong here, and the command that mends it."""

from __future__ import annotations

import os
from dataclasses import asdict

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.doctor.finding import Finding, broken
from llmrun.cli.output import Output
from llmrun.cli.session import Session, session_of
from llmrun.errors import LlmrunError

app = new_app()


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Examine machine, llama.cpp, models, network and daemon. Exit code 1 where something is broken.

    \b
    Example:
      llmrun doctor
    """
    session = session_of(context, as_json=as_json)
    with session.out.waiting("looking at the machine, llama.cpp, the models, the network and the daemon"):
        findings = examine(session)
    if as_json:
        session.out.json([asdict(finding) for finding in findings])
    else:
        report(session.out, findings)
    if any(finding.level == "broken" for finding in findings):
        raise typer.Exit(1)


def examine(session: Session) -> list[Finding]:
    """All checks. One that fails to run is a finding itself."""
    from llmrun.cli.doctor.backend import check_backend
    from llmrun.cli.doctor.cache import check_cache
    from llmrun.cli.doctor.machine import check_machine
    from llmrun.cli.doctor.network import check_network
    from llmrun.cli.doctor.service import check_service
    from llmrun.cli.doctor.storage import check_storage
    from llmrun.cli.reach import connector

    findings = [*check_machine(), *check_backend(dict(os.environ)), *check_storage(session.paths)]
    try:
        where = connector(session)
    except LlmrunError as error:
        return [*findings, *check_network(), broken("settings", error.message, error.hint)]
    cache = check_cache(session.paths.kv, where.settings.cache_disk)
    return [*findings, *cache, *check_network(), *check_service(where)]


def report(out: Output, findings: list[Finding]) -> None:
    """A line per finding and, under what is wrong, its mend. Quiet: only what is wrong."""
    pairs: list[tuple[str, str]] = []
    for finding in findings:
        if finding.level == "ok" and out.quiet:
            continue
        pairs.append((f"{finding.level:<8} {finding.subject:<9}", finding.text))
        if finding.mend:
            pairs.append(("", f"mend: {finding.mend}"))
    out.fields(pairs)
