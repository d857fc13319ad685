"""Attacks: the same picture to the eye, another class to a classifier; and one on the detector itself.

    victim = load_victim("cifar10-invariance")
    attacked = attack(victim, x, y, "fgsm")                     # x (batch, 3, 32, 32) in [0, 1]
    detector.detect(attacked.samples)                           # floats all the way: nothing is rounded

The guarantee says nothing about inputs that somebody chose; `attack_detector` shows it.
"""

from idecode_core.attacks.classic import attack
from idecode_core.attacks.kinds import ATTACKS, Attacked, AttackKind
from idecode_core.attacks.on_detector import attack_detector
from idecode_core.attacks.victim import Victim, load_victim, victims

__all__ = [
    "ATTACKS",
    "AttackKind",
    "Attacked",
    "Victim",
    "attack",
    "attack_detector",
    "load_victim",
    "victims",
]
