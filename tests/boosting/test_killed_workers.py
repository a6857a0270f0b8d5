"""A worker of Dask that is killed in the middle of a fit; more of them by `killed_workers`."""

import pytest

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.array")

import killed_workers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.mark.full
def test_a_killed_worker_costs_time_and_nothing_else():
    killed = []

    def kill(step, record):
        if step == 10:
            killed.append(fits.pids()[0])
            killed_workers.kill(killed[0])

    with killed_workers.started() as cluster, distributed.Client(cluster):
        fits = killed_workers.Fits(cluster, "fit_adaboost", steps=30, n=1000, d=4)
        assert fits.fit(kill) == fits.want
        assert killed[0] not in fits.pids()
