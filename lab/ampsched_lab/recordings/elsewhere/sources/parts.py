"""joblib: 24 parts of uneven length in four processes."""

from joblib import Parallel, delayed


def part(number: int) -> int:
    value = number
    for _ in range(40_000 + 20_000 * (number % 3)):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


if __name__ == "__main__":
    print(sum(Parallel(n_jobs=4, batch_size=1)(delayed(part)(number) for number in range(24))))
