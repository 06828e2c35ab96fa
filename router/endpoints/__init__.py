"""Servers of models as they are met: who is there, who is asked next, what a failure means."""
