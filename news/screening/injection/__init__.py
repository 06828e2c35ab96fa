"""Detection of texts that instruct the machine that reads them (prompt injection)."""
