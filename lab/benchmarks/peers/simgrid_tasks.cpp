// FIFO list scheduling of a task graph in SimGrid (s4u): activities without actors, created when they start.
// Usage: simgrid_tasks FILE.csv. Four hosts of 10 flop/s and four of 4; a line is id,work,kind,dep;dep.
// Prints a JSON object with the number of tasks, the CPU time without reading, and the makespan.
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cstdio>
#include <ctime>
#include <deque>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace
{

constexpr int kFastHosts = 4, kHosts = 8;
constexpr double kFastFlops = 10.0, kSlowFlops = 4.0;

struct Graph {
    std::vector<double> work;
    std::vector<std::vector<int>> successors;
    std::vector<int> missing;
};

Graph read(const char *file)
{
    Graph graph;
    std::ifstream input(file);
    for (std::string line; std::getline(input, line);) {
        std::stringstream fields(line);
        std::string id, work, kind, before, link;
        std::getline(fields, id, ',');
        std::getline(fields, work, ',');
        std::getline(fields, kind, ',');
        std::getline(fields, before, ',');
        const int task = static_cast<int>(graph.work.size());
        graph.work.push_back(std::stod(work));
        graph.successors.emplace_back();
        graph.missing.push_back(0);
        std::stringstream links(before);
        while (std::getline(links, link, ';')) {
            graph.successors[std::stoi(link)].push_back(task);
            graph.missing[task]++;
        }
    }
    return graph;
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
    if (argc != 2) {
        std::fprintf(stderr, "usage: simgrid_tasks FILE.csv\n");
        return 2;
    }
    auto *zone = sg4::create_full_zone("machine");
    std::vector<sg4::Host *> hosts;
    std::unordered_map<const sg4::Host *, int> number_of;
    for (int host = 0; host < kHosts; ++host) {
        hosts.push_back(zone->create_host("core" + std::to_string(host), host < kFastHosts ? kFastFlops : kSlowFlops));
        hosts.back()->seal();
        number_of[hosts.back()] = host;
    }
    zone->seal();
    Graph graph = read(argv[1]);
    const double start_s = cpu_s();
    std::deque<int> ready;
    std::set<int> idle;
    for (int host = 0; host < kHosts; ++host)
        idle.insert(host);
    std::unordered_map<const sg4::Activity *, std::pair<int, sg4::ExecPtr>> running;
    std::size_t ended = 0;
    const std::function<void()> feed = [&] {
        while (!ready.empty() && !idle.empty()) {
            const int task = ready.front(), host = *idle.begin();
            ready.pop_front();
            idle.erase(idle.begin());
            sg4::ExecPtr execution = sg4::Exec::init();
            execution->set_flops_amount(graph.work[task]);
            execution->set_host(hosts[host]);
            running[execution.get()] = {task, execution};
            execution->start();
        }
    };
    sg4::Activity::on_completion_cb([&](const sg4::Activity &activity) {
        const auto found = running.find(&activity);
        const auto [task, execution] = found->second;
        running.erase(found);
        idle.insert(number_of[execution->get_host()]);
        ended++;
        for (int next : graph.successors[task])
            if (--graph.missing[next] == 0)
                ready.push_back(next);
        feed();
    });
    for (std::size_t task = 0; task < graph.work.size(); ++task)
        if (graph.missing[task] == 0)
            ready.push_back(static_cast<int>(task));
    feed();
    engine.run();
    const double used_s = cpu_s() - start_s;
    if (ended != graph.work.size()) {
        std::fprintf(stderr, "simgrid_tasks: %zu of %zu tasks ended\n", ended, graph.work.size());
        return 1;
    }
    std::printf("{\"dispatches\": %zu, \"cpu_s\": %.6f, \"makespan_s\": %.6f, \"version\": \"%d.%d\"}\n", ended, used_s,
                sg4::Engine::get_clock(), SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    return 0;
}
