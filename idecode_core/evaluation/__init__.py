"""How good a detector is, from scores: metrics, methods side by side, rates beside their bands, the paper's numbers.

`score_sets` makes the scores, once, with the model; everything else reads what is stored.
"""
