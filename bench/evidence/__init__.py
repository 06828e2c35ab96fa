"""Time what the evidence room does beside other ways to do it."""
