/* What this machine needs for the inner loops of split searches, and nothing else.
 *
 * cc -O3 -march=native -shared -fPIC floor.c
 *
 * Codes and orders are stored column by column: d columns of n entries. Each function goes over
 * all cells once and returns a number that depends on all of them, so that nothing is left out.
 */
#include <stdint.h>
#include <string.h>

#define BINS 256
#define TABLES 4

typedef double pair __attribute__((vector_size(16)));

/* Two float64 sums per bin: one 16-byte add per cell, in tables that do not wait for each other. */
double histogram_pairs(int64_t n, int64_t d, const uint8_t *codes, const double *sums) {
    static pair table[TABLES][BINS];
    double kept = 0;
    for (int64_t j = 0; j < d; j++) {
        const uint8_t *code = codes + j * n;
        memset(table, 0, sizeof table);
        for (int64_t i = 0; i + TABLES <= n; i += TABLES) {
            for (int t = 0; t < TABLES; t++) {
                pair value;
                memcpy(&value, sums + 2 * (i + t), sizeof value);
                table[t][code[i + t]] += value;
            }
        }
        for (int t = 0; t < TABLES; t++)
            for (int b = 0; b < BINS; b++) kept += table[t][b][0] - table[t][b][1];
    }
    return kept;
}

/* One int64 sum per bin. */
double histogram_int64(int64_t n, int64_t d, const uint8_t *codes, const int64_t *sums) {
    static int64_t table[TABLES][BINS];
    double kept = 0;
    for (int64_t j = 0; j < d; j++) {
        const uint8_t *code = codes + j * n;
        memset(table, 0, sizeof table);
        for (int64_t i = 0; i + TABLES <= n; i += TABLES)
            for (int t = 0; t < TABLES; t++) table[t][code[i + t]] += sums[i + t];
        for (int t = 0; t < TABLES; t++)
            for (int b = 0; b < BINS; b++) kept += (double)table[t][b];
    }
    return kept;
}

/* Every cut of the sorted order, by one signed float64 sum: its extremes are the best cuts. */
double presorted_scan(int64_t n, int64_t d, const int32_t *orders, const double *sums) {
    double kept = 0;
    for (int64_t j = 0; j < d; j++) {
        const int32_t *order = orders + j * n;
        double sum = 0, most = 0, least = 0;
        int64_t at_most = 0, at_least = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += sums[order[i]];
            if (sum > most) { most = sum; at_most = i; }
            if (sum < least) { least = sum; at_least = i; }
        }
        kept += most - least + (double)(at_most + at_least);
    }
    return kept;
}
