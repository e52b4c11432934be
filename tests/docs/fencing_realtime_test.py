#!/usr/bin/env python3
"""The recipes of docs/fencing.md, as they stand there, against a real PostgreSQL, a real Redis and
an HTTP server.

    fencing_realtime_test.py docs/fencing.md [TEST...]

Without a server its recipes are left out, and that is said aloud. TRINCO_FENCING_WRITES sets how
many writes each of the concurrent writers makes.
"""

import contextlib
import http.server
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import postgres_server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'apps/redis'))
import servers  # noqa: E402

TEXT = ''
WRITERS = 6
WRITES = int(os.environ.get('TRINCO_FENCING_WRITES', '60'))
HIGHEST = 2**53 - 1


def block(title):
    """The code block of the document whose first line is a comment that begins so."""
    found = re.findall(r'^```\w+\n(?:--|#) ' + re.escape(title) + r'\b[^\n]*\n(.*?)^```$',
                       TEXT, re.M | re.S)
    if len(found) != 1:
        raise AssertionError(f'{len(found)} blocks are called {title!r}')
    return found[0]


class Recipe:
    """What every recipe must do. A case says how to write (whether it was accepted), and what the
    resource has: (the highest token that it has seen, the value)."""

    def test_a_lower_token_is_refused_an_equal_or_higher_one_is_not(self):
        for token, accepted in ((5, True), (4, False), (5, True), (7, True), (6, False), (5, False),
                                (HIGHEST - 1, True), (HIGHEST, True), (HIGHEST - 1, False)):
            before = self.has()
            self.assertEqual(accepted, self.write(token), (token, before))
            if not accepted:
                self.assertEqual(before, self.has(), 'a refused write changed something')
            elif self.value_is_token:
                self.assertEqual((token, token), self.has())

    def test_a_recipe_without_its_comparison_would_be_found(self):
        self.break_it()
        self.assertTrue(self.write(9))
        self.assertTrue(self.write(4), 'the case above does not see what it is there for')

    def test_many_late_and_new_writers_never_take_it_back(self):
        """Each writer has the tokens of its own grants, in order, and late writes between them."""
        accepted, wrong = [], []
        done = threading.Event()

        def look():
            last = 0
            while not done.is_set():
                seen, value = self.has()
                if seen < last or self.value_is_token and value != seen:
                    wrong.append((last, seen, value))
                last = seen

        def writer(number):
            chance = random.Random(number)
            try:
                with self.connection() as write:
                    for step in range(1, WRITES + 1):
                        own = step * WRITERS + number
                        token = own if chance.random() < 0.6 else chance.randint(1, own)
                        if write(token):
                            accepted.append(token)
            except Exception as error:  # a thread's own would be lost
                wrong.append(error)

        looker = threading.Thread(target=look)
        writers = [threading.Thread(target=writer, args=(n,)) for n in range(WRITERS)]
        for thread in [looker, *writers]:
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        looker.join()
        self.assertEqual([], wrong[:3], 'what was seen went back')
        self.assertEqual(max(accepted), self.has()[0])
        self.assertLess(len(accepted), WRITERS * WRITES, 'nobody was late: this shows nothing')
        self.history_is_in_order()

    value_is_token = True

    def connection(self):
        """One writer's: what `write` does."""
        return contextlib.nullcontext(self.write)

    def history_is_in_order(self):
        pass


class Psql:
    """A connection: statements go in, and what they say comes out, up to a mark."""

    def __init__(self, server):
        self.process = server.client()

    def ask(self, text):
        self.process.stdin.write(text + '\n\\echo <end>\n')
        self.process.stdin.flush()
        said = ''
        while not said.endswith('<end>\n'):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError('psql has ended: ' + said)
            said += line
        return said[:-len('<end>\n')]

    def close(self):
        self.process.communicate()


def accepted(said):
    """Of what psql printed: nothing but a refusal and a success is expected."""
    if 'is stale' in said and said.count('ERROR') >= 1 and 'UPDATE 1' not in said:
        return False
    if 'ERROR' in said or said.count('UPDATE') != 1:
        raise AssertionError(said)
    return 'UPDATE 1' in said


class PostgresCase(unittest.TestCase):
    server = None
    setup = ''
    statement = ''

    @classmethod
    def setUpClass(cls):
        programs = postgres_server.find()
        if programs is None:
            print('fencing: LEFT OUT: there is no PostgreSQL here, so its recipes are not tested; '
                  'try `make servers`', file=sys.stderr)
            raise unittest.SkipTest('there is no PostgreSQL; try `make servers`')
        if PostgresCase.server is None:  # one for all of them
            folder = tempfile.TemporaryDirectory(prefix='trinco-postgres-')
            unittest.addModuleCleanup(folder.cleanup)
            PostgresCase.server = postgres_server.Postgres(folder.name, programs)
            unittest.addModuleCleanup(PostgresCase.server.stop)

    def sql(self, text):
        done = self.server.psql(text)
        self.assertNotIn('ERROR', done.stdout)
        return done.stdout

    def write(self, token):
        return accepted(self.server.psql(self.statement, token=token).stdout)

    @contextlib.contextmanager
    def connection(self):
        with contextlib.closing(Psql(self.server)) as one:
            yield lambda token: accepted(one.ask(f'\\set token {token}\n{self.statement}'))

    def has(self):
        if self.eyes is None:
            self.eyes = Psql(self.server)
            self.addCleanup(self.eyes.close)
        return tuple(map(int, self.eyes.ask(self.look).split('|')))

    eyes = None


class OneRow(Recipe, PostgresCase):
    look = 'SELECT token, balance FROM accounts WHERE id = 7;'

    def setUp(self):
        self.sql('DROP TABLE IF EXISTS accounts, history;' + block('postgres, setup') + '''
            INSERT INTO accounts VALUES (7, 0), (8, 0);
            CREATE TABLE history (n bigserial, token bigint);
            CREATE OR REPLACE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO history (token) VALUES (NEW.token); RETURN NEW; END';
            CREATE TRIGGER t AFTER UPDATE ON accounts
                FOR EACH ROW EXECUTE FUNCTION remember();''')
        self.statement = '\\set id 7\n\\set balance :token\n' + block('postgres, write')

    def break_it(self):
        self.statement = self.statement.replace(' AND token <= :token', '')

    def history_is_in_order(self):
        """As the row was changed, whoever did it."""
        tokens = [int(n) for n in self.sql('SELECT token FROM history ORDER BY n;').split()]
        self.assertEqual(sorted(tokens), tokens)
        self.assertGreater(len(tokens), WRITERS)

    def test_only_its_row_is_meant(self):
        self.write(5)
        other = self.sql('SELECT token, balance FROM accounts WHERE id = 8;')
        self.assertEqual('0|0', other.strip())


class WholeTransaction(Recipe, PostgresCase):
    look = "SELECT coalesce((SELECT token FROM fences), 0), balance FROM accounts WHERE id = 7;"
    value_is_token = False

    def setUp(self):
        self.sql('DROP TABLE IF EXISTS accounts, fences; DROP FUNCTION IF EXISTS pass_fence;'
                 + block('postgres, setup') + block('postgres, fence setup')
                 + 'INSERT INTO accounts VALUES (7, 1000);')
        self.statement = '\\set amount 1\n' + block('postgres, fence write')

    def break_it(self):
        self.sql(block('postgres, fence setup').split('\n\n')[1]
                 .replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
                 .replace(' WHERE f.token <= mine', ''))

    def test_a_refused_transaction_changes_nothing(self):
        self.write(5)
        self.assertFalse(self.write(4))
        self.assertEqual((5, 999), self.has())


class RedisCase(Recipe, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = servers.find_server()
        if cls.program is None:
            print('fencing: LEFT OUT: there is no Redis here, so its recipe is not tested; try '
                  '`make servers`', file=sys.stderr)
            raise unittest.SkipTest('there is no Redis; try `make servers`')
        folder = tempfile.TemporaryDirectory(prefix='trinco-redis-')
        cls.addClassCleanup(folder.cleanup)
        cls.server = servers.Server(folder.name, cls.program)
        cls.addClassCleanup(cls.server.kill)

    def setUp(self):
        self.server.command('FLUSHALL')
        self.script = block('redis, write')

    def write(self, token):
        try:
            said = self.server.command('EVAL', self.script, 2, '{a}', '{a}:fence', token, token)
            self.assertEqual('OK', said)
            return True
        except ValueError as refusal:
            self.assertTrue(str(refusal).startswith(f'STALE token {token}: '), refusal)
            return False

    def has(self):
        fence, value = self.server.command('MGET', '{a}:fence', '{a}')
        return int(fence or 0), int(value or 0)

    def break_it(self):
        self.script = self.script.replace('tonumber(ARGV[1]) < tonumber(seen)', 'false')

    def test_the_line_for_redis_cli_works(self):
        line = re.search(r'^    (redis-cli --eval .*)$', TEXT, re.M).group(1)
        program = pathlib.Path(self.program)
        program = program.with_name(program.name.replace('server', 'cli'))
        if not program.exists():
            self.skipTest(f'there is no {program.name}')
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'write.lua').write_text(self.script)
            for token, said in (('41', 'OK'), ('40', 'STALE token 40: 41 was seen'), ('41', 'OK')):
                done = subprocess.run(
                    ['sh', '-c', line.replace('redis-cli', f'"{program}" -p {self.server.port}')],
                    cwd=folder, env=dict(os.environ, TRINCO_TOKEN=token), check=False, text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertIn(said, done.stdout)
        self.assertEqual('90', self.server.command('GET', '{accounts:7}'))


class HttpCase(Recipe, unittest.TestCase):
    def setUp(self):
        self.serve(block('http, server'))

    def serve(self, source):
        names = {}
        exec(compile(source, 'fencing.md', 'exec'), names)  # the text of our own document
        self.resource = names['Resource']
        self.resource.log_message = lambda *_: None
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), self.resource)
        thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.url = f'http://127.0.0.1:{server.server_port}/'

    def put(self, **headers):
        names = {name.replace('_', '-'): value for name, value in headers.items()}
        ask = urllib.request.Request(self.url, data=names.get('Fencing-Token', 'x').encode(),
                                     headers=names, method='PUT')
        try:
            with DIRECT.open(ask, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def write(self, token):
        code = self.put(Fencing_Token=str(token))
        self.assertIn(code, (204, 412))
        return code == 204

    def has(self):
        with DIRECT.open(self.url, timeout=30) as answer:
            return int(answer.headers['Fencing-Token']), int(answer.read() or 0)

    def break_it(self):
        self.serve(block('http, server').replace('int(text) < Resource.seen', 'False'))

    def test_without_a_token_it_is_refused(self):
        self.assertTrue(self.write(5))
        for headers in ({}, {'Fencing_Token': ''}, {'Fencing_Token': '-1'},
                        {'Fencing_Token': '5x'}, {'Fencing_Token': '6, 7'}):
            self.assertEqual(428, self.put(**headers), headers)
        self.assertEqual((5, 5), self.has())


# No proxy of the environment has a part in it.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

if __name__ == '__main__':
    TEXT = pathlib.Path(sys.argv.pop(1)).read_text(encoding='utf-8')
    unittest.main()
