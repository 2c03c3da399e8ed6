# redis.sh REQUESTS SECONDS: so many requests, once the server answers, which is asked every so many seconds.
redis-server --port 6399 --save "" --appendonly no --daemonize no --logfile "" >/dev/null &
server=$!
until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep $2; done
redis-benchmark -p 6399 -q -n $1 -c 20 -t set,get >/dev/null
kill $server
wait $server
true
