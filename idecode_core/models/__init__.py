"""Models M that learn in-distribution equivariance."""

from idecode_core.models.equivariant import Equivariant, ModelConfig

__all__ = ["Equivariant", "ModelConfig"]
