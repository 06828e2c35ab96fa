"""The servers: tools, resources and prompts."""
