"""The close of a campaign: what it accepted is combined, and its record is written."""
