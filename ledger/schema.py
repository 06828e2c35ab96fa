"""The tables. Every one is append-only: triggers refuse an update or a deletion, whoever asks, and a row stays first.

`INSERT OR REPLACE` deletes without asking the trigger of deletions, unless the connection says otherwise; so a further row
under a key that is taken is passed over, as by `ON CONFLICT DO NOTHING`.
"""

from __future__ import annotations

VERSION = 3
"""2 added what becomes of library factors: `standings`, `sightings`, `watches`; 3 that no row is replaced from outside.

An older store is given what it lacks when it is opened.
"""

# A register is a table of records: its key columns, then the rest of the record as canonical JSON.
REGISTERS: dict[str, tuple[str, ...]] = {
    "attempts": ("run", "key"),
    "evaluations": ("run", "factor_id"),
    "calls": ("run", "key"),
    "verdicts": ("run", "factor_id"),
    "artefacts": ("run", "name"),
    "events": ("run", "kind", "key"),
    "library": ("factor_id",),
    "standings": ("factor_id", "key"),
    "sightings": ("factor_id", "day"),
}

_WINDOW = """
    dataset   TEXT NOT NULL,
    first_day TEXT NOT NULL,
    last_day  TEXT NOT NULL,
    names     TEXT NOT NULL REFERENCES name_lists (digest)"""

_TABLES: dict[str, str] = {
    "runs": "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at TEXT NOT NULL, body TEXT NOT NULL",
    "statuses": """
    seq    INTEGER PRIMARY KEY,
    run    TEXT NOT NULL REFERENCES runs (id),
    at     TEXT NOT NULL,
    status TEXT NOT NULL""",
    "name_lists": "digest TEXT PRIMARY KEY, body TEXT NOT NULL",
    "trials": f"""
    id      INTEGER PRIMARY KEY,
    number  INTEGER NOT NULL CHECK (number > 0),
    prior   INTEGER NOT NULL CHECK (prior >= 0),
    run     TEXT NOT NULL REFERENCES runs (id),
    subject TEXT NOT NULL,
    question TEXT NOT NULL,{_WINDOW},
    at      TEXT NOT NULL,
    UNIQUE (subject, question, dataset, first_day, last_day, names)""",
    "outcomes": """
    trial INTEGER PRIMARY KEY REFERENCES trials (id),
    at    TEXT NOT NULL,
    body  TEXT NOT NULL""",
    "openings": f"""
    id     INTEGER PRIMARY KEY,
    number INTEGER NOT NULL CHECK (number > 0),
    run    TEXT NOT NULL REFERENCES runs (id),{_WINDOW},
    reason TEXT NOT NULL,
    at     TEXT NOT NULL,
    UNIQUE (run, dataset, first_day, last_day, names)""",
    "boundaries": f"""
    id   INTEGER PRIMARY KEY,{_WINDOW},
    body TEXT NOT NULL,
    at   TEXT NOT NULL""",
    "watches": f"""
    id      INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,{_WINDOW},
    at      TEXT NOT NULL,
    body    TEXT NOT NULL""",
}


_LOOKED_AT = ("dataset", "first_day", "last_day", "names")
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "runs": (("seq",), ("id",)),
    "statuses": (("seq",),),
    "name_lists": (("digest",),),
    "trials": (("id",), ("subject", "question", *_LOOKED_AT)),
    "outcomes": (("trial",),),
    "openings": (("id",), ("run", *_LOOKED_AT)),
    "boundaries": (("id",),),
    "watches": (("id",),),
    **{name: (("seq",), key) for name, key in REGISTERS.items()},
}
"""What no two rows of a table share."""


def _register(name: str, key: tuple[str, ...]) -> str:
    """Return the statement that makes a register."""
    foreign = " REFERENCES runs (id)"
    columns = [f"{column} TEXT NOT NULL{foreign if column == 'run' else ''}" for column in key]
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (seq INTEGER PRIMARY KEY, {', '.join(columns)}, "
        f"at TEXT NOT NULL, body TEXT NOT NULL, UNIQUE ({', '.join(key)})) STRICT"
    )


def _guard(table: str, deed: str) -> str:
    """Return the trigger that refuses to change what a table holds."""
    return (
        f"CREATE TRIGGER IF NOT EXISTS {table}_no_{deed.lower()} BEFORE {deed} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


def _stays(table: str) -> str:
    """Return the trigger that lets the first row under a key stay."""
    taken = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in _KEYS[table]]
    held = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in taken)
    return f"CREATE TRIGGER IF NOT EXISTS {table}_stays BEFORE INSERT ON {table} WHEN {held} BEGIN SELECT RAISE(IGNORE); END"


def statements() -> list[str]:
    """Return what makes an empty store; each statement may be run again."""
    tables = [f"CREATE TABLE IF NOT EXISTS {name} ({columns}) STRICT" for name, columns in _TABLES.items()]
    registers = [_register(name, key) for name, key in REGISTERS.items()]
    guards = [_guard(table, deed) for table in (*_TABLES, *REGISTERS) for deed in ("UPDATE", "DELETE")]
    guards += [_stays(table) for table in (*_TABLES, *REGISTERS)]
    index = "CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key)"
    return [*tables, *registers, index, *guards, f"PRAGMA user_version = {VERSION}"]
