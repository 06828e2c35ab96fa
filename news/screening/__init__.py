"""Text made harmless and judged before anybody reads it."""
