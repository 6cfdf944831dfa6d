"""Actions without a model: recipes, their values, and the parsing of sentences.

A recipe is a parameterised plan, like a macro. `reader` matches sentences that are an exact example
of a recipe, `search` ranks recipes for all others, and `check` lists doubts about a plan. Nothing
here asks the user, writes files, or needs the network.
"""
