"""PostgreSQL as the database of the record."""
