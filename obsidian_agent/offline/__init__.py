"""Without a model: recipes, their values, and what of a sentence can be told for certain.

A recipe is a parameterised plan, as a macro is. `reader` reads sentences that are an example of a recipe word for word, `search` names the
likeliest recipes for any other, `check` doubts plans whoever made them. Nothing here asks, writes, or needs the network.
"""
