"""Small networks that learn: the same `Transformer`, with weights that require gradients."""
