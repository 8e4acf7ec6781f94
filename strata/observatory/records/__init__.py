"""Small records and forms that every room of the observatory uses."""
