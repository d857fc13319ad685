"""How good is it? Metrics, methods side by side, rates beside their bands, what is caught; from scores alone."""
