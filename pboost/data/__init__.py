"""Prepare X, y and sample weights for training: checks, sorting, binning and encoding."""

from typing import TYPE_CHECKING

from pboost._lazy import lazy_names

if TYPE_CHECKING:
    from pboost.data.columns.bin_and_sort import bin_columns as bin_columns
    from pboost.data.columns.bin_and_sort import sort_columns as sort_columns
    from pboost.data.columns.columns import BinnedColumns as BinnedColumns
    from pboost.data.columns.columns import BinnedValues as BinnedValues
    from pboost.data.columns.columns import SortedColumns as SortedColumns
    from pboost.data.on_disk.bin_files import bin_files as bin_files
    from pboost.data.on_disk.column_folder import FolderError as FolderError
    from pboost.data.on_disk.column_folder import StoredColumns as StoredColumns
    from pboost.data.on_disk.column_folder import open_columns as open_columns
    from pboost.data.read.one_hot_columns import OneHot as OneHot
    from pboost.data.read.one_hot_columns import fit_one_hot as fit_one_hot
    from pboost.data.read.one_hot_columns import one_hot as one_hot
    from pboost.data.targets import balanced_weights as balanced_weights

_NAMES = {
    "pboost.data.columns.columns": "BinnedColumns BinnedValues SortedColumns",
    "pboost.data.columns.bin_and_sort": "bin_columns sort_columns",
    "pboost.data.on_disk.bin_files": "bin_files",
    "pboost.data.on_disk.column_folder": "FolderError StoredColumns open_columns",
    "pboost.data.read.one_hot_columns": "OneHot fit_one_hot one_hot",
    "pboost.data.targets": "balanced_weights",
}

if not TYPE_CHECKING:  # type checkers would otherwise accept any name
    __all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
