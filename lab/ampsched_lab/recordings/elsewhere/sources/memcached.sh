memcached -u root -p 11299 -l 127.0.0.1 -t 4 >/dev/null 2>&1 &
server=$!
until memcping --servers=127.0.0.1:11299 >/dev/null 2>&1; do sleep 0.02; done
memcslap --servers=127.0.0.1:11299 --concurrency=4 --execute-number=1500 --test=set >/dev/null
kill $server
wait $server
true
