"""A wire between instances and a server that delays, stalls, swallows and breaks.

    proxy.py LISTEN TARGET            Unix sockets; a process of its own, so that it costs others
                                      no time. Obeys lines on stdin, answers each with one of JSON:

    delay UP DOWN    milliseconds, to the server and back
    stall WHICH      up, down or both: nothing arrives until `heal`, and then all of it does
    swallow WHICH    the same, but what was sent meanwhile is lost, and so is the connection
    lossy SHARE      of the replies: a part of it arrives, or nothing, and the connection breaks
    cut              breaks all connections
    heal             ends all of these
    count            only answers
The answer counts since the beginning: bytes each way, commands, connections, breaks.
"""

import asyncio
import json
import os
import random
import subprocess
import sys


class CommandCounter:
    """Counts commands in a stream of requests, however it is cut into pieces."""

    def __init__(self):
        self.rest = b''
        self.words = 0  # of the command that has begun, still to come
        self.skip = 0   # bytes of a word that has begun
        self.seen = 0

    def feed(self, data):
        data = self.rest + data
        at = 0
        while at < len(data):
            if self.skip:
                step = min(self.skip, len(data) - at)
                self.skip -= step
                at += step
                if self.skip == 0:
                    self.words -= 1
                continue
            end = data.find(b'\r\n', at)
            if end < 0:
                break
            if self.words == 0:
                self.words = int(data[at + 1:end])
                self.seen += 1
            else:
                self.skip = int(data[at + 1:end]) + 2
            at = end + 2
        self.rest = data[at:]


class Wire:
    def __init__(self, target):
        self.target = target
        self.delays = {'up': 0.0, 'down': 0.0}
        self.stalled = set()
        self.swallowing = set()
        self.lossy = 0.0
        self.healed = asyncio.Event()
        self.random = random.Random(int(os.environ.get('TRINCO_FLEET_SEED', '1')))
        self.writers = set()
        self.counts = {'up': 0, 'down': 0, 'commands': 0, 'connections': 0, 'breaks': 0}

    async def connected(self, reader, writer):
        self.counts['connections'] += 1
        try:
            to_reader, to_writer = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.close()
            return
        self.writers |= {writer, to_writer}
        ways = [asyncio.create_task(self.carry('up', reader, to_writer)),
                asyncio.create_task(self.carry('down', to_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # the proxy ends
        for one in (writer, to_writer):
            one.transport.abort()
            self.writers.discard(one)
        for way in ways:
            way.cancel()

    async def carry(self, which, reader, writer):
        counter = CommandCounter() if which == 'up' else None
        queue = asyncio.Queue()
        sender = asyncio.create_task(self.send(which, queue, writer))
        try:
            while data := await reader.read(65536):
                self.counts[which] += len(data)
                if counter:
                    before = counter.seen
                    counter.feed(data)
                    self.counts['commands'] += counter.seen - before
                queue.put_nowait((asyncio.get_running_loop().time() + self.delays[which], data))
            await queue.join()
        except OSError:
            pass
        finally:
            sender.cancel()

    async def send(self, which, queue, writer):
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            while which in self.stalled:
                await self.healed.wait()
            if which in self.swallowing:
                while which in self.swallowing:
                    await self.healed.wait()
                writer.transport.abort()
                return
            if which == 'down' and self.random.random() < self.lossy:
                self.counts['breaks'] += 1
                writer.write(data[:self.random.randrange(len(data))])
                await writer.drain()
                writer.transport.abort()
                return
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return
            finally:
                queue.task_done()

    def obey(self, words):
        name, rest = words[0], words[1:]
        both = {'up', 'down'}
        if name == 'delay':
            self.delays = {'up': float(rest[0]) / 1000, 'down': float(rest[1]) / 1000}
        elif name == 'stall':
            self.stalled = both if rest[0] == 'both' else {rest[0]}
        elif name == 'swallow':
            self.swallowing = both if rest[0] == 'both' else {rest[0]}
        elif name == 'lossy':
            self.lossy = float(rest[0])
        elif name == 'cut':
            for one in list(self.writers):
                one.transport.abort()
        elif name == 'heal':
            self.delays = {'up': 0.0, 'down': 0.0}
            self.stalled, self.swallowing, self.lossy = set(), set(), 0.0
            self.healed.set()
            self.healed = asyncio.Event()


async def serve(listen, target):
    wire = Wire(target)
    server = await asyncio.start_unix_server(wire.connected, listen)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print('ready', flush=True)
    while line := await lines.readline():
        wire.obey(line.decode().split())
        print(json.dumps(wire.counts), flush=True)
    server.close()


class Proxy:
    """The driver's handle of such a process."""

    def __init__(self, listen, target, seed=1):
        self.path = listen
        environment = dict(os.environ, TRINCO_FLEET_SEED=str(seed))
        self.process = subprocess.Popen(
            [sys.executable, '-B', os.path.abspath(__file__), listen, target], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        if self.process.stdout.readline() != 'ready\n':
            raise RuntimeError('the proxy does not run')

    def url(self, credentials=''):
        return 'redis+unix:%s%s' % ('//%s@' % credentials if credentials else '', self.path)

    def obey(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


if __name__ == '__main__':
    try:
        asyncio.run(serve(sys.argv[1], sys.argv[2]))
    except KeyboardInterrupt:
        pass
