/* OpenMP: 10 regions of two threads with a barrier, 64 chunks and a critical section each; 8 tasks in another one. */
#include <stdio.h>

int main(void) {
    long sum = 0;
    int tasks = 0;
    for (int round = 0; round < 10; round++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp for schedule(dynamic, 1)
            for (int index = 0; index < 64; index++) {
#pragma omp atomic
                sum += index;
            }
#pragma omp critical
            sum++;
#pragma omp barrier
        }
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int index = 0; index < 8; index++) {
        double far[3] = {index, 1, 2};
#pragma omp task firstprivate(far, index)
        {
#pragma omp atomic
            tasks += (int)far[0] == index && far[2] == 2;
        }
    }
    printf("%ld %d\n", sum, tasks);
    return sum == 10 * (63 * 64 / 2 + 2) && tasks == 8 ? 0 : 1;
}
