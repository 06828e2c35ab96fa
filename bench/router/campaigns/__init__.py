"""The questions of campaigns, labelled by what became of the replies of a small model and of the offline researcher."""
