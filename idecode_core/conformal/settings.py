"""How points are judged: the one settings object that library, commands, app, service, cluster and session share."""

from dataclasses import dataclass

from idecode_core.conformal.calibration import Aggregate, chosen_n
from idecode_core.conformal.conditional import corrected_epsilon
from idecode_core.conformal.ranking import check_epsilon


@dataclass(frozen=True)
class Settings:
    """n draws per point, F, and what p-values are compared with."""

    n: int | None = None
    """5 if it is left out, or 1 for a detector without random draws."""
    epsilon: float = 0.05
    delta: float | None = None
    """With one: the rate is at most epsilon for a share 1 - delta of all calibration sets, else on average."""
    aggregate: str | Aggregate = "sum"
    seed: int = 0
    smoothed: bool = False

    def draws(self, n_max: int, name: str = "this detector") -> int:
        """n as it will be used; SettingError where the calibration has fewer draws.

        >>> Settings().draws(20), Settings().draws(1), Settings(n=7).draws(20)
        (5, 1, 7)
        """
        return chosen_n(self.n, n_max, name)

    def cut(self, k: int) -> float:
        """What p-values are compared with: epsilon, or the smaller one that delta asks for with k calibration points.

        >>> Settings(epsilon=0.05).cut(1000), round(Settings(epsilon=0.05, delta=0.1).cut(1000), 4)
        (0.05, 0.042)
        """
        if self.delta is not None:
            return corrected_epsilon(k, self.epsilon, self.delta)
        check_epsilon(self.epsilon, k)
        return self.epsilon
