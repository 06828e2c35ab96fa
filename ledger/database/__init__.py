"""What the record asks of a database, and SQLite as one."""
