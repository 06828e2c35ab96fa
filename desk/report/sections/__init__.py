"""The sections of the report of a campaign."""
