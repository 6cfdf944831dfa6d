"""The only package that touches note files: paths, store, index, views, links and transactions."""
