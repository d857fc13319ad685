"""Models: shapes of every backbone, the encoder block, pairing, whitening, and no tensor left on the CPU."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_image
from small import OnTheCpuFirst

from idecode_core.errors import SettingError
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.settings import read_settings
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.models.backbones import Compact

BACKBONES = {"resnet34": 512, "resnet18": 512, "wrn-40-2": 128, "compact": 256}


def build(config: ModelConfig, device: str = "cpu") -> Equivariant:
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        return Equivariant(config).eval()


@pytest.mark.parametrize(("backbone", "features"), BACKBONES.items())
def test_features_have_the_papers_width(backbone, features):
    model = build(ModelConfig(backbone, outputs=4))
    with torch.inference_mode():
        z = model.encode(torch.rand(2, 3, 32, 32))
        assert z.shape == (2, features)
        assert model.decode(None, z[:, None].expand(2, 3, features)).shape == (2, 3, 4)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("pair", [False, True])
def test_no_parameter_or_buffer_is_stuck_on_the_cpu(backbone, pair):
    """Built on the CPU and moved, as ImageScorer does; on the meta device mixing devices raises."""
    model = (
        Equivariant(ModelConfig(backbone, outputs=8, pair=pair, hidden=16, variance=True)).to("meta").eval()
    )
    z = model.encode(torch.empty(2, 3, 28, 28, device="meta"))
    z_g = z[:, None].expand(2, 5, -1)
    assert model.decode(z, z_g).device.type == "meta"
    assert model.decode(z, z_g).shape == (2, 5, 8)
    assert model.decode_log_variance(z, z_g).shape == (2, 5, 8)


@pytest.mark.parametrize("backbone", ["resnet18", "wrn-40-2"])
def test_scoring_twice_gives_the_same_features(backbone):
    model = build(ModelConfig(backbone, outputs=4))
    x = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(model.encode(x), model.encode(x))


def test_a_paired_model_concatenates_the_features_of_x_and_gx():
    model = build(ModelConfig("compact", outputs=3, pair=True, widths=(4, 4, 4)))
    z, z_g = torch.randn(2, 4), torch.randn(2, 5, 4)
    with torch.inference_mode():
        decoded = model.decode(z, z_g)
        for i in range(2):
            for j in range(5):
                by_hand = model.head.weight @ torch.cat([z[i], z_g[i, j]]) + model.head.bias
                torch.testing.assert_close(decoded[i, j], by_hand)
    with pytest.raises(SettingError, match="features of x"):
        model.decode(None, z_g)


def test_log_variance_is_a_thousandth_of_its_head():
    model = build(ModelConfig("compact", outputs=3, variance=True, widths=(4, 4, 4)))
    z_g = torch.randn(2, 5, 4)
    with torch.inference_mode():
        torch.testing.assert_close(1000 * model.decode_log_variance(None, z_g), model.variance_head(z_g))


def test_images_are_normalised_inside_of_the_model():
    model = build(
        ModelConfig("compact", outputs=3, widths=(4, 4, 4), mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 0.125))
    )
    x = torch.rand(2, 3, 8, 8)
    by_hand = (x.numpy() - np.array([0.1, 0.2, 0.3])[:, None, None]) / np.array([0.5, 0.25, 0.125])[
        :, None, None
    ]
    np.testing.assert_allclose(model.normalise(x).numpy(), by_hand, atol=1e-6)


def test_a_whitened_stem_gives_uncorrelated_outputs_of_unit_variance():
    backbone = Compact((4, 4, 4))
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(200, 3, 4, 4, generator=generator)
    x = torch.nn.functional.interpolate(coarse, size=12, mode="bilinear")
    x = x + 0.3 * torch.randn(x.shape, generator=generator)
    with OnTheCpuFirst():
        backbone.whiten(x, floor=0.0)
    with torch.inference_mode():
        out = backbone.stem(x)[:, :12].permute(1, 0, 2, 3).flatten(1)  # the other twelve are the negatives
    covariance = out @ out.T / out.shape[1]
    torch.testing.assert_close(covariance, torch.eye(12), atol=1e-3, rtol=0)


def test_an_unknown_backbone_is_refused_in_words():
    with pytest.raises(SettingError, match="Unknown backbone 'vit'"):
        Equivariant(ModelConfig("vit", outputs=4))  # type: ignore[arg-type]


def test_an_enlarging_network_sees_what_pillow_makes_of_the_picture():
    """At three times the side, bicubic: PIL's kernel is another (a = -0.5), so pixels agree to a few hundredths."""
    config = ModelConfig("compact", outputs=3, widths=(4, 4, 4), enlarge=3)
    model, seen = build(config), []
    model.backbone.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    picture = Image.fromarray(load_sample_image("china.jpg")).resize((32, 32))
    x = torch.from_numpy(np.asarray(picture) / 255).float().permute(2, 0, 1)[None]
    large = np.asarray(picture.resize((96, 96), Image.Resampling.BICUBIC)) / 255
    model.encode(x)
    (shown,) = (values * model.std + model.mean for values in seen)
    assert shown.shape == (1, 3, 96, 96)
    assert np.abs(shown[0].permute(1, 2, 0).detach().numpy() - large).mean() < 0.01


@pytest.mark.parametrize("enlarge", [0, 9, 2.0, True, "3"])
def test_a_network_that_enlarges_oddly_is_refused(enlarge):
    with pytest.raises(SettingError, match="from 1 to 8"):
        ModelConfig.read({"backbone": "compact", "outputs": 3, "enlarge": enlarge})


def test_settings_name_the_enlarging_only_where_there_is_one_so_that_older_detectors_keep_their_hash():
    plain, three = ModelConfig("compact", outputs=3), ModelConfig("compact", outputs=3, enlarge=3)
    assert "enlarge" not in plain.settings()
    assert ModelConfig.read(json.loads(json.dumps(three.settings()))) == three
    folder = Path(__file__).parents[2] / "checkpoints" / "cifar10-horses"
    assert scorer_hash(load_detector(folder, "cpu").scorer) == read_settings(folder).scorer_sha256
