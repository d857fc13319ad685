"""A detector as a service: `idecode serve` (the extra [serve])."""
