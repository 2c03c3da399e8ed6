// std::async: twelve calls of uneven length.
#include <cstdint>
#include <cstdio>
#include <future>
#include <vector>

static uint64_t part(int number)
{
    uint64_t value = number;
    for (int round = 0; round < 15000000 + 5000000 * (number % 4); round++) {
        value = (value * 6364136223846793005u + 1442695040888963407u) ^ value >> 17;
    }
    return value;
}

int main()
{
    std::vector<std::future<uint64_t>> parts;
    for (int number = 0; number < 12; number++) {
        parts.push_back(std::async(std::launch::async, part, number));
    }
    uint64_t sum = 0;
    for (auto &each : parts) {
        sum += each.get();
    }
    std::printf("%llu\n", (unsigned long long)sum);
}
