"""The words of cards: what stands under a name in a detector's settings and training record."""

LICENCES = {
    "cifar10": "CIFAR-10 (Krizhevsky 2009, *Learning multiple layers of features from tiny images*) states no licence; cite it.",
    "cifar100": "CIFAR-100 (Krizhevsky 2009) states no licence; cite it.",
    "svhn": "SVHN (Netzer et al. 2011) is for non-commercial use.",
    "fashion": "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017) is under the MIT licence.",
    "esc50": (
        "ESC-50 (Piczak 2015, *ESC: Dataset for environmental sound classification*) is under CC BY-NC 3.0: use these "
        "weights for non-commercial purposes, and cite it. No audio of ESC-50 is in this folder."
    ),
    "spokendigits": (
        "All clips were made by this project with espeak-ng (`tools/make_spoken_digits.py`); they are free to use as the "
        "project itself."
    ),
    "fsdnoisy18k": "FSDnoisy18k (Fonseca et al. 2019) has a Creative Commons licence for each clip; see the dataset.",
}
DATA = {
    "esc50": (
        "ESC-50 at 16 kHz: training on folds 1 and 2, calibration on {k} random clips of fold 3, test on fold 4. Clips of "
        "one recording share a fold, so calibration and test clips are equally new to the model."
    ),
    "spokendigits": (
        "Independent draws of digit, accent, voice, speed, pitch, place, level and background noise; "
        "`python tools/make_spoken_digits.py data` makes them again."
    ),
    "fsdnoisy18k": (
        "The verified clips of FSDnoisy18k (App. C.2): 15 random clips per class calibrate, the test part tests."
    ),
}
TASKS = {
    "transform_class": "M learns to say which rotation was applied to an image",
    "transform_parameters": "M learns the parameters of the transform that was applied (Gaussian NLL, as AVT)",
    "transform_and_label": (
        "M learns to name the class of an image and, where it is shown turned, which rotation was applied"
    ),
    "label": "M is a classifier that learns the labels under small warps",
    "block_label": "A VGG with channels {widths} names the class of a block",
}
BASE_NCMS = {
    "cross_entropy": "the cross-entropy between M's answer and the transform that was applied",
    "parameter_error": "the mean squared error of the predicted transform parameters",
    "log_parameter_error": (
        "the log of the mean squared error of the predicted transform parameters (the paper: the error itself)"
    ),
    "invariance": "the squared distance between the softmax outputs of x and of g(x) (Eq. 3)",
    "soft_disagreement": "soft disagreement, 1 - M(g(x))·M(x)",
    "label_cross_entropy": "-log of the probability that M gives, on g(x), to the class that it names for x",
    "label_logit": "minus the logit that M gives, on g(x), to the class that it names for x",
    "feature_change": "1 - the cosine of the angle between M's features of x and of g(x)",
    "cross_entropy_and_familiarity": (
        "the cross-entropy between M's answer and the transform that was applied, less the log of M's mean activation on "
        "g(x) (docs/familiarity.md)"
    ),
    "label_logit_and_familiarity": (
        "minus the logit that M gives, on g(x), to the class that it names for x, less the log of M's mean activation on "
        "g(x) (docs/familiarity.md)"
    ),
}
BASE_NCMS |= {
    "turn_and_label": (
        "a fifth of the cross-entropy between M's answer and the rotation that was applied, less the log of the evidence for any "
        "class in x (docs/joint.md)"
    ),
    "turn_and_mirrored_label": (
        "a fifth of the cross-entropy between M's answer and the rotation that was applied, less the log of the evidence for any "
        "class in x and its mirror image, whose answers are averaged (docs/joint.md)"
    ),
    "mahalanobis": (
        "the Mahalanobis distance of M's features of g(x), at length 1, from the closest class of the training set (Lee et al. "
        "2018), M being a frozen network"
    ),
    "neighbours": (
        "the distance of M's features of g(x), at length 1, from their 5th nearest neighbour in the training set (Sun et al. "
        "2022), M being a frozen network"
    ),
}
LIMITS = {
    "image": (
        "- The guarantee is about points from the training distribution: at most a share epsilon of them is flagged, on "
        "average over calibration sets. It says nothing about how many OOD points are found; the table does, for these "
        "sets.\n"
        "- Images are cut to the middle square and resized to the model's size first. A change of camera, compression or "
        "cropping can make in-distribution images strange; calibrate again on images of your own.\n"
        "- Numbers on OOD sets come from random parts of public sets and have a sampling error of about one point.\n"
    ),
    "audio": (
        "- The bound holds for clips like those that calibrated it. Another microphone or room is another distribution: "
        "calibrate again with recordings of your own.\n"
    ),
    "esc50": (
        "- Only 160 clips trained the model. It separates iD from OOD weakly: read the AUROC above before relying on it.\n"
        "- The smallest p-value is 1/76: an epsilon of 0.013 or less never flags anything.\n"
        "- The bound holds for clips like ESC-50's (5 s, Freesound, Vorbis-coded, 16 kHz). Your microphone is another "
        "distribution: calibrate again with recordings of your own.\n"
        "- Clips of one recording stay in one fold, so folds are not quite as many independent points as they have clips.\n"
    ),
    "spokendigits": (
        "- In-distribution is espeak-ng, not people: a recorded voice is usually flagged, and rightly so.\n"
        "- The bound holds for clips that the same script makes; calibrate again for other voices or microphones.\n"
    ),
    "cifar10/horse": (
        "- It knows horses as CIFAR-10 shows them: small, whole, upright. Another kind of picture of a horse may be flagged, and "
        "rightly so.\n"
        "- Each other class has 100 test pictures, so its AUROC has a sampling error of two to three points.\n"
        "- Trained for minutes: read the table before relying on it; deer and trucks are missed most often.\n"
    ),
    "fsdnoisy18k": "- Trained on few verified clips; the paper's AUROC is 60 on average.\n",
}
"""By dataset; else by modality."""
