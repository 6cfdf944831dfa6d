"""A running Obsidian: how to find it, send it requests, and edit the notes that it has open."""
