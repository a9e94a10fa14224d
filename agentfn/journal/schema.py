"""The journal's tables. This text is their documentation; a migration is never edited once released."""

from __future__ import annotations

#: Number N (counting from 1) brings a file at version N-1 to version N, in one transaction.
#: 1: the first schema: resources, conversations, turns, calls.
#: 2: a turn knows the conversation it is about to open, so that one whose opening was cut short is found again; a call
#:    knows who let it run.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE resource (            -- the ledger: a row for everything agentfn asked a service to create
            token TEXT PRIMARY KEY,        -- unique; travels in the resource's metadata and finds it after a lost reply
            backend TEXT NOT NULL,         -- local, foundry, …
            endpoint TEXT NOT NULL,        -- where, as the backend names it; names repeat across endpoints
            kind TEXT NOT NULL,            -- agent (one version of it) or conversation
            name TEXT,                     -- the agent's name; the conversation's id, NULL until the service gave it
            version TEXT,                  -- of the agent; NULL until the service gave it, and for conversations
            guid TEXT,                     -- the service's own identity of the agent; survives no deletion
            digest TEXT,                   -- of the definition that was sent
            definition TEXT,               -- path of the agent file, absolute
            run TEXT NOT NULL,             -- the run of a command that created it
            state TEXT NOT NULL,           -- intended (request may be under way), created, deleted, gone, failed, foreign
            at REAL NOT NULL,              -- when it was intended, unix seconds by our clock
            ended_at REAL                  -- when the state became final
        ) STRICT
        """,
        """
        CREATE INDEX live_resource ON resource (backend, endpoint, kind, name)
        WHERE state IN ('intended', 'created')
        """,
        """
        CREATE TABLE conversation (        -- how to go on with a conversation, whoever made it
            backend TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            id TEXT NOT NULL,              -- the service's
            agent TEXT NOT NULL,           -- name of the agent that answers
            version TEXT,                  -- the version answered to, pinned in each request
            definition TEXT,               -- path of the agent file, absolute; NULL where the agent was only named
            digest TEXT,                   -- of that definition when the conversation began
            functions TEXT NOT NULL,       -- JSON: function name → digest of its parameters, to see what still fits
            run TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (backend, endpoint, id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE turn (                -- a user message and all that came of it
            id TEXT PRIMARY KEY,           -- ours, minted before anything is sent
            backend TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            conversation TEXT,             -- NULL until the service opened it
            message TEXT NOT NULL,
            state TEXT NOT NULL,           -- intended (message may be under way), open, ended, failed
            asked_by TEXT,                 -- the response whose calls wait
            asked_at REAL,                 -- its creation, unix seconds by the service's clock
            skew REAL NOT NULL DEFAULT 0,  -- the service's clock minus ours, seconds
            answer TEXT,                   -- the agent's final text
            failure TEXT,                  -- why the turn ended without one
            usage TEXT,                    -- JSON: tokens so far
            run TEXT NOT NULL,
            at REAL NOT NULL,
            ended_at REAL
        ) STRICT
        """,
        """
        CREATE INDEX open_turn ON turn (backend, endpoint, conversation) WHERE state IN ('intended', 'open')
        """,
        """
        CREATE INDEX turn_of_conversation ON turn (backend, endpoint, conversation, at)
        """,
        """
        CREATE TABLE call (                -- one function call that the service asked for
            backend TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            conversation TEXT NOT NULL,
            turn TEXT NOT NULL,            -- call ids come back in later turns, so the turn is part of the key
            id TEXT NOT NULL,              -- the service's call id
            asked_by TEXT NOT NULL,        -- the response that asked
            position INTEGER NOT NULL,     -- order within that response
            function TEXT NOT NULL,
            arguments TEXT NOT NULL,       -- as the model wrote them, which may be no JSON; secrets masked
            problem TEXT,                  -- what is wrong with the arguments or the function's name
            state TEXT NOT NULL,           -- waiting, approved, denied, started, finished, sent, accepted,
                                           -- superseded, expired
            output TEXT,                   -- the text to be sent, byte for byte (masked before it came here)
            content TEXT,                  -- or a JSON array of content parts
            error TEXT,                    -- or what the agent is told of a failure
            asked_at REAL NOT NULL,        -- unix seconds by our clock
            started_at REAL,
            finished_at REAL,
            PRIMARY KEY (backend, endpoint, conversation, turn, id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE INDEX unsettled_call ON call (backend, endpoint, conversation, turn)
        WHERE state NOT IN ('accepted', 'superseded', 'expired')
        """,
    ),
    (
        # JSON: the row of `conversation` to be, while it has no id
        "ALTER TABLE turn ADD COLUMN opening TEXT",
        # the ledger's token of that conversation, which its metadata carries
        "ALTER TABLE turn ADD COLUMN stamp TEXT",
        # JSON {verdict, hash, by}: who let the call run or not, bound to its function and arguments
        "ALTER TABLE call ADD COLUMN decision TEXT",
        # the arguments that a person gave it in place of the model's
        "ALTER TABLE call ADD COLUMN edited TEXT",
        """
        CREATE INDEX unopened_turn ON turn (at) WHERE conversation IS NULL AND state = 'intended'
        """,
    ),
)
