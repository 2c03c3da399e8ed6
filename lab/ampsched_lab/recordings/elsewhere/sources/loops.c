/* OpenMP: loops whose parts differ in length, handed out before and while they run. */
#include <stdint.h>
#include <stdio.h>

static uint64_t work(int number)
{
    uint64_t value = number;
    for (int round = 0; round < 10000 + 200 * number; round++) {
        value = (value * 6364136223846793005u + 1442695040888963407u) ^ value >> 17;
    }
    return value;
}

int main(void)
{
    uint64_t sum = 0;
    for (int loop = 0; loop < 20; loop++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int part = 0; part < 100; part++) {
            sum += work(part);
        }
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
        for (int part = 0; part < 100; part++) {
            sum += work(part);
        }
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
