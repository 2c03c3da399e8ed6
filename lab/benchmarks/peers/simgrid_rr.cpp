// The peers' round robin in SimGrid (s4u): one actor per core, one execution per slice.
// Usage: simgrid_rr CORES THREADS SIM_MS. Prints a JSON object with the number of slices and the CPU time.
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace
{

constexpr double kSliceS = 1e-3;
constexpr double kFastFlops = 1e9;

// What the cores share.
struct System {
    std::deque<int> queue;
    std::vector<double> work;
    long slices = 0;
};

void run_core(System &system, double end_s)
{
    const double slice_flops = sg4::this_actor::get_host()->get_speed() * kSliceS;
  // Sums of slices are not exact in floating point, so the last one may seem to end a little early.
    while (sg4::Engine::get_clock() < end_s - kSliceS / 2) {
        const int thread = system.queue.front();
        system.queue.pop_front();
        sg4::this_actor::execute(slice_flops);
        system.work[thread] += slice_flops;
        system.slices++;
        system.queue.push_back(thread);
    }
}

double cpu_s()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

}  // namespace

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    if (argc != 4) {
        std::fprintf(stderr, "usage: simgrid_rr CORES THREADS SIM_MS\n");
        return 2;
    }
    const int cores = std::atoi(argv[1]), threads = std::atoi(argv[2]);
    const double end_s = std::atof(argv[3]) / 1e3;
    System system;
    system.work.assign(threads, 0.0);
    for (int thread = 0; thread < threads; ++thread)
        system.queue.push_back(thread);
    auto *zone = sg4::create_full_zone("machine");
    for (int core = 0; core < cores; ++core) {
        auto *host = zone->create_host("core" + std::to_string(core), 2 * core < cores ? kFastFlops : kFastFlops / 2);
        host->seal();
        sg4::Actor::create("core", host, [&system, end_s] { run_core(system, end_s); });
    }
    zone->seal();
    const double start_s = cpu_s();
    engine.run();
    const double used_s = cpu_s() - start_s;
    std::printf("{\"dispatches\": %ld, \"cpu_s\": %.6f, \"version\": \"%d.%d\"}\n", system.slices, used_s,
                SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    return 0;
}
