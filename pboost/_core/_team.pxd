# Threads that help with a fit; see team.h. The team is NULL if there is only one thread.
from pboost._core.types cimport int32_t

cdef extern from "team.h" nogil:
    ctypedef bint (*Work "pboost_work")(void* task, int who) noexcept nogil
    ctypedef void (*Part "pboost_part")(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    ctypedef struct Threads "pboost_team":
        int n_threads
        int32_t asleep
    ctypedef struct Wait "pboost_wait":
        pass
    bint make_team "pboost_make_team"(Threads* team, int n_threads)
    void end_team "pboost_end_team"(Threads* team)
    void serve "pboost_serve"(Threads* team, int who)
    void stop_team "pboost_stop_team"(Threads* team)
    int joined "pboost_joined"(Threads* team, int who)
    void wake "pboost_wake"(Threads* team)
    void open_post "pboost_open_post"(Threads* team, int at, Work work, void* task)
    void close_post "pboost_close_post"(Threads* team, int at, int who)
    bint help "pboost_help"(Threads* team, int who, int first)
    bint pause "pboost_pause"(Wait* wait)
    void nap "pboost_nap"(Threads* team, int who)
    void lock "pboost_lock"(int32_t* flag)
    void unlock "pboost_unlock"(int32_t* flag)
    int32_t load "PBOOST_LOAD"(int32_t* flag)
    int32_t plus "PBOOST_PLUS"(int32_t* flag, int32_t value)
    void run_ranges "pboost_run_ranges"(
        Threads* team, int who, Py_ssize_t n, Py_ssize_t step, Part part, void* task)

cdef enum:
    SHARE = 8192  # approximate number of rows that a thread takes at a time


cdef inline Threads* team_at(size_t address) noexcept nogil:
    return <Threads*>address
