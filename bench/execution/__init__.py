"""What execution algorithms cost in a simulated market, and what an observer learns of them."""
