"""Score vectors: each point has its own draws, a batch is only a batch, x is encoded once, memory is bounded."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.special import log_softmax, softmax
from small import SIZE, OnTheCpuFirst, content_keys, random_images, small_scorer

from idecode_core.device import choose_device
from idecode_core.errors import InputError, SettingError
from idecode_core.image import scorer as scoring
from idecode_core.transforms import Projective, Rotations, SmallAffine

SCORERS = {
    "rotations": lambda: small_scorer(Rotations()),
    "rotations, familiarity": lambda: small_scorer(Rotations(), "cross_entropy_and_familiarity"),
    "rotations, all": lambda: small_scorer(Rotations(per_draw="all"), pair=True),
    "projective": lambda: small_scorer(Projective(), "parameter_error", outputs=8, pair=True),
    "invariance": lambda: small_scorer(SmallAffine(), "invariance", outputs=10),
}
IMAGES = random_images(9)


@pytest.fixture(params=SCORERS)
def scorer(request):
    return SCORERS[request.param]()


def vectors(scorer, samples, n=3, seed=0):
    return scorer.score(samples, n=n, seed=seed).score_vectors


def as_file(image: np.ndarray, kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return buffer.getvalue()


def test_permuting_a_batch_permutes_its_scores(scorer):
    order = np.random.default_rng(1).permutation(len(IMAGES))
    np.testing.assert_allclose(
        vectors(scorer, IMAGES[order]), vectors(scorer, IMAGES)[order], rtol=1e-4, atol=1e-6
    )


def test_a_point_alone_has_the_score_that_it_has_in_company(scorer):
    together = vectors(scorer, IMAGES)
    for i in range(len(IMAGES)):
        np.testing.assert_allclose(vectors(scorer, IMAGES[i]), together[i : i + 1], rtol=1e-4, atol=1e-6)


def test_the_scores_for_fewer_draws_are_the_first_of_those_for_more(scorer):
    np.testing.assert_allclose(
        vectors(scorer, IMAGES, n=2), vectors(scorer, IMAGES, n=6)[:, :2], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("largest", [1, 7, 10_000])
def test_the_batch_size_changes_neither_draws_nor_scores(scorer, largest, monkeypatch):
    usual = scorer.score(IMAGES, n=3, seed=0)
    monkeypatch.setattr(scoring, "VARIANTS_PER_BATCH", largest)
    other = scorer.score(IMAGES, n=3, seed=0)
    for ours, theirs in zip(usual.parameters, other.parameters, strict=True):
        assert torch.equal(ours, theirs)
    np.testing.assert_allclose(other.score_vectors, usual.score_vectors, rtol=1e-4, atol=1e-6)


def test_draws_depend_on_the_decoded_content_and_not_on_the_file_it_came_in(tmp_path):
    scorer = small_scorer()
    usual = scorer.score(IMAGES[:1], n=4, seed=0)
    path = tmp_path / "name.png"
    path.write_bytes(as_file(IMAGES[0], "PNG"))
    forms = {
        "PIL image": [Image.fromarray(IMAGES[0])],
        "array": [IMAGES[0]],
        "path": path,
        "path as text": [str(path)],
        **{kind: [as_file(IMAGES[0], kind)] for kind in ("PNG", "BMP", "TIFF", "WEBP")},
        "batches": iter([IMAGES[:1]]),
    }
    for name, form in forms.items():
        scored = scorer.score(form, n=4, seed=0)
        assert torch.equal(scored.parameters[0], usual.parameters[0]), name
        assert np.array_equal(scored.score_vectors, usual.score_vectors), name


def test_each_point_has_its_own_draws_and_a_seed_changes_them_all():
    scorer = small_scorer()
    first, second = (scorer.score(IMAGES, n=8, seed=seed).parameters for seed in (0, 1))
    texts = [str(parameters.tolist()) for parameters in (*first, *second)]
    assert len(set(texts)) == 2 * len(IMAGES)


def test_the_same_image_twice_in_a_batch_has_the_same_draws():
    scored = small_scorer().score(np.stack([IMAGES[0], IMAGES[1], IMAGES[0]]), n=8, seed=0)
    assert torch.equal(scored.parameters[0], scored.parameters[2])


def test_scoring_leaves_the_global_random_states_alone(scorer):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    vectors(scorer, IMAGES)
    assert torch.equal(torch.rand(3), expected)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_scores_equal_a_plain_loop_over_points_and_draws(scorer):
    """One image and one transform at a time, x encoded again for each, the NCM in NumPy."""
    n = 3
    found = vectors(scorer, IMAGES[:3], n)
    transforms, model = scorer.transforms, scorer.model
    for i, image in enumerate(IMAGES[:3]):
        x = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
        parameters = transforms.sample(content_keys([image], 0), n)
        target = transforms.target(parameters)
        scores = []
        for j in range(n * transforms.variants):
            gx = transforms.apply(x, parameters[:, j : j + 1])[:, 0]
            with torch.no_grad():
                z, z_g = model.encode(x), model.encode(gx)
                prediction = model.decode(z, z_g[:, None])[0, 0].double().numpy()
                reference = model.decode(z, z[:, None])[0, 0].double().numpy()
            if scorer.base_ncm == "cross_entropy":
                scores.append(-log_softmax(prediction)[target[0, j]])
            elif scorer.base_ncm == "cross_entropy_and_familiarity":
                activation = np.log(np.mean(z_g[0].double().numpy()))
                scores.append(-log_softmax(prediction)[target[0, j]] - activation)
            elif scorer.base_ncm == "parameter_error":
                scores.append(np.mean((prediction - target[0, j].numpy()) ** 2))
            else:
                scores.append(np.sum((softmax(prediction) - softmax(reference)) ** 2))
        by_draw = np.reshape(scores, (n, transforms.variants)).mean(axis=1)
        np.testing.assert_allclose(found[i], by_draw, rtol=1e-3, atol=1e-6)


def count_encoded(scorer, monkeypatch) -> list[int]:
    """Batch sizes that go through the network from now on."""
    sizes = []
    encode = scorer.model.encode

    def counting(x):
        assert torch.is_inference_mode_enabled()
        sizes.append(len(x))
        return encode(x)

    monkeypatch.setattr(scorer.model, "encode", counting)
    return sizes


@pytest.mark.parametrize("name", ["projective", "invariance"])
def test_x_is_encoded_once_whatever_n_is(name, monkeypatch):
    scorer = SCORERS[name]()
    sizes = count_encoded(scorer, monkeypatch)
    vectors(scorer, IMAGES, n=7)
    assert sum(sizes) == len(IMAGES) * (1 + 7)


def test_a_model_that_does_not_look_at_x_does_not_encode_it(monkeypatch):
    scorer = SCORERS["rotations"]()
    sizes = count_encoded(scorer, monkeypatch)
    vectors(scorer, IMAGES, n=7)
    assert sum(sizes) == len(IMAGES) * 7


def test_no_more_than_a_batch_is_in_flight(monkeypatch):
    """Neither a large dataset nor a large n makes batches larger, and a stream is read only as it is needed."""
    monkeypatch.setattr(scoring, "VARIANTS_PER_BATCH", 10)
    scorer = small_scorer()
    sizes = count_encoded(scorer, monkeypatch)
    read = []

    def stream():
        for i in range(30):
            read.append(i)
            yield IMAGES[i % len(IMAGES)]

    most_ahead = 0

    def progress(done):
        nonlocal most_ahead
        most_ahead = max(most_ahead, len(read) - done)

    found = scorer.score(stream(), n=3, seed=0, progress=progress)
    assert found.score_vectors.shape == (30, 3)
    assert max(sizes) <= 10
    assert most_ahead == 0
    sizes.clear()
    vectors(scorer, IMAGES[:2], n=25)
    assert max(sizes) <= 10


def test_progress_counts_every_point(monkeypatch):
    monkeypatch.setattr(scoring, "VARIANTS_PER_BATCH", 8)
    seen = []
    small_scorer().score(IMAGES, n=2, seed=0, progress=seen.append)
    assert seen == [4, 8, 9]


@pytest.mark.parametrize("per_draw", ["one", "all"])
def test_nothing_of_a_scorer_is_stuck_on_the_cpu(per_draw):
    """A whole forward pass on the meta device, where mixing devices raises."""
    for transforms, ncm, outputs in (
        (Rotations(per_draw=per_draw), "cross_entropy", 4),
        (Rotations(per_draw=per_draw), "cross_entropy_and_familiarity", 4),
        (Projective(), "parameter_error", 8),
        (SmallAffine(), "invariance", 10),
    ):
        scorer = small_scorer(transforms, ncm, outputs=outputs, pair=ncm != "invariance")
        scorer.model.to("meta")
        parameters = transforms.sample(content_keys(IMAGES[:2], 0), 3)
        x = torch.empty(2, 3, SIZE, SIZE, device="meta")
        with torch.inference_mode():
            scores = scorer.predict(x, parameters).scores(ncm)
        assert scores.device.type == "meta"
        assert scores.shape == (2, 3 * transforms.variants)


def test_scores_come_to_the_cpu_before_they_become_double(scorer):
    with OnTheCpuFirst() as watched:
        scorer.score(IMAGES[:2], n=2, seed=0)
        scorer.inspect(IMAGES[0], n=2, seed=0)
    assert watched.arrived


def test_a_picture_is_inspected_with_one_pass_that_gives_the_scores_too(scorer, monkeypatch):
    alone = vectors(scorer, IMAGES[0], n=3, seed=5)[0]
    sizes = count_encoded(scorer, monkeypatch)
    found = scorer.inspect(IMAGES[0], n=3, seed=5)
    looks_at_x = scorer.model.config.pair or scorer.base_ncm == "invariance"
    assert sum(sizes) == 3 * scorer.transforms.variants + looks_at_x
    assert np.array_equal(found.score_vector, alone)


def test_the_terms_of_a_draw_sum_to_its_score(scorer):
    found = scorer.inspect(IMAGES[0], n=4, seed=1)
    sums = [sum(term.value for term in terms) for terms in found.terms]
    np.testing.assert_allclose(sums, found.score_vector, rtol=1e-6)
    assert len(found.terms[0]) == (2 if "familiarity" in scorer.base_ncm else 1)


def test_a_prepared_sample_scores_as_the_picture_it_was_made_from(scorer):
    prepared = [scorer.prepare(image, 4) for image in IMAGES[:3]]
    assert np.array_equal(vectors(scorer, prepared, seed=4), vectors(scorer, IMAGES[:3], seed=4))
    with pytest.raises(SettingError, match="prepared for seed 4"):
        vectors(scorer, prepared, seed=5)


def test_large_pictures_are_let_go_as_soon_as_they_are_at_the_models_size():
    """Repair: a batch of full-size photographs was held together. Now one at a time is alive."""
    alive = 0

    class Photograph(np.ndarray):
        def __del__(self):
            nonlocal alive
            alive -= self.base is None

    most = 0

    def photographs():
        nonlocal alive, most
        for _ in range(12):
            photograph = Photograph((64, 64, 3), np.uint8)
            photograph[:] = 7
            alive += 1
            most = max(most, alive)
            yield photograph
            del photograph

    small_scorer().score(photographs(), n=1, seed=0)
    assert most <= 2  # the one that is being prepared, and at most the one before it


def test_variants_are_what_was_scored(scorer):
    found = scorer.score(IMAGES[:1], n=3, seed=5)
    variants = scorer.inspect(IMAGES[0], n=3, seed=5).variants
    assert [v.applied for v in variants] == scorer.describe(found.parameters[0])
    by_draw = [np.mean([v.score for v in variants if v.draw == draw]) for draw in range(3)]
    np.testing.assert_allclose(by_draw, found.score_vectors[0], rtol=1e-4, atol=1e-6)
    for variant in variants:
        assert variant.image.shape == (SIZE, SIZE, 3)
        assert variant.image.dtype == np.uint8
        assert variant.predicted


def test_images_of_any_size_pass_through_the_detectors_preprocessing():
    sizes = [(40, 60), (16, 16), (9, 200), (300, 8)]
    images = [np.random.default_rng(0).integers(0, 256, (h, w, 3)).astype(np.uint8) for h, w in sizes]
    assert vectors(small_scorer(), images).shape == (4, 3)


@pytest.mark.parametrize("samples", [[], iter([]), np.empty((0, 16, 16, 3), np.uint8)])
def test_no_image_at_all_is_told_in_words(samples):
    with pytest.raises(InputError, match="at least one image"):
        vectors(small_scorer(), samples)


@pytest.mark.parametrize("samples", [3, None, 1.5, [None], [{"image": 1}], object()])
def test_things_that_are_no_images_are_refused_in_words(samples):
    with pytest.raises(InputError, match="xpected"):
        vectors(small_scorer(), samples)


def test_n_below_one_is_refused_before_anything_is_read():
    with pytest.raises(SettingError, match="n must be at least 1"):
        small_scorer().score(iter(lambda: pytest.fail("read"), None), n=0, seed=0)


def test_an_unknown_base_ncm_is_refused_in_words():
    with pytest.raises(SettingError, match="No base NCM is called 'mse'; expected one of parameter_error"):
        small_scorer(base_ncm="mse")


def test_devices_are_chosen_or_refused_in_words():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device() in (torch.device("cpu"), torch.device("cuda"), torch.device("mps"))
    with pytest.raises(SettingError, match="No device is called 'gpu'"):
        choose_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(SettingError, match="not available"):
            choose_device("cuda")
