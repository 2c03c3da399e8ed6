// TBB with four threads: a sort, and loops over what it has sorted.
#include <cstdint>
#include <cstdio>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#include <vector>

static void work()
{
    std::vector<uint64_t> values(1500000);
    uint64_t value = 1;
    for (auto &each : values) {
        each = value = value * 6364136223846793005u + 1442695040888963407u;
    }
    tbb::parallel_sort(values.begin(), values.end());
    for (int round = 0; round < 5; round++) {
        tbb::parallel_for(size_t(0), values.size(), [&](size_t at) {
            for (int step = 0; step < 20; step++) {
                values[at] = (values[at] ^ values[at] >> 13) * 0x9e3779b97f4a7c15u;
            }
        });
    }
    using range = tbb::blocked_range<size_t>;
    auto sum = tbb::parallel_reduce(
        range(0, values.size()), uint64_t(0),
        [&](const range &part, uint64_t known) {
            for (size_t at = part.begin(); at < part.end(); at++) {
                known += values[at];
            }
            return known;
        },
        [](uint64_t one, uint64_t other) { return one + other; });
    std::printf("%llu\n", (unsigned long long)sum);
}

int main()
{
    // An arena has as many places as there are cores, unless it is told.
    tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
    tbb::task_arena(4).execute(work);
}
