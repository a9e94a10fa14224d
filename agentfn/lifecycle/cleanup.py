"""Removes what agentfn created and still owns, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.errors import AgentfnError, NotAuthorisedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentfn.backends.protocol import Backend
    from agentfn.journal.ledger import Ledger, Resource
    from agentfn.model import RemoteAgent


class Selection(NamedTuple):
    """Which of its own resources a clean-up takes. `before` is unix seconds; None and empty choose nothing."""

    agents: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    run: str | None = None
    before: float | None = None
    everything: bool = False

    def is_empty(self) -> bool:
        """Tell whether nothing was chosen at all."""
        return self == Selection()

    def chooses(self, row: Resource) -> bool:
        """Tell whether a row is chosen: by one of the names where there are any, narrowed by run and by age."""
        if self.agents or self.conversations:
            is_agent = row.kind == "agent" and (row.name in self.agents or row.label in self.agents)
            if not is_agent and not (row.kind == "conversation" and row.name in self.conversations):
                return False
        return (self.run is None or row.run == self.run) and (self.before is None or row.at < self.before)


class Left(NamedTuple):
    """Something that was chosen and still stands."""

    resource: Resource
    why: str


class CleanUp(NamedTuple):
    """What a clean-up did."""

    deleted: tuple[Resource, ...]
    left: tuple[Left, ...]


def chosen(ledger: Ledger, selection: Selection) -> list[Resource]:
    """Return the live rows that a selection takes, conversations first: an agent in use may refuse to go."""
    rows = [row for row in ledger.live() if selection.chooses(row)]
    return sorted(rows, key=lambda row: row.kind != "conversation")


def remove(
    backend: Backend, ledger: Ledger, rows: Sequence[Resource], told: Callable[[Resource], None] = lambda _: None
) -> CleanUp:
    """Remove these rows' resources, each row's fate written down at once, so that a later clean-up goes on from here.

    What cannot be removed is reported, not raised; only NotAuthorisedError ends the work.
    """
    work = _Removal(backend, ledger, told)
    for row in rows:
        if row.kind == "conversation":
            work.attempt(row, work.conversation)
    for name in dict.fromkeys(row.name or "" for row in rows if row.kind == "agent"):
        work.agent(name, [row for row in rows if row.kind == "agent" and row.name == name])
    return work.result()


def remove_own_run(backend: Backend, ledger: Ledger, run: str, *, given_up: bool = False) -> CleanUp:
    """Remove what this very run made (`--rm`); it holds the ids itself, so nothing needs to be looked up first.

    An agent version that a conversation of another run still uses stays. `given_up` is for a process that itself still is
    at work in conversations of the run, and does not want them to go on.
    """
    work = _Removal(backend, ledger, given_up=given_up)
    rows = [row for row in ledger.live() if row.run == run]
    for row in sorted(rows, key=lambda row: row.kind != "conversation"):
        if row.kind == "conversation":
            work.attempt(row, work.conversation)
        elif row.state == "intended":
            work.agent(row.name or "", [row])
        else:
            work.attempt(row, work.own_version)
    return work.result()


class _KeptError(AgentfnError):
    """A resource stays, for a reason that is nobody's fault."""


class _Removal:
    """One clean-up under way: what is gone, and what still stands and why."""

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        told: Callable[[Resource], None] = lambda _: None,
        *,
        given_up: bool = False,
    ) -> None:
        self._given_up = given_up
        self._backend = backend
        self._ledger = ledger
        self._told = told
        self._deleted: list[Resource] = []
        self._left: list[Left] = []

    def result(self) -> CleanUp:
        return CleanUp(tuple(self._deleted), tuple(self._left))

    def attempt(self, row: Resource, work: Callable[[Resource], None]) -> None:
        """Remove one row's resource; a failure is noted and does not end the clean-up."""
        try:
            work(row)
        except NotAuthorisedError:
            raise
        except AgentfnError as exc:
            self._left.append(Left(row, exc.message))
        else:
            self._deleted.append(row)
            self._told(row)

    def conversation(self, row: Resource) -> None:
        """Remove a conversation; 404 counts as gone. Where the reply was lost, its id is found by the stamp."""
        busy = self._ledger.at_work(row.name) if row.name and not self._given_up else None
        if busy is not None:
            raise _KeptError(f"{busy} is at work in it")
        found = row.name or self._backend.find_conversation(row.token)
        if found is None:
            self._ledger.never_opened(row.token)
            return
        existed = self._backend.delete_conversation(found)
        self._ledger.conversation_ended(row._replace(name=found), "deleted" if existed else "gone")

    def own_version(self, row: Resource) -> None:
        """Remove a version that this process has just made."""
        if self._ledger.used_by_others(row):
            raise _KeptError("another run's conversation uses it")
        self._backend.delete_agent_version(row.ref)
        self._ledger.end(row.token, "deleted")

    def agent(self, name: str, own: Sequence[Resource]) -> None:
        """Remove our versions of an agent; the agent as a whole goes where no other version is left."""
        busy = {item.resource.name or "" for item in self._left if item.resource.kind == "conversation"}
        if busy and self._ledger.is_pinned(name, busy):
            self._left += [Left(row, "a conversation that was left uses it") for row in own]
            return
        remote: list[RemoteAgent] = []
        found: dict[str, RemoteAgent | None] = {}
        whole, failure = False, None
        try:
            remote = list(self._backend.versions(name))
            found = {row.token: _match(row, remote) for row in own}
            ours = {version.ref.version for version in found.values() if version is not None}
            whole = bool(ours) and all(version.ref.version in ours for version in remote)
            if whole:
                self._backend.delete_agent(name, [version.ref for version in remote])
        except NotAuthorisedError:
            raise
        except AgentfnError as exc:
            failure = exc

        def one(row: Resource) -> None:
            if failure is not None:
                raise failure
            version = found[row.token]
            if version is None:
                self._missing(row, remote)
                return
            if not whole:
                self._backend.delete_agent_version(version.ref)
            self._ledger.end(row.token, "deleted")

        for row in own:
            self.attempt(row, one)

    def _missing(self, row: Resource, remote: Sequence[RemoteAgent]) -> None:
        """Close the row of a version that is not there any more, or never was."""
        if row.version is not None and any(version.ref.version == row.version for version in remote):
            self._ledger.end(row.token, "foreign")
            raise _KeptError("another's version carries this name and number now; ours is gone")
        self._ledger.end(row.token, "gone" if row.state == "created" else "failed")


def _match(row: Resource, remote: Sequence[RemoteAgent]) -> RemoteAgent | None:
    """Return the version on the service that a row made: by its stamp, else by number and guid.

    Name and number alone prove nothing: numbers start again at 1 after a deletion (foundry.md §2.6).
    """
    for version in remote:
        stamp = version.metadata.get("agentfn-id")
        if stamp == row.token:
            return version
        if stamp is None and row.guid and (row.version, row.guid) == (version.ref.version, version.ref.guid):
            return version
    return None
