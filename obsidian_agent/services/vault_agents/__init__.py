"""Agents, skills and instructions that lie in a vault: read with limits, inert until the person trusts their content, and only narrowing."""
