"""Saving and loading of models."""

import os
import shutil
import tempfile

import numpy as np

import pboost as pb

from .common import additive


class Files:
    params = ([100, 3_000],)
    param_names = ("n_nodes",)

    def setup_cache(self):
        X, _ = additive(10_000, 20)
        # Random classes, so that the tree needs thousands of nodes.
        return X, np.random.default_rng(5).integers(0, 2, len(X))

    def setup(self, data, n_nodes):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "model.npz")
        self.model = pb.fit_boosted_tree(*data, max_nodes=n_nodes)
        pb.save(self.model, self.path)

    def teardown(self, data, n_nodes):
        shutil.rmtree(self.folder)

    def time_save(self, data, n_nodes):
        pb.save(self.model, self.path)

    def time_load(self, data, n_nodes):
        pb.load(self.path)

    def track_save(self, data, n_nodes):
        pb.save(self.model, self.path)
        return os.path.getsize(self.path)

    track_save.unit = "bytes"
