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
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import postgres_server
from fencing_recipe import WRITERS, Again, Recipe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'apps/redis'))
import servers  # noqa: E402

TEXT = ''


def block(title):
    """The code block of the document whose first line is a comment that begins so."""
    found = re.findall(r'^```\w+\n(?:--|#) ' + re.escape(title) + r'\b[^\n]*\n(.*?)^```$',
                       TEXT, re.M | re.S)
    if len(found) != 1:
        raise AssertionError(f'{len(found)} blocks are called {title!r}')
    return found[0]


class Psql:
    """A connection: statements go in, and what they say comes out, up to a mark."""

    def __init__(self, server, level=''):
        self.process = server.client()
        self.ask('\\set VERBOSITY verbose')
        if level:
            self.ask(f"SET default_transaction_isolation = '{level}';")

    def send(self, text):
        self.process.stdin.write(text + '\n\\echo <end>\n')
        self.process.stdin.flush()

    def said(self):
        said = ''
        while not said.endswith('<end>\n'):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError('psql has ended: ' + said)
            said += line
        return said[:-len('<end>\n')]

    def ask(self, text):
        self.send(text)
        return self.said()

    def close(self):
        self.process.communicate()


def judged(said, done):
    """What psql printed: True when it was done (a pattern), False when it was refused; nothing else
    is expected."""
    if re.search(r'ERROR:  (40001|40P01):', said):
        raise Again(said)
    if 'is stale' in said and said.count('ERROR:  P0001:') == 1 and 'UPDATE 1' not in said:
        return False
    if 'ERROR' in said or said.count('UPDATE') > 1:
        raise AssertionError(said)
    if said.strip() == 'UPDATE 0':
        return False
    if not re.search(done, said, re.M):
        raise AssertionError(said)
    return True


class PostgresCase(unittest.TestCase):
    server = None

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

    levels = ('read committed', 'repeatable read', 'serializable')
    eyes = hands = None

    def client(self, level=''):
        one = Psql(self.server, level)
        self.addCleanup(one.close)
        return one

    def read(self, token):
        self.hands = self.hands or self.client()
        return self.read_by(self.hands, token)

    def write(self, token, value=None):
        self.hands = self.hands or self.client()
        return self.write_by(self.hands, token, value)

    def read_by(self, psql, token):
        said = psql.ask(f'\\set token {token}\n{self.reading}')
        return int(re.search(r'^(\d+)$', said, re.M).group(1)) if judged(said, r'^\d+$') else None

    @contextlib.contextmanager
    def connection(self, level):
        with contextlib.closing(Psql(self.server, level)) as one:
            yield (lambda token: self.read_by(one, token),
                   lambda token, value=None: self.write_by(one, token, value))

    def has(self):
        self.eyes = self.eyes or self.client()
        return tuple(map(int, self.eyes.ask(self.look).split('|')))


class OneRow(PostgresCase, Recipe):
    look = 'SELECT token, balance FROM accounts WHERE id = 7;'

    def setUp(self):
        self.sql('DROP TABLE IF EXISTS accounts, history;' + block('postgres, setup') + '''
            INSERT INTO accounts VALUES (7, 0), (8, 0);
            CREATE TABLE history (n bigserial, token bigint);
            CREATE OR REPLACE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO history (token) VALUES (NEW.token); RETURN NEW; END';
            CREATE TRIGGER t AFTER UPDATE ON accounts
                FOR EACH ROW EXECUTE FUNCTION remember();''')
        self.reading = '\\set id 7\n' + block('postgres, read')
        self.statement = '\\set id 7\n' + block('postgres, write')

    def write_by(self, psql, token, value):
        value = token if value is None else value
        said = psql.ask(f'\\set token {token}\n\\set balance {value}\n{self.statement}')
        return judged(said, r'^UPDATE 1$')

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

    def test_who_comes_second_waits_or_is_told_40001(self):
        for level, ends in (('read committed', False), ('repeatable read', Again)):
            with self.subTest(level=level):
                self.setUp()
                first, second = self.client(level), self.client(level)
                first.ask('BEGIN;')
                self.assertTrue(self.write_by(first, 7, None))
                second.ask('BEGIN; SELECT 1;')
                second.send(f'\\set token 5\n\\set balance 5\n{self.statement}')
                first.ask('COMMIT;')
                if ends is Again:
                    with self.assertRaises(Again):
                        judged(second.said(), 'UPDATE')
                else:
                    self.assertFalse(judged(second.said(), 'UPDATE'))
                second.ask('ROLLBACK;')
                self.assertFalse(self.write_by(second, 5, None), 'once more')
                self.assertEqual((7, 7), self.has())


class WholeTransaction(PostgresCase, Recipe):
    look = 'SELECT coalesce((SELECT token FROM fences), 0), balance FROM accounts WHERE id = 7;'
    value_is_told = False

    def setUp(self):
        self.sql('DROP TABLE IF EXISTS accounts, fences; DROP FUNCTION IF EXISTS pass_fence;'
                 + block('postgres, setup') + block('postgres, fence setup')
                 + 'INSERT INTO accounts VALUES (7, 1000);')
        self.reading = block('postgres, fence read')
        self.statement = block('postgres, fence write')
        self.written = {}

    def write_by(self, psql, token, value):
        """Adds one, as the next write of this token."""
        self.written[token] = self.written.get(token, 0) + 1
        try:
            return self.write_nth(psql, token, self.written[token])
        except Again:
            self.written[token] -= 1
            raise

    def write_nth(self, psql, token, nth):
        said = psql.ask(f'\\set token {token}\n\\set nth {nth}\n\\set amount -1\n{self.statement}')
        return judged(said, r'^UPDATE 1$')

    def break_it(self):
        self.sql(block('postgres, fence setup').split('\n\n')[1]
                 .replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
                 .replace('WHERE f.token < mine OR', 'WHERE true OR'))

    def test_a_refused_transaction_changes_nothing(self):
        self.write(5)
        self.assertFalse(self.write(4))
        self.assertEqual((5, 1001), self.has())

    def test_a_write_that_is_sent_again_counts_once(self):
        psql = self.client()
        for token, nth, well, seen in ((5, 1, True, '5|1'), (5, 1, False, '5|1'),
                                       (5, 2, True, '5|2'), (5, 1, False, '5|2'),
                                       (5, 2, False, '5|2'), (6, 1, True, '6|1'),
                                       (5, 3, False, '6|1'), (6, 1, False, '6|1')):
            self.assertEqual(well, self.write_nth(psql, token, nth), (token, nth))
            self.assertEqual(self.has()[1], self.read_by(psql, self.has()[0]), 'one may look')
            self.assertEqual(seen, self.sql('SELECT token, writes FROM fences;').strip())
        self.assertEqual((6, 1003), self.has())

    def test_what_is_read_behind_the_fence_is_what_the_one_before_left(self):
        first, second = self.client(), self.client()
        first.ask("BEGIN; SELECT pass_fence('accounts/7', 5, 1);")
        second.send('\\set token 6\n' + self.reading)
        first.ask('UPDATE accounts SET balance = 77 WHERE id = 7; COMMIT;')
        self.assertIn('77', second.said().split())


class RedisCase(unittest.TestCase, Recipe):
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
        self.script = block('redis, script')

    def run_it(self, token, *value):
        """What it answers; None: refused."""
        try:
            return self.server.command('EVAL', self.script, 2, '{a}', '{a}:fence', token, *value)
        except ValueError as refusal:
            self.assertTrue(str(refusal).startswith(f'STALE token {token}: '), refusal)
            return None

    def read(self, token):
        said = self.run_it(token)
        return None if said is None else int(said)

    def write(self, token, value=None):
        value = token if value is None else value
        said = self.run_it(token, value)
        self.assertIn(said, (None, str(value)))
        return said is not None

    def has(self):
        fence, value = self.server.command('MGET', '{a}:fence', '{a}')
        return int(fence or 0), int(value or 0)

    def break_it(self):
        self.script = self.script.replace('tonumber(ARGV[1]) < tonumber(seen)', 'false')

    def test_the_lines_for_redis_cli_work(self):
        reads, writes = re.findall(r'^    (redis-cli --eval .*)$', TEXT, re.M)
        program = pathlib.Path(self.program)
        program = program.with_name(program.name.replace('server', 'cli'))
        if not program.exists():
            self.skipTest(f'there is no {program.name}')
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'fenced.lua').write_text(self.script)
            for line, token, said in ((writes, '41', '90'), (reads, '42', '90'),
                                      (writes, '41', 'STALE token 41: 42 was seen'),
                                      (reads, '41', 'STALE token 41: 42 was seen'),
                                      (writes, '42', '90'), (writes, '', 'ERR')):
                done = subprocess.run(
                    ['sh', '-c', line.replace('redis-cli', f'"{program}" -p {self.server.port}')],
                    cwd=folder, env=dict(os.environ, TRINCO_TOKEN=token), check=False, text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertIn(said, done.stdout)
        self.assertEqual(['90', '42'],
                         self.server.command('MGET', '{accounts:7}', '{accounts:7}:fence'))


class HttpCase(unittest.TestCase, Recipe):
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
        self.port = server.server_port
        self.url = f'http://127.0.0.1:{self.port}/'

    def ask(self, method, token=None, value=None):
        """(status, body, headers)"""
        headers = {} if token is None else {'Fencing-Token': str(token)}
        data = None if value is None else str(value).encode()
        ask = urllib.request.Request(self.url, data=data, headers=headers, method=method)
        try:
            with DIRECT.open(ask, timeout=30) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read(), refusal.headers

    def read(self, token):
        code, body, _ = self.ask('GET', token)
        self.assertIn(code, (200, 412))
        return int(body or 0) if code == 200 else None

    def write(self, token, value=None):
        code, _, _ = self.ask('PUT', token, token if value is None else value)
        self.assertIn(code, (200, 412))
        return code == 200

    def has(self):
        _, body, headers = self.ask('GET')
        return int(headers['Fencing-Token']), int(body or 0)

    def break_it(self):
        self.serve(block('http, server').replace('int(text) < Resource.seen', 'False'))

    def test_without_a_token_it_is_refused(self):
        self.assertTrue(self.write(5))
        for token in (None, '', '-1', '5x', '6, 7', '9' * 17):
            self.assertEqual(428, self.ask('PUT', token, 'x')[0], token)
            self.assertEqual(200 if token is None else 428, self.ask('GET', token)[0], token)
        self.assertEqual((5, 5), self.has())

    def test_an_upload_that_breaks_off_is_refused(self):
        self.assertTrue(self.write(5))
        for head, code in (('Content-Length: 9', 400), ('Content-Length: -1', 411), ('A: b', 411),
                           ('Transfer-Encoding: chunked', 411)):
            with socket.create_connection(('127.0.0.1', self.port), timeout=30) as one:
                one.sendall(f'PUT / HTTP/1.0\r\nFencing-Token: 8\r\n{head}\r\n\r\n123'.encode())
                one.shutdown(socket.SHUT_WR)
                self.assertIn(f' {code} '.encode(), one.makefile('rb').readline(), head)
            self.assertEqual((5, 5), self.has(), head)


# No proxy of the environment has a part in it.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

if __name__ == '__main__':
    TEXT = pathlib.Path(sys.argv.pop(1)).read_text(encoding='utf-8')
    unittest.main()
