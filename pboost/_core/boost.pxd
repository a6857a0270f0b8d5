# Compiled passes over boosted trees, which multiclass rounds also use.
from pboost._core._boost_leaf cimport WordsPass
from pboost._core._boost_round cimport Passes


cdef Passes choose_passes(int level) noexcept

cdef WordsPass choose_words_pass(int level) noexcept
