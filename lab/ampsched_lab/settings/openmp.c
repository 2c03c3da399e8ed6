/* Programs on OpenMP, as people write them: `openmp KIND THREADS`. Each does some 150 million instructions however
 * many threads it has. plan.py says what each stands for. */
#include <omp.h>

#include "work.h"

/* layers: as models of language are evaluated. In each layer of each token a matrix is multiplied by a vector, its
 * rows in equal parts, and all wait at a barrier, which spins before it sleeps. */
#define TOKENS 12
#define LAYERS 24
#define SIZE 320

static float matrix[SIZE][SIZE], vectors[2][SIZE];

static void multiply(const float *from, float *to, int first, int last)
{
    for (int row = first; row < last; row++) {
        float sum = 0;
        for (int i = 0; i < SIZE; i++)
            sum += matrix[row][i] * from[i];
        to[row] = sum;
    }
}

static void layers(int threads)
{
    for (int i = 0; i < SIZE; i++) {
        vectors[0][i] = 1.0F;
        matrix[i][i] = 1.0F;
    }
#pragma omp parallel num_threads(threads)
    for (int step = 0; step < TOKENS * LAYERS; step++) {
        int own = omp_get_thread_num(), all = omp_get_num_threads();
        multiply(vectors[step % 2], vectors[1 - step % 2], SIZE * own / all, SIZE * (own + 1) / all);
#pragma omp barrier
    }
    check(vectors[0][0] == 1.0F, "layers: wrong");
}

/* fixed: loops over equal iterations in equal parts (schedule(static), what compilers do if nothing is said). */
#define LOOPS 16
#define ITERATIONS 480
#define ITERATION_STEPS 4900

static void fixed(int threads)
{
    for (int loop = 0; loop < LOOPS; loop++) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int i = 0; i < ITERATIONS; i++)
            compute(ITERATION_STEPS);
    }
}

/* taken: loops over unequal iterations that threads take one by one (schedule(dynamic)). */
#define UNEQUAL 96
#define UNEQUAL_STEPS 24500

static void taken(int threads)
{
    for (int loop = 0; loop < LOOPS; loop++) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
        for (int i = 0; i < UNEQUAL; i++)
            compute(uneven(UNEQUAL_STEPS, (uint64_t)(loop * UNEQUAL + i)));
    }
}

/* stencil: each point of a grid of 8 MB becomes the mean of its neighbours, sweep by sweep, rows in equal parts. */
#define SIDE 720
#define SWEEPS 24

static double grids[2][SIDE][SIDE];

static void sweep(const double from[SIDE][SIDE], double to[SIDE][SIDE], int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int row = 1; row < SIDE - 1; row++)
        for (int i = 1; i < SIDE - 1; i++)
            to[row][i] = 0.25 * (from[row - 1][i] + from[row + 1][i] + from[row][i - 1] + from[row][i + 1]);
}

static void stencil(int threads)
{
    for (int i = 0; i < SIDE; i++)
        grids[0][0][i] = grids[1][0][i] = 1.0;
    for (int number = 0; number < SWEEPS; number++)
        sweep(grids[number % 2], grids[1 - number % 2], threads);
    check(grids[SWEEPS % 2][1][SIDE / 2] > 0, "stencil: wrong");
}

int main(int argc, char **argv)
{
    static const struct kind kinds[] = {
        {"layers", layers}, {"fixed", fixed}, {"taken", taken}, {"stencil", stencil}, {NULL, NULL},
    };
    return run_kind(argc, argv, kinds);
}
