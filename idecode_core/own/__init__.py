"""What users bring of their own: a network or a function (`scorer`, `model`), or nothing but scores (`scores`)."""
