"""Removes what agentfn created and still owns, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.errors import AgentfnError, NotAuthorisedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
        """Tell whether a row is chosen: by any of the names, or by run and age where those are given."""
        if row.kind == "agent" and (row.name in self.agents or row.label in self.agents):
            return True
        if row.kind == "conversation" and row.name in self.conversations:
            return True
        if self.run is None and self.before is None:
            return self.everything
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
    backend: Backend,
    ledger: Ledger,
    rows: Sequence[Resource],
    told: Callable[[Resource], None] = lambda _: None,
) -> CleanUp:
    """Remove these rows' resources, each row's fate written down at once, so that a later clean-up goes on from here.

    What cannot be removed is reported, not raised; only NotAuthorisedError ends the work.
    """
    deleted: list[Resource] = []
    left: list[Left] = []

    def settle(row: Resource, work: Callable[[], str | None]) -> None:
        try:
            why = work()
        except NotAuthorisedError:
            raise
        except AgentfnError as exc:
            left.append(Left(row, exc.message))
            return
        if why is None:
            deleted.append(row)
            told(row)
        else:
            left.append(Left(row, why))

    for row in rows:
        if row.kind == "conversation":
            settle(row, lambda row=row: _remove_conversation(backend, ledger, row))  # type: ignore[misc]
    for name in dict.fromkeys(row.name or "" for row in rows if row.kind == "agent"):
        own = [row for row in rows if row.kind == "agent" and row.name == name]
        _Versions(backend, ledger, name, own).remove(settle)
    return CleanUp(tuple(deleted), tuple(left))


def remove_own_run(backend: Backend, ledger: Ledger, run: str) -> CleanUp:
    """Remove what this very run made (`--rm`); it holds the ids itself, so nothing needs to be looked up first.

    An agent version that a conversation of another run still uses stays.
    """
    deleted: list[Resource] = []
    left: list[Left] = []
    rows = [row for row in ledger.live() if row.run == run]
    for row in sorted(rows, key=lambda row: row.kind != "conversation"):
        try:
            if row.state == "intended":
                found = remove(backend, ledger, [row])
                deleted += found.deleted
                left += found.left
                continue
            if row.kind == "conversation":
                backend.delete_conversation(row.name or "")
                ledger.conversation_ended(row, "deleted")
            elif ledger.used_by_others(row):
                left.append(Left(row, "another run's conversation uses it"))
                continue
            else:
                backend.delete_agent_version(row.ref)
                ledger.end(row.token, "deleted")
            deleted.append(row)
        except AgentfnError as exc:
            left.append(Left(row, exc.message))
    return CleanUp(tuple(deleted), tuple(left))


def _remove_conversation(backend: Backend, ledger: Ledger, row: Resource) -> str | None:
    """Remove one conversation; 404 counts as gone. A lost reply's id is found by the stamp."""
    conversation = row.name
    if conversation is None:
        stamped = (c.id for c in backend.conversations() if c.metadata.get("agentfn-id") == row.token)
        conversation = next(stamped, None)
    if conversation is None:
        ledger.end(row.token, "failed")
        return None
    existed = backend.delete_conversation(conversation)
    ledger.conversation_ended(row._replace(name=conversation), "deleted" if existed else "gone")
    return None


class _Versions:
    """The versions of one agent, ours and others'."""

    def __init__(self, backend: Backend, ledger: Ledger, name: str, own: Sequence[Resource]) -> None:
        self._backend = backend
        self._ledger = ledger
        self._name = name
        self._own = own

    def remove(self, settle: Callable[[Resource, Callable[[], str | None]], None]) -> None:
        """Remove our versions; the agent as a whole goes where no other version is left."""
        try:
            remote = list(self._backend.versions(self._name))
        except NotAuthorisedError:
            raise
        except AgentfnError as exc:
            for row in self._own:
                why = exc.message
                settle(row, lambda why=why: why)  # type: ignore[misc]
            return
        pairs = [(row, _match(row, remote)) for row in self._own]
        ours = {found.ref.version for _, found in pairs if found is not None}
        whole = bool(ours) and all(version.ref.version in ours for version in remote)
        if whole:
            self._remove_whole(pairs, settle)
            return
        for row, found in pairs:
            settle(row, lambda row=row, found=found: self._remove_version(row, found, remote))  # type: ignore[misc]

    def _remove_whole(
        self,
        pairs: Iterable[tuple[Resource, RemoteAgent | None]],
        settle: Callable[[Resource, Callable[[], str | None]], None],
    ) -> None:
        failure: str | None = None
        try:
            self._backend.delete_agent(self._name)
        except NotAuthorisedError:
            raise
        except AgentfnError as exc:
            failure = exc.message

        def done(row: Resource) -> str | None:
            if failure is None:
                self._ledger.end(row.token, "deleted")
            return failure

        for row, _ in pairs:
            settle(row, lambda row=row: done(row))  # type: ignore[misc]

    def _remove_version(self, row: Resource, found: RemoteAgent | None, remote: Sequence[RemoteAgent]) -> str | None:
        if found is not None:
            self._backend.delete_agent_version(found.ref)
            self._ledger.end(row.token, "deleted")
            return None
        if row.version is not None and any(version.ref.version == row.version for version in remote):
            self._ledger.end(row.token, "foreign")
            return "another's version carries this name and number now; ours is gone"
        self._ledger.end(row.token, "gone" if row.state == "created" else "failed")
        return None


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
