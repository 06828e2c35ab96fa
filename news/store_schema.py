"""The tables of a shelf; moments are microseconds since 1970 in UTC."""

from __future__ import annotations

NEWS_SCHEMA_VERSION = 1
NEWS_TABLES = (
    """CREATE TABLE IF NOT EXISTS items (
        id       TEXT PRIMARY KEY,
        known    INTEGER NOT NULL,
        injected INTEGER NOT NULL,
        credible INTEGER NOT NULL,
        voice    TEXT NOT NULL,
        sketch   TEXT NOT NULL,
        body     TEXT NOT NULL) STRICT""",
    "CREATE INDEX IF NOT EXISTS items_by_moment ON items (known, id)",
    "CREATE TABLE IF NOT EXISTS words (word TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (word, id)) STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS symbols (symbol TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (symbol, id)) STRICT, WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS noise (
        id     TEXT NOT NULL,
        symbol TEXT NOT NULL,
        since  INTEGER NOT NULL,
        first  TEXT NOT NULL,
        voices INTEGER NOT NULL,
        PRIMARY KEY (id, symbol)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS releases (
        id     TEXT PRIMARY KEY,
        at     INTEGER NOT NULL,
        who    TEXT NOT NULL,
        reason TEXT NOT NULL) STRICT""",
    """CREATE TRIGGER IF NOT EXISTS releases_stay BEFORE UPDATE ON releases
        BEGIN SELECT RAISE(ABORT, 'releases are append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS releases_are_kept BEFORE DELETE ON releases
        BEGIN SELECT RAISE(ABORT, 'releases are append-only'); END""",
    f"PRAGMA user_version = {NEWS_SCHEMA_VERSION}",
)
HELD_CONDITION = (
    "(injected = 1 OR EXISTS (SELECT 1 FROM noise WHERE noise.id = items.id AND since <= ?)) "
    "AND NOT EXISTS (SELECT 1 FROM releases WHERE releases.id = items.id AND at <= ?)"
)
"""Whether an item is held back; both marks are the instant as of which it is asked."""
