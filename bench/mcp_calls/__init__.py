"""What the MCP servers cost beside the bare SDK; run as ``python -m bench.mcp_calls``."""
