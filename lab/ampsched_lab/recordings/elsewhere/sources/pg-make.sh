bin=$(echo /usr/lib/postgresql/*/bin)
rm -rf pg && mkdir pg && chown postgres pg
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
$as $bin/initdb -D pg -A trust --no-sync >/dev/null
$as $bin/pg_ctl -D pg -w -o "-k /tmp -p 6398 -c listen_addresses=" start >/dev/null
$as $bin/pgbench -h /tmp -p 6398 -i -s 1 -q postgres >/dev/null 2>&1
$as $bin/pg_ctl -D pg -w stop >/dev/null
