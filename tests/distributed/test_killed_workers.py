"""Workers of Dask that are killed or stopped in the middle of a fit; more by `killed_workers`.

Slow: workers are processes.
"""

import os
import signal

import pytest

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.array")

import killed_workers  # noqa: E402

from pboost.distributed import dask_engine  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.mark.full
def test_killed_and_stopped_workers_cost_time_and_nothing_else(monkeypatch):
    """A killed worker breaks its connections; a stopped one does not answer, and Dask waits."""
    hit = []

    def kill(step, record):
        if step == 10:
            hit.append(fits.pids()[0])
            killed_workers.kill(hit[0])

    def stop(step, record):
        if step == 10:
            hit.append(fits.pids()[1])
            os.kill(hit[1], signal.SIGSTOP)
            monkeypatch.setattr(dask_engine, "PATIENCE", 4.0)
        if step == 11:
            monkeypatch.undo()
            os.kill(hit[1], signal.SIGCONT)

    with killed_workers.started() as cluster, distributed.Client(cluster) as client:
        fits = killed_workers.Fits(cluster, "fit_adaboost", steps=30, n=1000, d=4)
        assert fits.fit(kill) == fits.want
        assert hit[0] not in fits.pids()
        fits.wait_for_workers(client)
        assert fits.fit(stop) == fits.want
