"""The watched stream: metrics and the martingale, also after a restart."""

# ruff: noqa: F811  `detector` and `service` are fixtures of another file

import numpy as np
import pytest
from test_serve import IMAGES, Running, detector, png, service  # noqa: F401  fixtures

from idecode_core.conformal.streams import log_simple_jumper, online_p_values, shiryaev_roberts_alarms
from idecode_core.serve.watch import WatchedStream


def test_prometheus_sees_requests_rates_p_values_and_the_martingale(service, detector):
    expected = detector.detect(IMAGES, n=3, epsilon=0.1)
    for pixels in IMAGES:
        service.post(png(pixels))
    found = service.metrics()
    assert found["idecode_requests_total,200"] == found["idecode_request_seconds_count"] == len(IMAGES)
    assert found["idecode_flagged_total"] == expected.is_ood.sum()
    assert found["idecode_flag_rate"] == pytest.approx(expected.is_ood.mean())
    for bound in ("0.1", "0.5", "1.0"):
        assert found[f"idecode_p_value_bucket,{bound}"] == (expected.p_values <= float(bound)).sum()
    calibration = detector.calibration.scores(3)
    watched = service.app.state.service.stream
    assert sorted([*calibration, *expected.scores]) == pytest.approx(watched.ranks.seen)
    assert found["idecode_log_martingale"] == pytest.approx(watched.log_martingale)
    assert found["idecode_log_shiryaev_roberts"] == pytest.approx(watched.log_sum)
    assert found["idecode_stream_points"] == len(IMAGES)


def test_the_watched_stream_goes_point_by_point_where_the_library_takes_a_whole_stream():
    generator = np.random.default_rng(3)
    calibration, stream = generator.integers(0, 30, 40) / 3, generator.integers(0, 60, 80) / 3  # with ties
    watched = WatchedStream(calibration, np.random.default_rng(5), most=80)
    path = [watched.add(score) for score in stream]
    p = online_p_values(calibration, stream, generator=np.random.default_rng(5))
    np.testing.assert_allclose(path, log_simple_jumper(p))
    assert watched.log_sum == pytest.approx(shiryaev_roberts_alarms(p, mean_time=1e300).log_path[-1])
    watched.add(0.0)
    assert (watched.points, len(watched.ranks.seen)) == (1, 41)  # it began again: memory is bounded


def test_the_stream_goes_on_after_a_restart(detector, tmp_path):
    generator = np.random.default_rng(3)
    calibration, stream = generator.normal(size=40), generator.normal(1, 1, 80)
    whole = WatchedStream(calibration, np.random.default_rng(5))
    path = [whole.add(score) for score in stream]
    half = WatchedStream(calibration, first := np.random.default_rng(5))
    for score in stream[:50]:
        half.add(score)
    half.save(tmp_path / "stream.npz")
    other = WatchedStream(calibration, first)
    assert other.resume(tmp_path / "stream.npz")
    assert [other.add(score) for score in stream[50:]] == pytest.approx(path[50:])
    assert other.log_sum == pytest.approx(whole.log_sum)
    assert not WatchedStream(calibration + 1, first).resume(tmp_path / "stream.npz")  # of another calibration
    (tmp_path / "stream.npz").write_bytes(b"torn")
    assert not WatchedStream(calibration, first).resume(tmp_path / "stream.npz")
    for points in (1, 2):  # and the service keeps it
        running = Running(detector, stream_file=tmp_path / "kept.npz")
        assert running.metrics()["idecode_stream_points"] == points - 1  # before the first file comes
        running.post(png(IMAGES[points]))
        running.stop()
        assert running.app.state.service.stream.points == points
