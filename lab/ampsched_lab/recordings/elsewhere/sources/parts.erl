-module(parts).
-export([main/0, work/1]).

sum(0, Sum) -> Sum;
sum(N, Sum) -> sum(N - 1, (Sum * 31 + N) rem 65521).

work(Main) ->
    receive
        {Part, N} -> Main ! {Part, sum(N, 0)}, work(Main);
        stop -> ok
    end.

main() ->
    Self = self(),
    Workers = [spawn(parts, work, [Self]) || _ <- lists:seq(1, 24)],
    Jobs = lists:zip(lists:seq(1, 72), lists:append([Workers, Workers, Workers])),
    [Worker ! {Part, 40000 + 2000 * Part} || {Part, Worker} <- Jobs],
    Sum = lists:sum([receive {Part, Found} -> Found end || {Part, _} <- Jobs]),
    [Worker ! stop || Worker <- Workers],
    io:format("~p~n", [Sum]),
    halt(0).
