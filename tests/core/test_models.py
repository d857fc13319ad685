"""Models: shapes of every backbone, the encoder block, pairing, whitening, and no tensor left on the CPU."""

import numpy as np
import pytest
import torch
from small import OnTheCpuFirst

from idecode_core.errors import SettingError
from idecode_core.models import Equivariant, ModelConfig
from idecode_core.models.backbones import Compact, EncoderBlock, Pooled

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


def test_layers_are_the_papers():
    blocks = {"resnet34": [3, 4, 6, 3], "resnet18": [2, 2, 2, 2]}
    for name, counts in blocks.items():
        layers = build(ModelConfig(name, outputs=4), "meta").backbone.layers
        stages = [layer for layer in layers if type(layer) is torch.nn.Sequential]
        assert [len(stage) for stage in stages] == counts
        assert {type(block).__name__ for stage in stages for block in stage} == {"BasicBlock"}
        assert layers[-1] is stages[-1]
        assert layers[-2].log_variance[0].in_channels == 256
    wide = build(ModelConfig("wrn-40-2", outputs=4), "meta").backbone
    assert isinstance(wide, Pooled)
    names = [type(layer).__name__ for layer in wide.layers]
    assert (
        names.count("WideBlock") == 18
    )  # 18 blocks of two convolutions, three shortcuts and the stem: depth 40
    assert names[-1] == "EncoderBlock"
    assert wide.layers[-1].log_variance[0].in_channels == 128


@pytest.mark.parametrize("name", ["resnet34", "resnet18"])
def test_a_resnet_keeps_the_side_until_its_second_stage(name):
    layers = build(ModelConfig(name, outputs=4), "meta").backbone.layers
    x, sides = torch.empty(1, 3, 32, 32, device="meta"), []
    for layer in layers:
        x = layer(x)
        sides.append(x.shape[-1])
    assert sides == [32, 32, 32, 32, 16, 8, 8, 4]  # a 3x3 stem and no pooling after it


def test_parameter_counts_are_those_of_the_published_networks():
    """ResNet-34 and -18 for CIFAR have 21.3 and 11.2 million, WRN-40-2 has 2.2 million parameters."""
    for name, millions in {"resnet34": 21.3, "resnet18": 11.2, "wrn-40-2": 2.2}.items():
        backbone = build(ModelConfig(name, outputs=4), "meta").backbone
        of_encoder = sum(
            p.numel() for m in backbone.modules() if isinstance(m, EncoderBlock) for p in m.parameters()
        )
        count = sum(p.numel() for p in backbone.parameters()) - of_encoder
        assert round(count / 1e6, 1) == millions


def test_the_encoder_blocks_noise_is_off_when_scoring_and_small_when_training():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block = EncoderBlock(4)
        mu = torch.randn(3, 4, 5, 5)
        assert torch.equal(block.eval()(mu), mu)
        noisy = block.train()(mu)
    assert not torch.equal(noisy, mu)
    assert (
        noisy - mu
    ).abs().max() < 0.05  # 0.001 * exp(logvar / 2) * noise, log-variance of the order of one


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
