"""Batches in pieces: whatever fits a device, rows come back complete and in order."""

import warnings

import pytest
import torch

from idecode_core.errors import DeviceError, SmallerBatchesWarning
from idecode_core.models.pieces import in_pieces


def fits(most: int, error: type[Exception] = torch.OutOfMemoryError, words: str = "CUDA out of memory."):
    """A network on a device that has room for `most` rows."""
    sizes: list[int] = []

    def network(x: torch.Tensor) -> torch.Tensor:
        sizes.append(len(x))
        if len(x) > most:
            raise error(words)
        return 2 * x

    return network, sizes


@pytest.mark.parametrize("most", [1, 3, 64, 100, 1000])
def test_rows_come_back_complete_and_in_order_whatever_fits(most):
    network, sizes = fits(most)
    x = torch.arange(250.0)[:, None]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal(in_pieces(network, x, 128), 2 * x)
    told = [str(entry.message) for entry in caught if entry.category is SmallerBatchesWarning]
    assert len(told) == sum(size > most for size in sizes)
    assert all("did not suffice" in sentence for sentence in told)


def test_the_processors_memory_counts_too():
    network, _ = fits(
        10, RuntimeError, "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."
    )
    with pytest.warns(SmallerBatchesWarning, match="going on with"):
        assert len(in_pieces(network, torch.zeros(50, 1), 50)) == 50


def test_a_device_without_room_for_one_row_is_one_sentence():
    with (
        pytest.warns(SmallerBatchesWarning),
        pytest.raises(DeviceError, match="does not suffice for one input"),
    ):
        in_pieces(fits(0)[0], torch.zeros(4, 1), 4)


def test_a_lost_device_is_one_sentence():
    network, _ = fits(
        0, RuntimeError, "CUDA error: unspecified launch failure\nCompile with TORCH_USE_CUDA_DSA"
    )
    with pytest.raises(DeviceError, match="stopped answering") as caught:
        in_pieces(network, torch.zeros(4, 1), 4)
    assert "\n" not in str(caught.value)


def test_an_error_of_the_program_is_not_hidden():
    network, _ = fits(0, RuntimeError, "mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        in_pieces(network, torch.zeros(4, 1), 4)
