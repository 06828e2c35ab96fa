"""What an attested machine proves of itself."""
