"""Gathers a session for a command: which agent, on which service, with whose handlers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentfn.errors import InvalidFileError, NegativeError, UsageError
from agentfn.journal.turns import Conversation, Turns
from agentfn.turn.approvals import Rules, read_rules
from agentfn.turn.session import Answerer, Nobody, Policy, Session, functions_digest

if TYPE_CHECKING:
    from agentfn.backends.protocol import Backend
    from agentfn.cli._context import AppContext
    from agentfn.definition.agent import Agent
    from agentfn.emulator.models.scenario import Scenario
    from agentfn.handlers.protocol import Handler
    from agentfn.handlers.verify import Verifier
    from agentfn.journal.ledger import Ledger
    from agentfn.model import AgentRef
    from agentfn.turn.events import Emit

_FILE_ENDINGS = (".yaml", ".yml", ".json")


class Target(NamedTuple):
    """The agent a command is about: its definition where there is one, and the version where that is known."""

    agent: Agent | None
    ref: AgentRef | None


def is_file_name(text: str) -> bool:
    """Tell whether AGENT means a file rather than ``name[:version]``."""
    return text.endswith(_FILE_ENDINGS) or "/" in text or "\\" in text or Path(text).is_file()


def load_file(ctx: AppContext, path: str) -> Agent:
    """Return the definition in a file; its warnings go to stderr."""
    from agentfn.definition.load import check_agent

    agent, findings = check_agent(
        Path(path),
        ctx.env,
        protocol=ctx.settings().protocol_name,
        default_model=ctx.settings().model.value,
        advice=False,
    )
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors or agent is None:
        raise InvalidFileError(errors, hint=f"agentfn validate {path}")
    for finding in findings:
        ctx.console.warn(str(finding))
    return agent


def ledger_target(ctx: AppContext, ledger: Ledger, text: str) -> Target | None:
    """Return agentfn's own newest version that ``name[:version]`` means, with its file where that is still there."""
    name, _, version = text.partition(":")
    row = ledger.latest_agent(name, version or None)
    if row is None or row.state != "created":
        return None
    if not row.definition or not Path(row.definition).is_file():
        return Target(None, row.ref)
    agent = load_file(ctx, row.definition)
    return Target(_as_created(ctx, agent, row.digest), row.ref)


def remote_target(backend: Backend, ledger: Ledger, text: str) -> Target:
    """Return the service's version that ``name[:version]`` means; NegativeError where it has none."""
    from agentfn.lifecycle.remote_agent import agent_from_remote

    name, _, version = text.partition(":")
    remote = backend.find_agent(name, version or None)
    if remote is None:
        raise no_such_agent(text, backend, ledger)
    return Target(agent_from_remote(remote), remote.ref)


def no_such_agent(text: str, backend: Backend, ledger: Ledger) -> NegativeError:
    """Return the error for a name that the service does not know, with those that are known."""
    known = sorted({row.label for row in ledger.live("agent")})
    return NegativeError(
        f"there is no agent {text} at {backend.endpoint}",
        code="agent_not_found",
        hint=f"known here: {', '.join(known)}" if known else "create one first: agentfn create FILE",
    )


def _as_created(ctx: AppContext, agent: Agent, digest: str | None) -> Agent:
    from agentfn.definition.digest import digest as digest_of

    if digest is not None and digest_of(agent) != digest:
        ctx.console.warn(f"{agent.path} changed since this version was created; agentfn create {agent.path} updates it")
    return agent


def local_scenario(agent: Agent | None, option: str | None, backend: str) -> Scenario | None:
    """Return the scenario for the embedded service: the option's, else the definition's; None for the stand-in."""
    if option is not None:
        if backend != "local":
            raise UsageError("--scenario is for the embedded service", hint="leave it out, or use --backend local")
        if not Path(option).is_file():
            raise UsageError(f"there is no scenario file {option}")
    if backend != "local" or (option is None and (agent is None or agent.local is None)):
        return None
    from agentfn.emulator.models.scenario import load_scenario, parse_scenario

    if option is not None:
        return load_scenario(Path(option))
    assert agent is not None  # noqa: S101  # the first condition above
    if isinstance(agent.local, str):
        return load_scenario(agent.base / agent.local)
    return parse_scenario(agent.local, str(agent.path))


def handlers_of(ctx: AppContext, agent: Agent | None, *, only: str | None = None) -> dict[str, Handler]:
    """Return the handlers of a definition (or of one function), checked that they can start; manual ones have none."""
    if agent is None:
        return {}
    from agentfn.handlers import build_handlers

    tools = [tool for tool in agent.functions if only in (None, tool.name)]
    return build_handlers(agent, tools, env=ctx.env, masker=ctx.masker())


def _verifiers(ctx: AppContext, agent: Agent, how: How) -> dict[str, Verifier]:
    """Return what tells of calls in doubt whether they ran."""
    if not any(tool.verify for tool in agent.functions):
        return {}
    from agentfn.handlers.verify import build_verifiers

    found = build_verifiers(agent.functions, agent.base, env=ctx.env, masker=ctx.masker())
    return {name: verifier for name, verifier in found.items() if name not in how.unfit}


def _rules(path: str | None) -> Rules:
    if path is None:
        return Rules()
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    return read_rules(Path(path))


def unfit_functions(ctx: AppContext, agent: Agent | None, conversation: Conversation) -> frozenset[str]:
    """Return the functions that changed in the file since the conversation began, and say so."""
    if agent is None:
        return frozenset()
    now = functions_digest(agent)
    unfit = [name for name, digest in conversation.functions.items() if now.get(name) != digest]
    for name in unfit:
        ctx.console.warn(
            f"{name} changed or is gone in {agent.path} since {conversation.id} began; its handler is not used"
        )
    return frozenset(unfit)


def definition_of(ctx: AppContext, conversation: Conversation) -> Agent | None:
    """Return the definition that a conversation was begun with, as its file stands now, or None."""
    if conversation.definition is None:
        return None
    if not Path(conversation.definition).is_file():
        ctx.console.warn(f"{conversation.definition} is gone; calls of {conversation.id} can be answered by hand")
        return None
    return load_file(ctx, conversation.definition)


def known_conversation(ctx: AppContext, conversation: str) -> Conversation | None:
    """Return what the journal knows of a conversation; UsageError where two services have one of that id."""
    found = Turns(ctx.journal()).find_conversation(conversation)
    if len(found) > 1:
        found = [c for c in found if c.backend == ctx.settings().backend.value] or found
    if len(found) > 1:
        places = ", ".join(f"{c.backend} {c.endpoint}" for c in found)
        raise UsageError(f"several services have a conversation {conversation}: {places}", hint="add --backend")
    return found[0] if found else None


class How(NamedTuple):
    """How a session runs: for which run of a command, with handlers or without, asking a person where one is there.

    `approve` is a file that decides where nobody is there to ask; `unfit` are functions whose definition changed since the
    conversation began; `only` is the one call whose handler may run.
    """

    run: str
    run_handlers: bool = True
    wait: float = 10.0
    stream: bool = False
    ask: bool = True
    approve: str | None = None
    only: str | None = None
    unfit: frozenset[str] = frozenset()


def session(
    ctx: AppContext,
    backend: Backend,
    conversation: Conversation,
    agent: Agent | None,
    handlers: dict[str, Handler],
    emit: Emit,
    how: How,
) -> Session:
    """Return a session; a person is asked where one is at the terminal and `how.ask` allows it."""
    person = how.ask and ctx.console.interactive
    answerer: Answerer = Nobody()
    if person:
        from agentfn.cli._prompt import Terminal

        answerer = Terminal(ctx.console)
    return Session(
        backend=backend,
        journal=ctx.journal(),
        conversation=conversation,
        agent=agent,
        run=how.run,
        emit=emit,
        handlers={name: handler for name, handler in handlers.items() if name not in how.unfit},
        verifiers=_verifiers(ctx, agent, how) if agent is not None and how.run_handlers else {},
        rules=_rules(how.approve),
        unfit=how.unfit,
        answerer=answerer,
        policy=Policy(run=how.run_handlers, tell_problems=not person, only=how.only),
        stream=how.stream,
        wait=how.wait,
        clock=ctx.clock,
    )
