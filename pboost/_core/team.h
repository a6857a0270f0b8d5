/* Threads that help one thread with its work, without the GIL.
 *
 * A thread offers work by opening a post, which stores a function and its task. While the post is open,
 * any thread of the team may call the function, which processes parts of the task until none is left.
 * The thread that opened the post also processes parts. Then it closes the post and waits for the
 * threads that are still processing parts. Post 0 is for whole tasks, and post 1 + who is for parts of
 * the work of thread `who`. Thread 0 is the thread that is helped.
 *
 * A helper thread without work spins for PBOOST_SPIN microseconds, then sleeps until it is woken. Helper
 * threads are created in Python and run `pboost_serve`.
 */
#ifndef PBOOST_TEAM_H
#define PBOOST_TEAM_H
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PBOOST_SPIN 50 /* time without work after which a thread sleeps, in microseconds */
#define PBOOST_LINE 128 /* size in bytes that prevents false sharing of cache lines */

typedef int32_t pboost_flag;

/* Sequentially consistent atomic operations. */
#if defined(__GNUC__) || defined(__clang__)
#define PBOOST_LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define PBOOST_SWAP(p, value) __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)
#define PBOOST_PLUS(p, value) __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST)
#if defined(__x86_64__) || defined(__i386__)
#define PBOOST_PAUSE() __builtin_ia32_pause()
#else
#define PBOOST_PAUSE() ((void)0)
#endif
#else
#include <intrin.h>
#define PBOOST_LOAD(p) ((pboost_flag)_InterlockedOr((volatile long *)(p), 0))
#define PBOOST_SWAP(p, value) ((pboost_flag)_InterlockedExchange((volatile long *)(p), value))
#define PBOOST_PLUS(p, value) ((pboost_flag)_InterlockedExchangeAdd((volatile long *)(p), value))
#define PBOOST_PAUSE() ((void)0)
#endif

/* A function that processes parts of `task` on thread `who`, and returns whether it processed any part. */
typedef int (*pboost_work)(void *task, int who);

typedef union {
    struct {
        pboost_flag is_open, inside;
        pboost_work work;
        void *task;
    };
    char line[PBOOST_LINE];
} pboost_post;

typedef union {
    struct {
        pboost_flag is_asleep, n_joined; /* number of times that the thread found work */
        PyThread_type_lock lock; /* locked except while the thread is being woken */
    };
    char line[PBOOST_LINE];
} pboost_place;

typedef struct {
    int n_threads;
    pboost_flag stop, asleep; /* whether helpers must return; number of sleeping helpers */
    pboost_flag calls;        /* counter that is increased when work may have arrived */
    pboost_post *post;
    pboost_place *place;
} pboost_team;

static inline int pboost_make_team(pboost_team *team, int n_threads)
{
    memset(team, 0, sizeof *team);
    team->n_threads = n_threads;
    team->post = (pboost_post *)calloc((size_t)n_threads + 1, sizeof(pboost_post));
    team->place = (pboost_place *)calloc((size_t)n_threads, sizeof(pboost_place));
    if (!team->post || !team->place) return 0;
    for (int k = 0; k < n_threads; k++) {
        team->place[k].lock = PyThread_allocate_lock();
        if (!team->place[k].lock) return 0;
        PyThread_acquire_lock(team->place[k].lock, 1);
    }
    return 1;
}

static inline void pboost_end_team(pboost_team *team)
{
    for (int k = 0; team->place && k < team->n_threads; k++)
        if (team->place[k].lock) {
            PyThread_release_lock(team->place[k].lock);
            PyThread_free_lock(team->place[k].lock);
        }
    free(team->post);
    free(team->place);
}

/* A wait that may end in a sleep: its start, and the number of pauses so far. */
typedef struct {
    uint64_t since;
    int pauses;
} pboost_wait;

static inline uint64_t pboost_microseconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* Pause briefly and return whether the thread has waited long enough to sleep. It also returns true if the
   clock was set back. */
static inline int pboost_pause(pboost_wait *wait)
{
    PBOOST_PAUSE();
    if (++wait->pauses & 31) return 0;
    const uint64_t now = pboost_microseconds();
    if (wait->pauses == 32) wait->since = now;
    return now - wait->since >= PBOOST_SPIN;
}

static inline void pboost_nap(pboost_team *team, int who)
{
    PyThread_acquire_lock_timed(team->place[who].lock, PBOOST_SPIN, 0); /* waits for PBOOST_SPIN
                                                                           microseconds */
}

/* Acquire a lock that is held for a few instructions only. The thread that holds it may have been
   suspended by the system. */
static inline void pboost_lock(pboost_flag *lock)
{
    while (PBOOST_SWAP(lock, 1))
        for (int k = 0; k < 10000 && PBOOST_LOAD(lock); k++) PBOOST_PAUSE();
}

static inline void pboost_unlock(pboost_flag *lock) { PBOOST_SWAP(lock, 0); }

/* Wake the sleeping helpers, because there is new work. */
static inline void pboost_wake(pboost_team *team)
{
    PBOOST_PLUS(&team->calls, 1);
    if (!PBOOST_LOAD(&team->asleep)) return;
    for (int k = 1; k < team->n_threads; k++)
        if (PBOOST_LOAD(&team->place[k].is_asleep) && PBOOST_SWAP(&team->place[k].is_asleep, 0))
            PyThread_release_lock(team->place[k].lock);
}

static inline void pboost_open_post(pboost_team *team, int at, pboost_work work, void *task)
{
    team->post[at].work = work;
    team->post[at].task = task;
    PBOOST_SWAP(&team->post[at].is_open, 1);
    pboost_wake(team);
}

static inline void pboost_close_post(pboost_team *team, int at, int who)
{
    pboost_wait wait = {0, 0};
    PBOOST_SWAP(&team->post[at].is_open, 0);
    while (PBOOST_LOAD(&team->post[at].inside))
        if (pboost_pause(&wait)) pboost_nap(team, who);
}

/* Work on the tasks of open posts, beginning with number `first`. Return whether any part was processed. */
static inline int pboost_help(pboost_team *team, int who, int first)
{
    int did = 0;
    for (int at = first; at <= team->n_threads; at++) {
        pboost_post *post = team->post + at;
        if (at == 1 + who || !PBOOST_LOAD(&post->is_open)) continue;
        PBOOST_PLUS(&post->inside, 1); /* while a thread is counted here, an open task is valid */
        if (PBOOST_LOAD(&post->is_open)) did |= post->work(post->task, who);
        PBOOST_PLUS(&post->inside, -1);
    }
    return did;
}

static inline void pboost_sleep(pboost_team *team, int who, pboost_flag calls)
{
    pboost_place *place = team->place + who;
    PBOOST_SWAP(&place->is_asleep, 1);
    PBOOST_PLUS(&team->asleep, 1);
    /* Work may have arrived just before the flag was set. A thread that clears the flag also releases
       the lock. */
    if (PBOOST_LOAD(&team->calls) == calls || !PBOOST_SWAP(&place->is_asleep, 0))
        PyThread_acquire_lock(place->lock, 1);
    PBOOST_PLUS(&team->asleep, -1);
}

/* Run a helper thread until the team is stopped. */
static inline void pboost_serve(pboost_team *team, int who)
{
    pboost_wait wait = {0, 0};
    for (;;) {
        /* Read `calls` before `stop`, because stopping counts as new work. */
        const pboost_flag calls = PBOOST_LOAD(&team->calls);
        if (PBOOST_LOAD(&team->stop)) return;
        if (pboost_help(team, who, 0)) {
            PBOOST_PLUS(&team->place[who].n_joined, 1);
            wait.pauses = 0;
        } else if (pboost_pause(&wait)) {
            pboost_sleep(team, who, calls);
            wait.pauses = 0;
        }
    }
}

static inline int pboost_joined(pboost_team *team, int who)
{
    return PBOOST_LOAD(&team->place[who].n_joined);
}

static inline void pboost_stop_team(pboost_team *team)
{
    PBOOST_SWAP(&team->stop, 1);
    pboost_wake(team);
}

/* ------------------------------------------------------------------------------------------ */
/* Ranges of length `step` that cover 0..n. Each range is processed by the first free thread. */

typedef void (*pboost_part)(void *task, ptrdiff_t start, ptrdiff_t stop);

typedef struct {
    pboost_part part;
    void *task;
    ptrdiff_t n, step;
    pboost_flag next, n_parts;
} pboost_ranges;

static inline int pboost_take_ranges(void *task, int who)
{
    pboost_ranges *ranges = (pboost_ranges *)task;
    int did = 0;
    (void)who;
    while (PBOOST_LOAD(&ranges->next) < ranges->n_parts) {
        const ptrdiff_t start = PBOOST_PLUS(&ranges->next, 1) * ranges->step;
        const ptrdiff_t stop = start + ranges->step < ranges->n ? start + ranges->step : ranges->n;
        if (start >= stop) break;
        ranges->part(ranges->task, start, stop);
        did = 1;
    }
    return did;
}

/* Call part(task, start, stop) for ranges that cover 0..n. Without helpers, or if n <= step, there is a
   single call for the whole range. */
static inline void pboost_run_ranges(
    pboost_team *team, int who, ptrdiff_t n, ptrdiff_t step, pboost_part part, void *task)
{
    if (!team || n <= step) {
        part(task, 0, n);
        return;
    }
    while (n / step >= 1 << 20) step *= 2;
    pboost_ranges ranges = {part, task, n, step, 0, (pboost_flag)((n + step - 1) / step)};
    pboost_open_post(team, 1 + who, pboost_take_ranges, &ranges);
    pboost_take_ranges(&ranges, who);
    pboost_close_post(team, 1 + who, who);
}
#endif
