"""Files of a workspace: named by their digest, private, read whole or not at all."""
