"""A running Obsidian beside this program: finding it, asking it, and letting it change what it holds open."""
