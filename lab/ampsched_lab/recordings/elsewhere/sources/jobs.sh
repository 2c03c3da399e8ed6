pack() { gzip -c "part$1.txt" | wc -c; }
coproc SORT { sort -n; }
write=${SORT[1]}
exec 4>&"$write" 5<&"${SORT[0]}"
eval "exec $write>&-"
for first in 0 4 8; do
    for n in $first $((first + 1)) $((first + 2)) $((first + 3)); do
        pack $n >&4 &
        jobs[n]=$!
    done
    wait "${jobs[@]:first:4}"
done
exec 4>&-
sum=0
while read -r -u 5 bytes; do sum=$((sum + bytes)); done
echo $sum
