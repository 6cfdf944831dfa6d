"""Settings and the folders that belong to the person, not to a vault."""
