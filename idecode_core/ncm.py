"""Base NCMs: A(X_tr, x; g) = Error(M, x, g) = L[M(g(x)), g'M(x)] (Eq. 2). Larger means stranger.

Each takes the model's predictions on the variants g(x), (batch, m, outputs), and what they are held against:
the transform that was applied (g' answers g), the prediction on x itself (g' is the identity, Eq. 3), or nothing.
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
NO_EVIDENCE = (
    "how little speaks for any of the classes that the model knows in the untouched input, the same in every draw; below 0 when "
    "much does"
)
NOT_FAMILIAR = (
    "how little the model finds of what it has learned to look for; below 0 when it finds much. A right answer can still "
    "look unfamiliar"
)
OF_A_USER = "what a base NCM of your own makes of the network's answer; the larger, the stranger"
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


def missing_evidence(prediction: Tensor, _: Tensor) -> Tensor:
    """-(evidence for any class in g(x)), whatever g was: under a G that no class depends on (mirror, small shifts) the mean
    over draws is test-time averaging. Logits (batch, m, classes) -> (batch, m)."""
    return -evidence(prediction)


@dataclass(frozen=True)
class BaseNCM:
    """A loss L, what M(g(x)) is held against, and what is taken off: the familiarity of g(x), and, of a model that names both
    g (its first RANGES outputs) and the class (the others), the evidence for any class in x (docs/joint.md)."""

    loss: Callable[[Tensor, Tensor], Tensor]
    against: Literal["g", "x", "nothing"]
    title: str = ""
    """The formula in one line, for cards."""
    means: str = ""
    """What the loss says of one draw, in words a newcomer understands."""
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

    def words(self) -> dict[str, str]:
        """What each of `terms` says, by its name."""
        error = self.means or OF_A_USER
        unknown = error if self.against == "nothing" else NO_EVIDENCE
        return {ERROR: error, UNKNOWN: unknown, UNFAMILIAR: NOT_FAMILIAR}

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
        if self.against != "x":
            name = ERROR if self.against == "g" else UNKNOWN
            return {name: self.weight * self.loss(prediction, target.to(prediction.device)), **terms}
        assert reference is not None
        return {ERROR: self.weight * self.loss(prediction, reference), **terms}


RIGHT_ANSWER = (
    "how little the model believed in the right answer, minus the log of its share; 0 when it was sure of it"
)
RIGHT_TURN = "how little the model believed in the right turn, minus a fifth of the log of its share; 0 when it was sure of it"
MOVED_ANSWER = "how far the model's answer moved away from its answer for the untouched input"
LESS_EVIDENCE = "how little speaks for the class of the untouched input; below 0 when much does"
TURN_ERROR = "a fifth of the cross-entropy between M's answer and the rotation that was applied"

BASE_NCMS: dict[str, BaseNCM] = {
    "parameter_error": BaseNCM(
        parameter_error,
        "g",
        "the mean squared error of the predicted transform parameters",
        "squared distance between the transform that was applied and the one the model answered",
    ),
    "log_parameter_error": BaseNCM(
        log_parameter_error,
        "g",
        "the log of the mean squared error of the predicted transform parameters (the paper: the error itself)",
        "logarithm of the squared distance between the transform that was applied and the model's answer; below 0 when it is "
        "close",
    ),
    "cross_entropy": BaseNCM(
        cross_entropy,
        "g",
        "the cross-entropy between M's answer and the transform that was applied",
        RIGHT_ANSWER,
    ),
    "invariance": BaseNCM(
        invariance,
        "x",
        "the squared distance between the softmax outputs of x and of g(x) (Eq. 3)",
        MOVED_ANSWER,
    ),
    "kl_divergence": BaseNCM(
        kl_divergence,
        "x",
        "the Kullback-Leibler divergence of the softmax outputs of g(x) from those of x",
        MOVED_ANSWER,
    ),
    "argmax_disagreement": BaseNCM(
        argmax_disagreement,
        "x",
        "1 where M names another class for g(x) than for x, else 0",
        "1 when the model names another class than for the untouched input, else 0",
    ),
    "soft_disagreement": BaseNCM(
        soft_disagreement,
        "x",
        "soft disagreement, 1 - M(g(x))·M(x)",
        "how often the model would name another class than for the untouched input",
    ),
    "label_cross_entropy": BaseNCM(
        label_cross_entropy,
        "x",
        "-log of the probability that M gives, on g(x), to the class that it names for x",
        "how little the model still believes in the class of the untouched input, minus the log of its share",
    ),
    "label_logit": BaseNCM(
        label_logit,
        "x",
        "minus the logit that M gives, on g(x), to the class that it names for x",
        LESS_EVIDENCE,
    ),
    "evidence": BaseNCM(
        missing_evidence,
        "nothing",
        "minus the log of the evidence for any class in g(x) (docs/evidence.md)",
        "how little speaks for any of the classes that the model knows; below 0 when much does",
    ),
    "turn_and_label": BaseNCM(
        cross_entropy,
        "g",
        f"{TURN_ERROR}, less the log of the evidence for any class in x (docs/joint.md)",
        RIGHT_TURN,
        evidence=True,
        weight=TURN,
    ),
    "turn_and_mirrored_label": BaseNCM(
        cross_entropy,
        "g",
        f"{TURN_ERROR}, less the log of the evidence for any class in x and its mirror image, whose answers are averaged "
        "(docs/joint.md)",
        RIGHT_TURN,
        evidence=True,
        weight=TURN,
        mirrored=True,
    ),
    "feature_change": BaseNCM(
        feature_change,
        "x",
        "1 - the cosine of the angle between M's features of x and of g(x)",
        "how far the direction of the network's features turned from that for the untouched input; 0 when it did not",
    ),
    "cross_entropy_and_familiarity": BaseNCM(
        cross_entropy,
        "g",
        "the cross-entropy between M's answer and the transform that was applied, less the log of M's mean activation on "
        "g(x) (docs/familiarity.md)",
        RIGHT_ANSWER,
        familiarity=True,
    ),
    "label_logit_and_familiarity": BaseNCM(
        label_logit,
        "x",
        "minus the logit that M gives, on g(x), to the class that it names for x, less the log of M's mean activation on "
        "g(x) (docs/familiarity.md)",
        LESS_EVIDENCE,
        familiarity=True,
    ),
}


def softmax_baseline(prediction: Tensor) -> Tensor:
    """SBP (Hendrycks and Gimpel 2017): 1 - max softmax of M(x). Logits (batch, classes) -> (batch,)."""
    confidence: Tensor = torch.softmax(prediction, dim=-1).amax(dim=-1)
    return 1 - confidence
