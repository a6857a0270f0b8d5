# Functions that return the child for a value, a bin or a category.
from pboost._core.types cimport uint64_t

cdef extern from "side.h":
    int goes_right "pboost_goes_right"(double value, double threshold) noexcept nogil
    int code_goes_right "pboost_code_goes_right"(int code, int cut_bin) noexcept nogil
    enum: NO_LEVEL "PBOOST_NO_LEVEL"
    int level_of "pboost_level"(double value) noexcept nogil
    int in_set "pboost_in_set"(const uint64_t* subset, int level) noexcept nogil
