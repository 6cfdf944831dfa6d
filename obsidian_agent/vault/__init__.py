"""The only package that accesses note files: paths, the store, views, changes and transactions."""
