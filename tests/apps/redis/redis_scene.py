"""A scene of `trinco breakers` and `trinco call` whose store is a real Redis, with a mirror of its
own. Without a server the tests are skipped: `make servers` fetches one. The second argument is a
service that uses the library (breaker_client)."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'breakers'))
from scene import Scene  # noqa: E402

from servers import Server, find_server  # noqa: E402

SERVICE = os.path.abspath(sys.argv.pop(1))


def stand_in(url, name_space='default'):
    """The namespace of the mirror in which breakers stand in for those of the server: it may not
    change from version to version, so the number is computed here as well (FNV-1a, 32 bits)."""
    number = 0x811c9dc5
    for byte in url.replace('//', '').encode():
        number = (number ^ byte) * 0x01000193 % 2 ** 32
    return f'{name_space}:stand-in:{number:08x}'


class Service:
    def __init__(self, test, url, voter):
        environment = {**os.environ, 'TRINCO_INSTANCE': voter}
        self.process = subprocess.Popen([SERVICE, url, 'pay'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        test.addCleanup(self.end)

    def ask(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip('\n')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class RedisScene(Scene):
    settings = {}

    def setUp(self):
        super().setUp()
        program = find_server()
        if program is None:
            self.skipTest('there is no redis-server; make servers fetches one')
        self.server = self.begin_server('redis', **self.settings)
        self.mirror = f'local:{self.folder}/mirror.db'
        self.environment.update(TRINCO_BREAKERS=self.server.url,
                                TRINCO_BREAKERS_MIRROR=self.mirror,
                                TRINCO_LOCKS=f'local:{self.file}')

    def local(self, name='pay'):
        """What stands in on this machine."""
        said = json.loads(self.answer('breakers', 'show', name, '-o', 'json',
                                      '--breakers', self.mirror,
                                      '--namespace', stand_in(self.server.url)))
        return said['breaker']

    def begin_server(self, name, **settings):
        server = Server(self.folder / name, find_server(), **settings)
        self.addCleanup(server.end)
        return server
