"""The only package that touches note files: the path gate, the store, views and overlays, change sets, byte-exact text edits."""
