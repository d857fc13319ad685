"""DenseNets: their shape is the publication's, and layers hand on what came before."""

import torch
from torch import nn

from idecode_core.models.backbones import GROWTH, CompactDenseNet, DenseLayer, Transition, densenet100
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
