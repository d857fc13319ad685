"""Which base NCM suits a network that somebody else has trained? Measured with `Detector.around`, not guessed.

    python -m research.own_model_ncms

EfficientNet-Lite0 with its ImageNet weights, as a classifier (1,000 logits) and as a feature extractor (1,280 features),
under small affine warps. Animals and vehicles of CIFAR-10's training split belong; scenes and trees of CIFAR-100's training
split, textures, digits and clothing do not: none of them is an OOD set of the tables. It needs the datasets of data/ and
the extra `[pretrained]`. docs/your-own-model.md has the table.
"""

import time

import numpy as np
import timm
import torch

from idecode_core import auroc
from idecode_core.image.sets import load_images
from idecode_core.models.pretrained import MEAN, NAME, STD, imagenet_weights
from idecode_core.scorers.user_network import user_scorer
from idecode_core.training.recipes import superclass

SIZE, K, TESTS, N = 128, 150, 120, 5
BELONGS = "cifar10-train"
SUPERCLASSES = {"scenes": 10, "trees": 17}  # of CIFAR-100's training split
BUNDLED = ("textures-sample", "digits-sample", "fashion-sample")
OTHERS = (*SUPERCLASSES, *BUNDLED)
CLASSIFIER = (
    "label_cross_entropy",
    "label_logit",
    "label_logit_and_familiarity",
    "invariance",
    "soft_disagreement",
)
EXTRACTOR = ("feature_change",)


def network(classes: int) -> torch.nn.Module:
    made = timm.create_model(NAME, pretrained=False, num_classes=classes)
    own = made.state_dict()
    made.load_state_dict(dict(zip(own, imagenet_weights().values(), strict=False)))
    return made


def main() -> None:
    torch.set_num_threads(1)
    images = load_images(BELONGS).x
    chosen = np.random.default_rng(0).permutation(len(images))
    sets = {BELONGS: images[chosen[:TESTS]]}
    wild = load_images("cifar100-train")
    for name in OTHERS:
        others = wild.only(superclass(SUPERCLASSES[name])).x if name in SUPERCLASSES else load_images(name).x
        sets[name] = others[np.random.default_rng(0).permutation(len(others))[:TESTS]]
    start = time.perf_counter()
    print(f"AUROC in %, n = {N}, {TESTS} pictures of each set, {SIZE} px")
    print(f"{'base NCM':30}" + "".join(f"{name:>18}" for name in OTHERS))
    for classes, base_ncms in ((1000, CLASSIFIER), (0, EXTRACTOR)):
        scorer = user_scorer(
            network(classes),
            base_ncm=base_ncms[0],
            size=SIZE,
            mean=MEAN,
            std=STD,
            features="global_pool" if classes else None,
            device=torch.device("cpu"),
        )
        scores = {
            name: {
                ncm: scored.score_vectors.sum(axis=1)
                for ncm, scored in scorer.score_under(base_ncms, x, n=N, seed=0).items()
            }
            for name, x in sets.items()
        }
        for ncm in base_ncms:
            aurocs = [100 * auroc(scores[BELONGS][ncm], scores[name][ncm]) for name in OTHERS]
            print(f"{ncm:30}" + "".join(f"{value:18.1f}" for value in aurocs))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
