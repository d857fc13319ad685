"""Base NCMs: A(X_tr, x; g) = Error(M, x, g) = L[M(g(x)), g'M(x)] (Eq. 2). Larger means stranger.

Each takes the model's predictions on the variants g(x), (batch, m, outputs), and what they are held against:
either the transform that was applied (g' answers g) or the prediction on x itself (g' is the identity, Eq. 3).
Some also take off how familiar g(x) looks to M, which is ours, not the paper's (docs/familiarity.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, log_softmax, softmax
from torch.nn.functional import cross_entropy as torch_cross_entropy

RANGES = 4  # of rotation angles: what the first outputs of M choose from, where the others name classes
TURN = 0.2  # what a turn counts beside a class, chosen on development data (docs/joint.md)
LEAST_ERROR = 1e-9
ERROR, UNKNOWN, UNFAMILIAR = (
    "how far the answer is off",
    "how little it shows of any class",
    "how unfamiliar it looks",
)
"""The summands of a score, for readers."""
LEAST_ACTIVATION = 1e-6  # of a network that sees nothing at all


def parameter_error(prediction: Tensor, target: Tensor) -> Tensor:
    """||M(g(x)) - g||^2, as the mean over the normalised parameters: (batch, m, p) twice -> (batch, m)."""
    return (prediction - target).square().mean(dim=-1)


def log_parameter_error(prediction: Tensor, target: Tensor) -> Tensor:
    """log of `parameter_error`: the negative log-likelihood of a Gaussian whose variance is the error's own, up to
    constants. One draw ranks as before; in a sum over draws, one large error no longer outweighs all others."""
    return parameter_error(prediction, target).clamp_min(LEAST_ERROR).log()


def cross_entropy(prediction: Tensor, target: Tensor) -> Tensor:
    """CrossEntropy(M(g(x)), g): logits (batch, m, classes), classes (batch, m) -> (batch, m)."""
    loss = torch_cross_entropy(prediction.flatten(0, 1), target.flatten(0, 1), reduction="none")
    return loss.view(target.shape)


def invariance(prediction: Tensor, reference: Tensor) -> Tensor:
    """||M(g(x)) - M(x)||^2 on softmax outputs (Eq. 3): logits (batch, m, c), (batch, c) -> (batch, m)."""
    return (softmax(prediction, dim=-1) - softmax(reference, dim=-1)[:, None]).square().sum(dim=-1)


def kl_divergence(prediction: Tensor, reference: Tensor) -> Tensor:
    """KL(M(x) || M(g(x))), the loss that the paper found to be poor: near zero for two flat predictions as well."""
    log_p, log_q = log_softmax(reference, dim=-1)[:, None], log_softmax(prediction, dim=-1)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


def argmax_disagreement(prediction: Tensor, reference: Tensor) -> Tensor:
    """1 if M(g(x)) names another class than M(x), else 0: the released audio code. Ties massively."""
    return (prediction.argmax(dim=-1) != reference.argmax(dim=-1)[:, None]).to(prediction.dtype)


def soft_disagreement(prediction: Tensor, reference: Tensor) -> Tensor:
    """1 - M(g(x)) . M(x): how often a label drawn from M(g(x)) differs from one drawn from M(x).

    Eq. 3 is twice this, less how often two labels drawn from M(x) differ, less the same for M(g(x)). So Eq. 3
    takes off what the model is unsure of, and an input that it knows nothing about looks familiar; this does not
    (docs/audio-findings.md). For sure answers it is `argmax_disagreement`, without its ties.
    """
    agreement: Tensor = (softmax(prediction, dim=-1) * softmax(reference, dim=-1)[:, None]).sum(dim=-1)
    return 1 - agreement


def label_cross_entropy(prediction: Tensor, reference: Tensor) -> Tensor:
    """-log M(g(x))[argmax M(x)]: Eq. 2 with cross-entropy and the label that M gives to x.

    With g = identity this is -log of the maximum softmax probability (SBP), so it sees both an unsure
    answer and one that changes under g.
    """
    label = reference.argmax(dim=-1)[:, None].expand(prediction.shape[:2])
    return cross_entropy(prediction, label)


def label_logit(prediction: Tensor, reference: Tensor) -> Tensor:
    """-(logit that M gives on g(x) to the label that it gives to x): `label_cross_entropy` before softmax divides by how
    much evidence there is for all labels together. Logits (batch, m, c), (batch, c) -> (batch, m)."""
    label = reference.argmax(dim=-1)[:, None, None].expand(*prediction.shape[:2], 1)
    return -prediction.gather(2, label).squeeze(2)


def feature_change(prediction: Tensor, reference: Tensor) -> Tensor:
    """1 - cosine of the angle between M(g(x)) and M(x): for a network that gives features, not classes.

    The length of features says how much is seen, and varies with size and contrast; their direction says what.
    """
    return 1 - cosine_similarity(prediction, reference[:, None], dim=-1)


def familiarity(features: Tensor) -> Tensor:
    """log of the mean activation: how much of what M has learned to look for it finds. (..., d) -> (...).

    A logarithm, so that a network whose features are all twice as large has the same differences.
    """
    return features.mean(dim=-1).clamp_min(LEAST_ACTIVATION).log()


def evidence(prediction: Tensor) -> Tensor:
    """log of the sum of exp of the logits of all classes: how much speaks for any class at all. (..., classes) -> (...)."""
    return prediction.logsumexp(dim=-1)


@dataclass(frozen=True)
class BaseNCM:
    """A loss L, what M(g(x)) is held against, and what is taken off: the familiarity of g(x), and, of a model that names both
    g (its first RANGES outputs) and the class (the others), the evidence for any class in x (docs/joint.md)."""

    loss: Callable[[Tensor, Tensor], Tensor]
    against: Literal["g", "x"]
    familiarity: bool = False
    evidence: bool = False
    weight: float = 1.0
    """Of the loss."""
    mirrored: bool = False
    """Whether what M says of x is the mean of its answers to x and to its mirror image."""

    @property
    def asks_x(self) -> bool:
        """Whether M(x) is needed, which is computed once for all draws."""
        return self.against == "x" or self.evidence

    def __call__(
        self, prediction: Tensor, reference: Tensor | None, target: Tensor, features: Tensor | None = None
    ) -> Tensor:
        """Predictions (batch, m, outputs), M(x) (batch, outputs) or None, targets (batch, m, ...) and M's features of
        g(x) (batch, m, d), which only familiarity needs -> scores (batch, m)."""
        error, *others = self.terms(prediction, reference, target, features).values()
        return sum(others, start=error)

    def terms(
        self, prediction: Tensor, reference: Tensor | None, target: Tensor, features: Tensor | None = None
    ) -> dict[str, Tensor]:
        """The summands of the score by name, each (batch, m); arguments as above."""
        terms = {}
        if self.evidence:
            assert reference is not None
            prediction = prediction[..., :RANGES]
            terms[UNKNOWN] = -evidence(reference[:, RANGES:])[:, None].expand(prediction.shape[:2])
        if self.familiarity:
            assert features is not None
            terms[UNFAMILIAR] = -familiarity(features)
        if self.against == "g":
            return {ERROR: self.weight * self.loss(prediction, target.to(prediction.device)), **terms}
        assert reference is not None
        return {ERROR: self.weight * self.loss(prediction, reference), **terms}


BASE_NCMS: dict[str, BaseNCM] = {
    "parameter_error": BaseNCM(parameter_error, "g"),
    "log_parameter_error": BaseNCM(log_parameter_error, "g"),
    "cross_entropy": BaseNCM(cross_entropy, "g"),
    "invariance": BaseNCM(invariance, "x"),
    "kl_divergence": BaseNCM(kl_divergence, "x"),
    "argmax_disagreement": BaseNCM(argmax_disagreement, "x"),
    "soft_disagreement": BaseNCM(soft_disagreement, "x"),
    "label_cross_entropy": BaseNCM(label_cross_entropy, "x"),
    "label_logit": BaseNCM(label_logit, "x"),
    "turn_and_label": BaseNCM(cross_entropy, "g", evidence=True, weight=TURN),
    "turn_and_mirrored_label": BaseNCM(cross_entropy, "g", evidence=True, weight=TURN, mirrored=True),
    "feature_change": BaseNCM(feature_change, "x"),
    "cross_entropy_and_familiarity": BaseNCM(cross_entropy, "g", familiarity=True),
    "label_logit_and_familiarity": BaseNCM(label_logit, "x", familiarity=True),
}


def softmax_baseline(prediction: Tensor) -> Tensor:
    """SBP (Hendrycks and Gimpel 2017): 1 - max softmax of M(x). Logits (batch, classes) -> (batch,)."""
    confidence: Tensor = torch.softmax(prediction, dim=-1).amax(dim=-1)
    return 1 - confidence
