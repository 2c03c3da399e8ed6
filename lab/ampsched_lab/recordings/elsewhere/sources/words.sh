export LC_ALL=C
cat part0.txt part1.txt part2.txt part3.txt | tr ' ' '\n' | sort | uniq -c | sort -rn >/dev/null
