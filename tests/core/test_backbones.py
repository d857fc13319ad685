"""DenseNets: their shape is the publication's, and layers hand on what came before."""

import pytest
import torch
from test_equivariant import build
from torch import nn

from idecode_core.models import ModelConfig
from idecode_core.models.backbones import (
    GROWTH,
    CompactDenseNet,
    DenseLayer,
    EncoderBlock,
    Pooled,
    Transition,
    densenet100,
)
from idecode_core.training.recipes import RECIPES


def test_densenet_100_has_100_layers_and_the_published_size() -> None:
    network = densenet100()
    layers = sum(isinstance(module, nn.Conv2d) for module in network.modules()) + 1  # and the head
    assert layers == 100
    head = 10 * (network.out_features + 1)
    assert (
        round((sum(weight.numel() for weight in network.parameters()) + head) / 1e6, 1) == 0.8
    )  # Huang et al., Table 2
    assert network.out_features == 342


def test_a_dense_layer_hands_on_its_input_and_adds_growth_channels() -> None:
    x = torch.rand(2, 6, 5, 5)
    y = DenseLayer(6).eval()(x)
    assert y.shape == (2, 6 + GROWTH, 5, 5)
    assert torch.equal(y[:, :6], x)


def test_pooling_before_the_1x1_convolution_is_pooling_after_it() -> None:
    transition = Transition(6, 3).eval()
    x = torch.randn(2, 6, 8, 8)
    after = nn.functional.avg_pool2d(transition.conv(torch.relu(transition.norm(x))), 2)
    assert torch.allclose(transition(x), after, atol=1e-6)


def test_the_compact_densenet_works_on_16_x_16_positions_and_whitens_its_stem() -> None:
    network = CompactDenseNet().eval()
    x = torch.rand(50, 3, 32, 32)
    assert network.stem(x).shape == (50, 64, 16, 16)
    assert network(x).shape == (50, network.out_features)
    network.whiten(x - x.mean())
    patches = (
        network.get_submodule("stem.0")(x - x.mean()).flatten(2).transpose(0, 1).flatten(1)
    )  # (24, patches)
    second_moments = patches[:12] @ patches[:12].T / patches.shape[1]
    assert torch.allclose(second_moments, torch.eye(12), atol=0.05)


def test_victims_share_the_split_of_the_detectors_of_cifar10() -> None:
    for name in ("cifar10-densenet", "paper-cifar10-resnet34", "paper-cifar10-densenet100"):
        recipe = RECIPES[name]
        assert (recipe.dataset, recipe.seed, recipe.shows.classes) == (
            "cifar10",
            RECIPES["cifar10-invariance"].seed,
            (),
        )
        assert recipe.learns_labels
        assert recipe.shows.transformed == 0


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
