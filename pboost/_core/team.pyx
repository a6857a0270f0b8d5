"""Teams of Python threads that help compiled code."""
from libc.stdint cimport uintptr_t

from pboost._core cimport _team
from pboost._core._team cimport Threads


cdef class Team:
    """The state that the threads of a fit share. Thread 0 is the thread that is helped."""

    cdef Threads team
    cdef readonly int n_threads

    def __cinit__(self, int n_threads):
        if n_threads < 1:
            raise ValueError(f"Team: expected one thread or more, got {n_threads}")
        if not _team.make_team(&self.team, n_threads):
            raise MemoryError
        self.n_threads = n_threads

    def __dealloc__(self):
        _team.end_team(&self.team)

    @property
    def address(self):
        """Address of the team for compiled code. It is valid while this object exists."""
        return <uintptr_t>&self.team

    def serve(self, int who):
        """Run helper thread number `who` until the team is stopped."""
        if not 1 <= who < self.n_threads:
            raise ValueError(f"Team.serve: expected a number from 1 to {self.n_threads - 1}, got {who}")
        with nogil:
            _team.serve(&self.team, who)

    @property
    def joined(self):
        """The number of times that each helper found work."""
        return [_team.joined(&self.team, who) for who in range(1, self.n_threads)]

    def stop(self):
        """Stop the helpers."""
        with nogil:
            _team.stop_team(&self.team)
