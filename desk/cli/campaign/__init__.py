"""Commands that run a campaign, and tell of one."""
