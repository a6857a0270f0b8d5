# On which side of a threshold a value lies, and on which side of a cut between bins a row.

cdef extern from "side.h":
    int goes_right "pboost_goes_right"(double value, double threshold) noexcept nogil
    int code_goes_right "pboost_code_goes_right"(int code, int cut_bin) noexcept nogil
