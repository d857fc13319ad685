"""Models M that learn in-distribution equivariance."""

from idecode_core.models.equivariant import Equivariant, ModelConfig, blank_model

__all__ = ["Equivariant", "ModelConfig", "blank_model"]
