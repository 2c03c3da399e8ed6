/* OpenMP: tasks that make tasks, and work at their ends. */
#include <stdint.h>
#include <stdio.h>

static uint64_t work(int number)
{
    uint64_t value = number;
    for (int round = 0; round < 200000 + 30000 * (number % 7); round++) {
        value = (value * 6364136223846793005u + 1442695040888963407u) ^ value >> 17;
    }
    return value;
}

static uint64_t tree(int number, int depth)
{
    if (depth == 0) {
        return work(number);
    }
    uint64_t left, right;
#pragma omp task shared(left)
    left = tree(2 * number, depth - 1);
#pragma omp task shared(right)
    right = tree(2 * number + 1, depth - 1);
#pragma omp taskwait
    return left + right;
}

int main(void)
{
    uint64_t sum;
#pragma omp parallel
#pragma omp single
    sum = tree(1, 9);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
