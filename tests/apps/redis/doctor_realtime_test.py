#!/usr/bin/env python3
"""`trinco doctor` and servers that are set up badly. Takes the program and a service."""

import contextlib
import json
import socket
import threading

from redis_scene import RedisScene
from scene import PATIENCE, main, wait_until
from servers import free_port


class Interrupted:
    """Stands between the doctor and a server: when the script of an operator's hand comes, the
    record of the trial is gone, and after its answer nobody reaches the server any more."""

    def __init__(self, server):
        self.server = server
        self.left = {}  # milliseconds to live of each key that the script left
        self.door = socket.create_server(('127.0.0.1', 0))
        self.url = f'redis://127.0.0.1:{self.door.getsockname()[1]}'
        threading.Thread(target=self.welcome, daemon=True).start()

    def end(self):
        with contextlib.suppress(OSError):
            self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()

    def welcome(self):
        with contextlib.suppress(OSError):
            while True:
                here = self.door.accept()[0]
                there = socket.create_connection(('127.0.0.1', self.server.port))
                threading.Thread(target=self.pass_on, args=(here, there), daemon=True).start()

    def pass_on(self, here, there):
        is_last = threading.Event()
        threading.Thread(target=self.answer, args=(there, here, is_last), daemon=True).start()
        before = b''
        with contextlib.suppress(OSError):
            while data := here.recv(65_536):
                if b'\n-- control: ' in before + data and not is_last.is_set():
                    is_last.set()
                    self.server.command('DEL', *self.keys())
                before = data[-64:]
                there.sendall(data)
        there.close()

    def answer(self, there, here, is_last):
        with contextlib.suppress(OSError):
            while data := there.recv(65_536):
                if is_last.is_set():
                    self.left = {key: self.server.command('PTTL', key) for key in self.keys()}
                    self.end()
                    break
                here.sendall(data)
            here.shutdown(socket.SHUT_RDWR)
        here.close()

    def keys(self):
        return self.server.command('KEYS', 'trinco:1:trinco-doctor-*')


class Doctor(RedisScene):
    def examine(self, *words, code=0, url=None):
        """{check: finding} of the breakers' store."""
        got, out, err = self.run_program('doctor', '-o', 'json', '--breakers',
                                         url or self.server.url, *words)
        self.assertEqual((code, ''), (got, err), out)
        said = json.loads(out)
        self.assertEqual((1, 'breakers'), (said['schema'], said['stores'][0]['use']))
        return {one['check']: one for one in said['stores'][0]['checks']}

    def bad_one(self, check, code=69, url=None):
        found = self.examine(code=code, url=url)
        self.assertEqual('bad', found[check]['level'])
        self.assertTrue(found[check]['advice'])
        return found[check]['sentence']

    def test_of_a_sound_server_everything_is_told(self):
        self.server.command('CONFIG', 'SET', 'appendonly', 'yes')
        before = self.server.command('DBSIZE')
        found = self.examine('--strict')
        self.assertEqual({'ok'}, {one['level'] for one in found.values()}, found)
        self.assertLessEqual({'connect', 'round-trip', 'version', 'role', 'channel', 'scripts',
                              'eviction', 'memory', 'persistence', 'replicas', 'clock'},
                             set(found))
        self.assertEqual(50, found['round-trip']['figures']['count'])
        scripts = found['scripts']['figures']
        self.assertEqual({'exchange', 'look', 'probe', 'control', 'inspect'}, set(scripts))
        for of in scripts.values():
            self.assertGreater(of['p50_us'], 0)
        self.assertLess(abs(found['clock']['figures']['server_ahead_us']), 1_000_000)
        self.assertEqual(before, self.server.command('DBSIZE'))
        text = self.answer('doctor', '--breakers', self.server.url)
        self.assertIn('  ok    scripts ', text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)

    def test_it_removes_what_it_tries_by_a_right_that_breakers_have(self):
        self.examine()
        used = self.server.command('INFO', 'commandstats')
        self.assertIn('cmdstat_del:', used)
        self.assertNotIn('cmdstat_unlink:', used)

    def test_what_it_tries_is_gone_in_seconds_also_when_it_cannot_remove_it(self):
        between = Interrupted(self.server)
        self.addCleanup(between.end)
        self.run_program('doctor', '--breakers', between.url)
        self.assertTrue(between.left)
        for key, milliseconds in between.left.items():
            self.assertTrue(0 < milliseconds <= 5_000, (key, milliseconds))

    def test_what_may_throw_records_away_is_warned_of(self):
        self.server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
        for memory in ('0', '100mb'):
            self.server.command('CONFIG', 'SET', 'maxmemory', memory)
            one = self.examine()['eviction']
            self.assertEqual('warn', one['level'])
            self.assertIn('allkeys-lru', one['sentence'])
            self.assertIn('noeviction', one['advice'])
        self.examine('--strict', code=1)

    def test_no_server(self):
        self.server.kill()
        self.assertIn('refused', self.bad_one('connect'))

    def test_no_such_name(self):
        sentence = self.bad_one('name', url='redis://no-such-host.invalid:1')
        self.assertIn('no-such-host.invalid', sentence)

    def test_who_takes_the_connection_and_does_not_answer(self):
        paused = self.begin_server('paused')
        paused.pause()
        with socket.socket() as silent:
            silent.bind(('127.0.0.1', 0))
            silent.listen()
            # At the same time, since each waits.
            asked = [(check, self.start('doctor', '-o', 'json', '--breakers', url))
                     for check, url in (
                         ('login', f'redis://127.0.0.1:{silent.getsockname()[1]}'),
                         ('login', paused.url),
                         ('tls', self.server.url.replace('redis:', 'rediss:')))]
            for check, process in asked:
                out, err = process.communicate(timeout=PATIENCE)
                self.assertEqual((69, ''), (process.returncode, err))
                checks = json.loads(out)['stores'][0]['checks']
                self.assertEqual([(check, 'bad')],
                                 [(one['check'], one['level']) for one in checks])

    def test_wrong_password_and_none(self):
        self.server.command('CONFIG', 'SET', 'requirepass', 'x')
        self.assertIn('without a password', self.bad_one('login', code=77))
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        sentence = self.bad_one('login', code=77)
        self.assertIn('WRONGPASS', sentence)
        self.assertNotIn('geheim', sentence)

    def as_user(self, *rules):
        self.server.command('ACL', 'SETUSER', 'ann', 'reset', 'on', '>geheim', *rules)
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        return self.server.url.replace('//', '//ann@')

    def test_no_right_to_the_channel(self):
        url = self.as_user('~*', '+@all', 'resetchannels')
        one = self.examine(url=url)['channel']
        self.assertEqual('warn', one['level'])
        self.assertIn('neither written nor listened to', one['sentence'])
        self.assertIn('&trinco:1:default:changes', one['advice'])

    def test_the_rule_that_it_names_is_enough_and_nothing_in_it_too_much(self):
        url = self.as_user('~*', '+@all', '-hset', '-@scripting')
        one = self.examine(url=url, code=77)['rights']
        self.assertIn('eval', one['sentence'])
        self.assertIn('hset', one['sentence'])
        rule = one['advice'].split('SETUSER ann ')[1].split()
        url = self.as_user(*rule)
        self.environment['TRINCO_BREAKERS'] = url
        self.fail_calls(5)
        self.assertEqual('open', self.state())
        self.answer('breakers', 'reset', 'pay')
        found = self.examine(url=url)
        self.assertNotIn('bad', {one['level'] for one in found.values()}, found)
        for word in rule:
            if word.startswith('+') and word not in ('+ping', '+info', '+role', '+select'):
                self.assertRegex(word, r'\A\+[a-z]+\Z')

    def test_a_replica(self):
        replica = self.begin_server('replica', replicaof=('127.0.0.1', self.server.port))
        wait_until(lambda: replica.command('ROLE')[3] == 'connected', 'the replica')
        sentence = self.bad_one('role', url=replica.url)
        self.assertIn(str(self.server.port), sentence)
        self.assertIn('1 replica', self.examine()['replicas']['sentence'])

    def test_too_few_replicas(self):
        self.server.command('CONFIG', 'SET', 'min-replicas-to-write', '2')
        self.assertIn('NOREPLICAS', self.bad_one('replicas'))

    def test_sentinels_that_are_not_there_and_a_cluster_that_is_none(self):
        self.bad_one('sentinels', url=f'redis+sentinel://127.0.0.1:{free_port()}/main')
        self.bad_one('cluster', url=self.server.url.replace('redis:', 'redis+cluster:'))

    def test_a_url_that_is_wrong(self):
        self.assertIn('port', self.bad_one('url', code=64, url='redis://127.0.0.1:x'))


if __name__ == '__main__':
    main()
