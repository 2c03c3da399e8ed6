"""A pool of four processes: 40 parts of uneven length."""

import multiprocessing


def part(number: int) -> int:
    value = number
    for _ in range(40_000 + 10_000 * (number % 5)):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.imap_unordered(part, range(40))))
