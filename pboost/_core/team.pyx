"""Helpers that work on what compiled code posts; their threads are made by Python."""
from libc.stdint cimport uintptr_t

from pboost._core cimport _team
from pboost._core._team cimport Threads


cdef class Team:
    """What the threads of one fit have in common; number 0 is the one that is helped."""

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
        """Where compiled code finds the team, for as long as this object lives."""
        return <uintptr_t>&self.team

    def serve(self, int who):
        """Help, as number `who`, until the team is told to stop."""
        if not 1 <= who < self.n_threads:
            raise ValueError(f"Team.serve: expected a number from 1 to {self.n_threads - 1}, got {who}")
        with nogil:
            _team.serve(&self.team, who)

    @property
    def joined(self):
        """How often each helper has found work."""
        return [_team.joined(&self.team, who) for who in range(1, self.n_threads)]

    def stop(self):
        """Have the helpers leave."""
        with nogil:
            _team.stop_team(&self.team)
