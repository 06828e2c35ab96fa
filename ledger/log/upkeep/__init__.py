"""What is done to a record by a person over the years: personal data and old texts erased, lost keys replaced."""
