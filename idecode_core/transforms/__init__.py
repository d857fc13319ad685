"""Transform sets G, each with its distribution Q_G."""

from idecode_core.transforms.affine import SmallAffine
from idecode_core.transforms.base import TransformSet
from idecode_core.transforms.projective import Projective
from idecode_core.transforms.rotations import Rotations, SharpRotations
from idecode_core.transforms.specaugment import SpecAugment

__all__ = ["Projective", "Rotations", "SharpRotations", "SmallAffine", "SpecAugment", "TransformSet"]
