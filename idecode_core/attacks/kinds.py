"""The attacks by name, and what the strength of each means. Defaults are the paper's (its settings for CIFAR-10)."""

from dataclasses import dataclass

from idecode_core.errors import SettingError

BIM_STEP = 0.01  # the paper: 6 steps of 0.01
DEEPFOOL_STEPS = 5  # at most
CW_STEPS, CW_RATE = 100, 0.01  # Adam


@dataclass(frozen=True)
class AttackKind:
    """What there is to know of an attack before it is run."""

    name: str
    title: str
    how: str
    """How it works, in one sentence."""
    strength_means: str
    unit: str
    default: float
    """The paper's, on networks like ResNet."""
    highest: float
    dense_default: float | None = None
    """The paper's on DenseNets, where it differs."""
    slow: bool = False
    """Takes many passes through the network."""
    on_detector: bool = False
    """Run by `attack_detector`: it needs a detector beside the victim."""
    source: str = "The paper uses"
    """Where the default comes from, as the beginning of a sentence that it ends."""

    def default_for(self, dense: bool) -> float:
        return self.dense_default if dense and self.dense_default is not None else self.default

    def check(self, strength: float) -> None:
        """SettingError unless this strength can be used."""
        if not 0 < strength <= self.highest:  # also refuses what is not a number
            nothing = " Strength 0 leaves every picture as it is." if strength == 0 else ""
            raise SettingError(
                f"The strength of {self.title} is {self.strength_means}: expected more than 0 and at most "
                f"{self.highest:g}, got {strength:g}.{nothing} {self.source} {self.default:g}."
            )


_kinds = (
    AttackKind(
        "fgsm",
        "FGSM",
        "One step along the sign of the gradient of the victim's loss (Goodfellow et al. 2015).",
        "how far every pixel value is moved",
        "of the pixel range",
        default=0.05,
        highest=0.5,
    ),
    AttackKind(
        "bim",
        "BIM",
        f"FGSM in small steps of {BIM_STEP:g}, with a new gradient before each (Kurakin et al. 2017).",
        "how far a pixel value may be moved in all",
        "of the pixel range",
        default=0.06,
        highest=0.5,
    ),
    AttackKind(
        "deepfool",
        "DeepFool",
        f"The shortest way over the nearest class border, as if borders were straight; at most {DEEPFOOL_STEPS} rounds "
        "(Moosavi-Dezfooli et al. 2016).",
        "how far beyond the border it goes, as a share of the way there",
        "of the way",
        default=0.18,
        highest=5.0,
        dense_default=0.6,
        slow=True,
    ),
    AttackKind(
        "cw",
        "CW-L2",
        f"Searches for the smallest change that fools the victim, {CW_STEPS} steps of Adam (Carlini and Wagner 2017).",
        "c, how much being fooled counts beside being close to the picture",
        "(c has no unit)",
        default=1.0,
        highest=1000.0,
        slow=True,
    ),
    AttackKind(
        "pgd-detector",
        "PGD on the detector",
        "Fools the victim and lowers the detector's score, by somebody who knows both (ours, after Bryniarski et al. 2022).",
        "how far a pixel value may be moved in all",
        "of the pixel range",
        default=0.05,  # the paper has no such attack
        highest=0.5,
        slow=True,
        on_detector=True,
        source="As far as the paper's FGSM goes is",
    ),
)
ATTACKS: dict[str, AttackKind] = {kind.name: kind for kind in _kinds}


def get_attack(name: str) -> AttackKind:
    if name not in ATTACKS:
        raise SettingError(f"No attack is called {name!r}; expected one of {', '.join(ATTACKS)}.")
    return ATTACKS[name]
