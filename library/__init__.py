"""What a workspace knows: its factors, how they do on new days, and what follows from it."""
