// Threads that do a task each and end: tasks rounds|window|batches N.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

// Some ms: what a busy host takes away from a virtual machine counts as CPU time and must stay a small part.
static unsigned long work()
{
    volatile unsigned long sum = 0;
    for (int i = 0; i < 20000000; i++) {
        sum = sum + i;
    }
    return sum;
}

// N tasks at a time, again and again, as parallel algorithms by hand do.
static void rounds(int n)
{
    for (int round = 0; round < 5; round++) {
        std::vector<std::future<unsigned long>> tasks;
        for (int i = 0; i < n; i++) {
            tasks.push_back(std::async(std::launch::async, work));
        }
        for (auto &task : tasks) {
            task.get();
        }
    }
}

// At most N tasks at a time: the next one begins when the oldest has ended.
static void window(int n)
{
    std::deque<std::future<unsigned long>> tasks;
    for (int i = 0; i < 8 * n; i++) {
        if ((int)tasks.size() == n) {
            tasks.front().get();
            tasks.pop_front();
        }
        tasks.push_back(std::async(std::launch::async, work));
    }
    while (!tasks.empty()) {
        tasks.front().get();
        tasks.pop_front();
    }
}

// Two threads take turns with batches; for each of them they start N threads, which share it without a lock (as
// aligners of reads do).
static void batches(int n)
{
    std::mutex mutex;
    std::condition_variable moved;
    int turn = 0;
    auto stage = [&](int own) {
        for (int batch = own; batch < 6; batch += 2) {
            std::unique_lock<std::mutex> lock(mutex);
            moved.wait(lock, [&] { return turn == batch; });
            lock.unlock();
            std::vector<std::thread> threads;
            for (int i = 0; i < n; i++) {
                threads.emplace_back(work);
            }
            for (auto &thread : threads) {
                thread.join();
            }
            lock.lock();
            turn++;
            moved.notify_all();
        }
    };
    std::thread one(stage, 0), two(stage, 1);
    one.join();
    two.join();
}

int main(int argc, char **argv)
{
    int n = argc == 3 ? atoi(argv[2]) : 2;
    if (!strcmp(argv[1], "rounds")) {
        rounds(n);
    } else if (!strcmp(argv[1], "window")) {
        window(n);
    } else {
        batches(n);
    }
}
