import asyncio
import multiprocessing
import zlib
from asyncio import StreamReader, StreamWriter
from multiprocessing.synchronize import Event

PORT, CLIENTS, REQUESTS = 11298, 8, 6


async def answer(reader: StreamReader, writer: StreamWriter) -> None:
    while size := await reader.readline():
        block = await reader.readexactly(int(size))
        packed = zlib.compress(block, 6)
        writer.write(b"%d\n" % len(packed))
        await writer.drain()
    writer.close()


async def ask(number: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    with open(f"part{number}.txt", "rb") as file:
        data = file.read()
    total = 0
    for request in range(REQUESTS):
        block = data[request * 40000 : request * 40000 + 40000]
        writer.write(b"%d\n" % len(block) + block)
        total += int(await reader.readline())
        total += sum(zlib.crc32(block[n:]) & 1 for n in range(0, 400, 4))
    writer.close()
    return total


async def clients() -> int:
    return sum(await asyncio.gather(*(ask(number) for number in range(CLIENTS))))


def serve(ready: Event) -> None:
    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", PORT)
        ready.set()
        async with server:
            await server.serve_forever()

    asyncio.run(main())


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    server = context.Process(target=serve, args=(ready,), daemon=True)
    server.start()
    ready.wait()
    print(asyncio.run(clients()))
    server.terminate()
    server.join()
