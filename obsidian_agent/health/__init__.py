"""The condition of a vault: findings with evidence, and their repairs as one plan."""
