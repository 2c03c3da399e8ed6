bin=$(echo /usr/lib/postgresql/*/bin)
chown -R postgres pg
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
$as $bin/postgres -D pg -k /tmp -p 6398 -c listen_addresses= -c fsync=off -c max_parallel_workers=0 >/dev/null 2>&1 &
server=$!
until $as $bin/pg_isready -q -h /tmp -p 6398; do kill -0 $server || exit 1; sleep 0.02; done
$as $bin/pgbench -h /tmp -p 6398 -n -S -c 4 -j 2 -t 800 postgres >/dev/null 2>&1
kill $server
wait $server
true
