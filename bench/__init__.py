"""`make bench`: what must be fast, measured as ratios against named baselines in the same run."""
