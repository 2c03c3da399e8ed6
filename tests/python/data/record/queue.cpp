// C++: threads, a mutex, a condition variable and an exception in a thread that holds a lock.
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::condition_variable condition;
static int ready, caught;

static void work() {
    try {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return ready > 0; });
        throw std::runtime_error("done");
    } catch (const std::runtime_error &) {
        std::lock_guard<std::mutex> lock(mutex);
        caught++;
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; index++) {
        threads.emplace_back(work);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    {
        std::lock_guard<std::mutex> lock(mutex);
        ready = 1;
    }
    condition.notify_all();
    for (std::thread &thread : threads) {
        thread.join();
    }
    return caught == 3 ? 0 : 1;
}
