"""What a person decides on."""
