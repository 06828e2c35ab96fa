"""The tables of the ledger, as templates into which each database fills its column types.

Every table is append-only: triggers refuse updates and deletions, and the first row under a key stays.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

SCHEMA_VERSION = 5
"""Version 2 added the status of library factors (`standings`, `sightings`, `watches`), 3 the trigger against replacing
rows from outside, 4 budget reservations (`holds`, `releases`), 5 fingerprints of data by content (`fingerprints`).

Opening an older store adds what it lacks.
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
}
INDICES = {"calls_by_key": "calls (key)", "calls_by_time": "calls (at)"}

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
    **{name: (("seq",), key) for name, key in REGISTERS.items()},
}
"""The unique keys of each table; the first is the primary key."""


def tables(types: ColumnTypes) -> dict[str, str]:
    """Return the columns of every table, in an order in which they can be created."""
    templates = _TABLE_TEMPLATES | {name: _build_register_template(key) for name, key in REGISTERS.items()}
    return {name: columns.format(**asdict(types)) for name, columns in templates.items()}


def _build_register_template(key: tuple[str, ...]) -> str:
    """Return the template of a register's columns."""
    foreign = " REFERENCES runs (id)"
    columns = ", ".join(f"{column} {{text}} NOT NULL{foreign if column == 'run' else ''}" for column in key)
    return f"seq {{serial}}, {columns}, at {{text}} NOT NULL, body {{text}} NOT NULL, UNIQUE ({', '.join(key)})"
