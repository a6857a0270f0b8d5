"""Row sources for data in partitions, in this process or on a Dask cluster."""
