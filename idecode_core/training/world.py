"""This process among those that torchrun started."""

import os
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1

    @staticmethod
    def join() -> "World":
        """Meet the other processes; alone without torchrun."""
        if "RANK" not in os.environ:
            return World()
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return World(torch.distributed.get_rank(), torch.distributed.get_world_size())

    def leave(self) -> None:
        """Part from the others, all at the same time: one that ends while others still talk to it takes them down."""
        if self.size > 1:
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """The one that writes files and speaks to the user."""
        return self.rank == 0
