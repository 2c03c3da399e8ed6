gzip -n -6 -c part0.txt part5.txt >/dev/null
cat part1.txt part6.txt part7.txt part8.txt | md5sum
LC_ALL=C sort part2.txt part9.txt >/dev/null
bzip2 -c part3.txt >/dev/null
cat part4.txt part10.txt part11.txt | wc -w
