"""The router measured: how long it takes, how often it is right, and what it saves."""
