"""Write the gallery of attacked pictures: idecode_core/embedded/attacked-gallery.npz.

    python -m tools.make_attack_gallery

Slow attacks only, on every victim that comes with the project; quick ones are run when they are looked at. The attack on a detector
is stored for the detectors that are named below. What is stored for another victim or attack stays, so a stopped run goes on.
"""

import argparse

import numpy as np

from idecode_core.attacks import ATTACKS, attack, attack_detector, load_victim, victims
from idecode_core.attacks.classic import GALLERY, GALLERY_SEED, array_name, gallery_pictures
from idecode_core.errors import DataError
from idecode_core.files import write_npz
from idecode_core.files.read import read_arrays
from idecode_core.folder.detector import load_detector

VICTIMS = ("cifar10-invariance", "cifar10-densenet")
ON_DETECTORS = {"cifar10-invariance": ("cifar10-rotations", "cifar10-invariance", "cifar10-merged")}
"""Per victim, the detectors that are attacked together with it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="make everything again")
    again = parser.parse_args().again
    x, y = gallery_pictures()
    stored = (
        {}
        if again or not GALLERY.exists()
        else read_arrays(GALLERY, what="a gallery", error=DataError, hint="")
    )
    for name in (name for name in VICTIMS if name in victims()):
        victim = load_victim(name, "cpu")
        slow = [kind.name for kind in ATTACKS.values() if kind.slow and not kind.on_detector]
        wanted = [(kind, None) for kind in slow] + [("pgd-detector", d) for d in ON_DETECTORS.get(name, ())]
        for kind, detector in wanted:
            key = array_name(name, kind, detector)
            if key in stored:
                continue
            against = None if detector is None else load_detector(detector, "cpu")
            made = []
            for one, label in zip(
                x.split(1), y.split(1), strict=True
            ):  # one by one, as the page would run them
                if against is None:
                    made.append(attack(victim, one, label, kind))
                else:
                    made.append(attack_detector(victim, against, one, label, seed=GALLERY_SEED))
            stored[key] = np.concatenate([one.attacked.numpy() for one in made])
            write_npz(GALLERY, stored)
            print(f"{key}: {sum(int(one.success[0]) for one in made)} of {len(made)} fooled", flush=True)
    print(f"{GALLERY.name}: {len(stored)} sets, {GALLERY.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
