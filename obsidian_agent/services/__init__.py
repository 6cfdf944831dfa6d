"""The parts that front ends use: session, plans, runs, macros, hooks, trust."""
