"""Conversations that last: kept on disk, listed, searched, resumed, and run several at a time."""
