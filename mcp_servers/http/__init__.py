"""The servers over HTTP."""
