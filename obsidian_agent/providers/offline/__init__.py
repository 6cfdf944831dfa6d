"""What works without a model: recipes (parameterised plans with example phrases) and the matcher that finds them in an instruction.

This package knows words, dates and the names in a vault; it knows neither disks nor plans. A recipe carries its plan as plain JSON,
and `agent.offline` turns a match into an `ActionPlan`.
"""
