"""Agents, skills and instructions in a vault.

They are read with limits, have no effect until the user trusts their content, and can only narrow
what an agent may do.
"""
