"""What a search finds: Alphaloom beside random, genetic and boosted search on markets whose alphas are known."""
