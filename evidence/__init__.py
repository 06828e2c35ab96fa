"""Is it real? Windows, scores, originality, significance, and the acceptance gate."""
