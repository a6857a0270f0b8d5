/* Variants of a function for different processors: for the baseline and, on x86 with GCC or Clang, for
 * AVX2 and AVX-512.
 *
 * The code is written once and inlined into each variant. When a module is imported, it chooses the best
 * variant that the processor supports, up to the requested level (0 baseline, 1 AVX2, 2 AVX-512).
 */
#ifndef PBOOST_SIMD_H
#define PBOOST_SIMD_H

#if defined(__GNUC__) || defined(__clang__)
#define PBOOST_INLINE static inline __attribute__((always_inline))
#else
#define PBOOST_INLINE static __forceinline
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define PBOOST_APART __attribute__((noinline, noclone))
#elif defined(__clang__)
#define PBOOST_APART __attribute__((noinline))
#else
#define PBOOST_APART
#endif
/* Another thread may be moving the rows that are prefetched. This is harmless, but the thread sanitizer
   would report it. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__SANITIZE_THREAD__)
#define PBOOST_ASK(address) __builtin_prefetch(address)
#else
#define PBOOST_ASK(address) ((void)0)
#endif

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define PBOOST_AVX2 __attribute__((target("avx2,bmi2,popcnt")))
#define PBOOST_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,bmi2,popcnt,prefer-vector-width=512")))

static inline int pboost_simd_level(int most)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return 0;
    if (!__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) most = most < 1 ? most : 1;
    return most < 0 ? 0 : most > 2 ? 2 : most;
}

/* COPY(target, name) defines a variant, and OF(name) refers to it. */
#define PBOOST_COPIES(COPY) COPY(, baseline) COPY(PBOOST_AVX2, avx2) COPY(PBOOST_AVX512, avx512)
#define PBOOST_CHOOSE(choose, type, OF)                                                            \
    static inline type choose(int level)                                                           \
    {                                                                                              \
        const type copies[3] = {OF(baseline), OF(avx2), OF(avx512)};                               \
        return copies[pboost_simd_level(level)];                                                   \
    }
#else
#define PBOOST_COPIES(COPY) COPY(, baseline)
#define PBOOST_CHOOSE(choose, type, OF)                                                            \
    static inline type choose(int level)                                                           \
    {                                                                                              \
        const type only = OF(baseline);                                                            \
        (void)level;                                                                               \
        return only;                                                                               \
    }
#endif
#endif
