"""Which model may answer, and which one is asked first."""
