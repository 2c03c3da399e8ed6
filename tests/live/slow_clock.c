/* A host whose clock goes five times as slow, for whoever asks it by gettimeofday(). */
#define _GNU_SOURCE
#include <sys/time.h>
#include <time.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec real;
    clock_gettime(CLOCK_MONOTONIC, &real);
    long long slow_us = (real.tv_sec * 1000000LL + real.tv_nsec / 1000) / 5;
    *now = (struct timeval){.tv_sec = slow_us / 1000000, .tv_usec = slow_us % 1000000};
    return 0;
}
