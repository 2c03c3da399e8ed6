# Computing, sleeping and waking threads, for a third of a second or so. The last line says that all have ended well.
count() {
    i=0
    while [ $i -lt 12000 ]; do i=$((i + 1)); done
    echo counted
}
doze() {
    for _ in 1 2 3 4 5 6 7 8; do sleep 0.01; done
    echo slept
}
ask() {
    exec 3>/run/ask 4</run/answer
    i=0
    while [ $i -lt 100 ]; do
        echo $i >&3
        read -r answer <&4
        [ "$answer" = $i ] || return
        i=$((i + 1))
    done
    echo answered
}
answer() {
    while read -r question; do echo "$question"; done </run/ask >/run/answer
}

mkfifo /run/ask /run/answer
state=/sys/kernel/sched_ext/state
read -r before <$state
{
    answer &
    ask &
    for _ in 1 2 3; do count & done
    for _ in 1 2; do doze & done
    wait
} | sort >/run/did
read -r after <$state
rm /run/ask /run/answer
echo "load $before $after" $(cat /run/did)
