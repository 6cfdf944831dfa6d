"""Conversations on disk: stored, listed, searched, resumed, and run several at a time."""
