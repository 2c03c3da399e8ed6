for part in 0 1 2 3 4 5 6 7 8 9 10 11; do echo part$part.txt; done | xargs -n 1 -P 4 gzip -n -6 -c >/dev/null
