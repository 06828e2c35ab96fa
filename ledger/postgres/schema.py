"""The ledger's tables in PostgreSQL: a schema of its own, guarded by triggers like the file.

Rows are numbered without gaps by a trigger, since a sequence skips numbers when a server stops, and a trial's number is
part of a result. Writers take turns, so two rows never get one number.
"""

from __future__ import annotations

from ..database.schema import INDICES, SCHEMA_VERSION, TABLE_KEYS, ColumnTypes, tables
from .server import POSTGRES_SCHEMA

_POSTGRES_TYPES = ColumnTypes(serial="BIGINT PRIMARY KEY", integer="BIGINT", text='TEXT COLLATE "C"')
POSTGRES_ONLY_TABLES = {
    "objects": 'digest TEXT COLLATE "C" PRIMARY KEY, body BYTEA NOT NULL',
    "formats": "version BIGINT PRIMARY KEY",
}
"""What the file keeps in a folder, and in its header."""

_APPEND_ONLY = f"""
CREATE OR REPLACE FUNCTION {POSTGRES_SCHEMA}.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$"""
_NUMBERING_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {POSTGRES_SCHEMA}.numbered() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT;
BEGIN
    EXECUTE format('SELECT max(%I) FROM %I.%I', TG_ARGV[0], TG_TABLE_SCHEMA, TG_TABLE_NAME) INTO last;
    RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], coalesce(last, 0) + 1));
END $$"""


def statements() -> list[str]:
    """Return what makes an empty store; each statement may be run again."""
    columns = tables(_POSTGRES_TYPES) | POSTGRES_ONLY_TABLES
    made = [f"CREATE TABLE IF NOT EXISTS {POSTGRES_SCHEMA}.{name} ({each})" for name, each in columns.items()]
    made += [f"CREATE INDEX IF NOT EXISTS {name} ON {POSTGRES_SCHEMA}.{each}" for name, each in INDICES.items()]
    guards = [each for name in columns for each in _guard(name)]
    numbers = [_number(name, keys[0][0]) for name, keys in TABLE_KEYS.items() if keys[0][0] in ("seq", "id")]
    version = f"INSERT INTO {POSTGRES_SCHEMA}.formats VALUES ({SCHEMA_VERSION}) ON CONFLICT DO NOTHING"
    return [
        f"CREATE SCHEMA IF NOT EXISTS {POSTGRES_SCHEMA}",
        *made,
        _APPEND_ONLY,
        _NUMBERING_FUNCTION,
        *guards,
        *numbers,
        version,
    ]


def _guard(table: str) -> list[str]:
    """Return the trigger that refuses to change what a table holds, also where triggers are told to rest."""
    name = f"{table}_append_only"
    trigger = (
        f"CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE OR DELETE OR TRUNCATE ON {POSTGRES_SCHEMA}.{table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {POSTGRES_SCHEMA}.append_only()"
    )
    return [trigger, f"ALTER TABLE {POSTGRES_SCHEMA}.{table} ENABLE ALWAYS TRIGGER {name}"]


def _number(table: str, column: str) -> str:
    """Return the trigger that gives a row its number."""
    return (
        f"CREATE OR REPLACE TRIGGER {table}_numbered BEFORE INSERT ON {POSTGRES_SCHEMA}.{table} "
        f"FOR EACH ROW EXECUTE FUNCTION {POSTGRES_SCHEMA}.numbered('{column}')"
    )
