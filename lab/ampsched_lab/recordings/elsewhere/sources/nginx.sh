nginx -p "$PWD" -c nginx.conf -e stderr &
server=$!
until [ -s nginx.pid ]; do sleep 0.02; done
ab -q -n 2400 -c 8 -H "Accept-Encoding: gzip" http://127.0.0.1:6397/page.txt >/dev/null
kill $server
wait $server
true
