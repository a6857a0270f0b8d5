"""Split criteria, for Python: their codes. Kernels use the inline functions of criteria.pxd."""
