"""Rows in partitions, in this process or on a Dask cluster, as sources of rows for builders."""
