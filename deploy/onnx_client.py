"""p-values of an exported detector of pictures, with NumPy and ONNX Runtime only; docs/onnx.md explains each step.

idecode export --onnx --detector fashion-rotations --out onnx/
python deploy/onnx_client.py onnx/ pictures.npy        # uint8 (N, size, size, 3), RGB, at the model's size
"""

import json
import sys
from hashlib import blake2b
from pathlib import Path

import numpy as np
import onnxruntime


def content_key(pixels, seed):
    """The 128-bit key of one picture's draws: a keyed hash of its type, shape and bytes."""
    digest = blake2b(digest_size=16, key=seed.to_bytes(16, "little", signed=True))
    digest.update(f"{pixels.dtype.str}{pixels.shape}".encode() + pixels.tobytes())
    return np.frombuffer(digest.digest(), dtype="<u8").astype(np.uint64)


def draw(transforms, key, n):
    """The parameters of n transforms for one picture, a function of its key alone."""
    uniforms = np.random.Generator(np.random.Philox(key=key)).random
    if "jitter" in transforms:  # rotations
        jitter, each = transforms["jitter"], 4 if transforms["per_draw"] == "all" else 1
        u = uniforms((n, 2 * each))
        quarter = np.arange(4) if each == 4 else np.floor(4 * u[:, 1:])  # which of the four ranges
        angles = 90 * quarter + np.floor(u[:, :each] * (2 * jitter + 1)) - jitter
        return angles.astype(np.int64).reshape(-1)  # (n * each,) degrees
    if "shift" in transforms:  # small affine warps, views
        u = uniforms((n, 5))
        log_scale = np.log(np.float32(1 + transforms["scale"]))
        limits = np.float32([transforms["degrees"], log_scale, transforms["shift"], transforms["shift"]])
        return np.hstack([(2 * u[:, :4] - 1) * limits, u[:, 4:] < 0.5])  # (n, 5)
    raise SystemExit(f"This client knows rotations and affine warps, and not {transforms['name']}.")


def p_values(folder, pictures, n=5, seed=0):
    """Eq. 5 for each picture: (1 + how many calibration points look at least as strange) / (k + 1)."""
    about = json.loads((Path(folder) / "onnx.json").read_text())
    size = about["scorer"]["preprocessing"]["size"]
    if pictures.dtype != np.uint8 or pictures.shape[1:] != (size, size, 3) or n > about["n_max"]:
        raise SystemExit(f"Expected uint8 (N, {size}, {size}, 3) and n up to {about['n_max']}.")
    parameters = np.stack([draw(about["scorer"]["transforms"], content_key(x, seed), n) for x in pictures])
    if about["scorer"]["preprocessing"]["grey"]:  # the key is of the colours, the network sees none
        grey = (pictures.astype(np.uint32) @ np.uint32([19595, 38470, 7471]) + 2**15) >> 16
        pictures = np.repeat(grey.astype(np.uint8)[..., None], 3, axis=3)
    x = pictures.transpose(0, 3, 1, 2).astype(np.float32) / 255
    session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
    fed = ({"x": x[i : i + 64], "parameters": parameters[i : i + 64]} for i in range(0, len(x), 64))
    said = [session.run(None, one)[0] for one in fed]
    vectors = np.concatenate(said).reshape(len(x), n, about["variants"]).mean(axis=2)  # V(x)
    scores = vectors.astype(np.float64).sum(axis=1)  # F(V(x))
    calibration = np.load(Path(folder) / "calibration.npz")["score_vectors"][:, :n].astype(np.float64)
    rising = np.sort(calibration.sum(axis=1))
    return (len(rising) - np.searchsorted(rising, scores, side="left") + 1) / (len(rising) + 1)


if __name__ == "__main__":
    print(*p_values(sys.argv[1], np.load(sys.argv[2])), sep="\n")
