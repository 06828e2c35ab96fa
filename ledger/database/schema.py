"""The tables of the ledger, as templates into which each database fills its column types.

Every table is append-only: triggers refuse updates and deletions, and the first row under a key stays. An erasure alone
replaces the body of a row, in a transaction of its own that lifts these triggers and records what it did.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

SCHEMA_VERSION = 6
"""Version 2 added the status of library factors (`standings`, `sightings`, `watches`), 3 the trigger against replacing
rows from outside, 4 budget reservations (`holds`, `releases`), 5 fingerprints of data by content (`fingerprints`),
6 the transparency log (`leaves`, `log_keys`, `log_checkpoints`, `retirements`), `erasures`, and the heads of the record
of tool calls (`call_heads`).

Opening an older store adds what it lacks.
The graph of a campaign has a table `checkpoints` of its own beside these.
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


@dataclass(frozen=True)
class ColumnTypes:
    """Types of a database: a primary key that numbers the rows, an integer, and text ordered by its bytes."""

    serial: str
    integer: str
    text: str


_WINDOW_SQL = """
    dataset   {text} NOT NULL,
    first_day {text} NOT NULL,
    last_day  {text} NOT NULL,
    names     {text} NOT NULL REFERENCES name_lists (digest)"""

_TABLE_TEMPLATES: dict[str, str] = {
    "runs": "seq {serial}, id {text} NOT NULL UNIQUE, at {text} NOT NULL, body {text} NOT NULL",
    "statuses": """
    seq    {serial},
    run    {text} NOT NULL REFERENCES runs (id),
    at     {text} NOT NULL,
    status {text} NOT NULL""",
    "name_lists": "digest {text} PRIMARY KEY, body {text} NOT NULL",
    "trials": f"""
    id      {{serial}},
    number  {{integer}} NOT NULL CHECK (number > 0),
    prior   {{integer}} NOT NULL CHECK (prior >= 0),
    run     {{text}} NOT NULL REFERENCES runs (id),
    subject {{text}} NOT NULL,
    question {{text}} NOT NULL,{_WINDOW_SQL},
    at      {{text}} NOT NULL,
    UNIQUE (subject, question, dataset, first_day, last_day, names)""",
    "outcomes": """
    trial {integer} PRIMARY KEY REFERENCES trials (id),
    at    {text} NOT NULL,
    body  {text} NOT NULL""",
    "openings": f"""
    id     {{serial}},
    number {{integer}} NOT NULL CHECK (number > 0),
    run    {{text}} NOT NULL REFERENCES runs (id),{_WINDOW_SQL},
    reason {{text}} NOT NULL,
    at     {{text}} NOT NULL,
    UNIQUE (run, dataset, first_day, last_day, names)""",
    "boundaries": f"""
    id   {{serial}},{_WINDOW_SQL},
    body {{text}} NOT NULL,
    at   {{text}} NOT NULL""",
    "watches": f"""
    id      {{serial}},
    subject {{text}} NOT NULL,{_WINDOW_SQL},
    at      {{text}} NOT NULL,
    body    {{text}} NOT NULL""",
    "fingerprints": """
    id     {serial},
    names  {text} NOT NULL REFERENCES name_lists (digest),
    series {integer} NOT NULL CHECK (series > 0),
    at     {text} NOT NULL,
    body   {text} NOT NULL""",
    "holds": """
    id     {serial},
    name   {text} NOT NULL UNIQUE,
    run    {text} NOT NULL REFERENCES runs (id),
    key    {text} NOT NULL,
    tenant {text} NOT NULL,
    owner  {text} NOT NULL,
    until  {text} NOT NULL,
    tokens {integer} NOT NULL,
    picos  {integer} NOT NULL,
    at     {text} NOT NULL""",
    "releases": """
    hold {integer} PRIMARY KEY REFERENCES holds (id),
    why  {text} NOT NULL,
    at   {text} NOT NULL""",
    "call_heads": """
    id       {serial},
    segment  {text} NOT NULL,
    sequence {integer} NOT NULL,
    hash     {text} NOT NULL,
    at       {text} NOT NULL,
    UNIQUE (segment, sequence)""",
    "leaves": "id {serial}, entry {text} NOT NULL",
    "log_keys": "id {serial}, vkey {text} NOT NULL, why {text} NOT NULL, at {text} NOT NULL",
    "retirements": "id {serial}, vkey {text} NOT NULL, why {text} NOT NULL, at {text} NOT NULL",
    "erasures": "id {serial}, at {text} NOT NULL, body {text} NOT NULL",
    "log_checkpoints": """
    id    {serial},
    size  {integer} NOT NULL CHECK (size > 0),
    nodes {text} NOT NULL,
    note  {text} NOT NULL""",
}
SCHEMA_PART_GONE = "it is gone"
"""What is said of a table, an index or a trigger that a database lacks."""
INDICES = {
    "calls_by_key": "calls (key)",
    "calls_by_time": "calls (at)",
    "log_checkpoints_by_size": "log_checkpoints (size)",
}

_WINDOW_KEY = ("dataset", "first_day", "last_day", "names")
TABLE_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "runs": (("seq",), ("id",)),
    "statuses": (("seq",),),
    "name_lists": (("digest",),),
    "trials": (("id",), ("subject", "question", *_WINDOW_KEY)),
    "outcomes": (("trial",),),
    "openings": (("id",), ("run", *_WINDOW_KEY)),
    "boundaries": (("id",),),
    "watches": (("id",),),
    "fingerprints": (("id",),),
    "holds": (("id",), ("name",)),
    "releases": (("hold",),),
    "call_heads": (("id",), ("segment", "sequence")),
    "leaves": (("id",),),
    "log_keys": (("id",),),
    "retirements": (("id",),),
    "erasures": (("id",),),
    "log_checkpoints": (("id",),),
    **{name: (("seq",), key) for name, key in REGISTERS.items()},
}
"""The unique keys of each table; the first is the primary key."""
EXEMPT_TABLES = {
    "holds": "a lease: what a model call under way may still cost; the answered call is a record of its own",
    "releases": "the end of such a lease",
    "leaves": "the log itself: the root of every checkpoint covers it",
    "log_checkpoints": "the log itself: each is signed",
}
"""Tables whose rows are no leaves of the log, with the reason."""
LOGGED_TABLES = tuple(name for name in TABLE_KEYS if name not in EXEMPT_TABLES)


def tables(types: ColumnTypes) -> dict[str, str]:
    """Return the columns of every table, in an order in which they can be created."""
    return {name: columns.format(**asdict(types)) for name, columns in _build_templates().items()}


def list_columns(table: str) -> list[str]:
    """Return the names of a table's columns."""
    return re.findall(r"(\w+)\s+\{", _build_templates()[table])


def _build_templates() -> dict[str, str]:
    return _TABLE_TEMPLATES | {name: _build_register_template(key) for name, key in REGISTERS.items()}


def _build_register_template(key: tuple[str, ...]) -> str:
    """Return the template of a register's columns."""
    foreign = " REFERENCES runs (id)"
    columns = ", ".join(f"{column} {{text}} NOT NULL{foreign if column == 'run' else ''}" for column in key)
    return f"seq {{serial}}, {columns}, at {{text}} NOT NULL, body {{text}} NOT NULL, UNIQUE ({', '.join(key)})"
