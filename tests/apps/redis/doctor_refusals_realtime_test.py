#!/usr/bin/env python3
"""`trinco doctor` and servers that answer with a refusal, and users with too few rights: each is
told as what it is, with a next step of its own. Takes the program and a service."""

import contextlib
import json
import shutil
import socket
import threading

from redis_scene import RedisScene
from scene import PATIENCE, main, wait_until
from servers import free_port


class Refusing:
    """Answers every command with one line."""

    def __init__(self, line):
        self.line = line
        self.door = socket.create_server(('127.0.0.1', 0))
        self.url = f'redis://127.0.0.1:{self.door.getsockname()[1]}'
        threading.Thread(target=self.welcome, daemon=True).start()

    def welcome(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.answer, args=(self.door.accept()[0],),
                                 daemon=True).start()

    def answer(self, here):
        with here, contextlib.suppress(OSError):
            while data := here.recv(65_536):
                here.sendall(self.line * data.count(b'*'))


class Scene(RedisScene):
    def examine(self, code, url=None, *words):
        """{check: finding} of the breakers' store."""
        got, out, err = self.run_program('doctor', '-o', 'json', '--breakers',
                                         url or self.server.url, *words)
        self.assertEqual((code, ''), (got, err), out)
        return {one['check']: one for one in json.loads(out)['stores'][0]['checks']}


class Refusals(Scene):
    def test_a_disk_that_cannot_be_written(self):
        server = self.begin_server('saving', save='3600 1')
        shutil.rmtree(server.folder)
        server.command('BGSAVE')
        wait_until(lambda: 'last_bgsave_status:err' in server.command('INFO', 'persistence'),
                   'the failure')
        found = self.examine(69, server.url)
        self.assertEqual(['persistence'], [k for k, f in found.items() if f['level'] == 'bad'])
        self.assertIn('MISCONF', found['persistence']['sentence'])
        self.assertIn('free space', found['persistence']['advice'])
        self.assertIn('LASTSAVE', found['persistence']['advice'])
        self.assertEqual(50, found['round-trip']['figures']['count'])

    def test_a_script_that_runs_for_long(self):
        self.server.command('CONFIG', 'SET', 'lua-time-limit', '10')

        def endless():
            with contextlib.suppress(ValueError, OSError):
                self.server.command('EVAL', 'while true do end', '0')
        running = threading.Thread(target=endless)
        running.start()

        def is_busy():
            with contextlib.suppress(ValueError):
                self.server.command('PING')
                return False
            return True
        wait_until(is_busy, 'the script')
        for url in (self.server.url, self.server.url + '/1'):
            found = self.examine(69, url)
            self.assertEqual(['answer'], list(found))
            self.assertIn('a script has been running for too long', found['answer']['sentence'])
            self.assertIn('SCRIPT KILL', found['answer']['advice'])
        self.server.command('SCRIPT', 'KILL')
        running.join()

    def test_a_replica_that_has_lost_its_primary(self):
        port = free_port()
        replica = self.begin_server('replica', replicaof=('127.0.0.1', port),
                                    replica_serve_stale_data='no')
        found = self.examine(69, replica.url)
        self.assertEqual(['answer'], list(found))
        self.assertIn('has lost its primary', found['answer']['sentence'])
        self.assertIn(f'name the primary, redis://127.0.0.1:{port}', found['answer']['advice'])

    def test_a_server_that_reads_its_data(self):
        loading = Refusing(b'-LOADING Redis is loading the dataset in memory\r\n')
        self.addCleanup(loading.door.close)
        found = self.examine(69, loading.url)
        self.assertEqual(['answer'], list(found))
        self.assertIn('still reading its data', found['answer']['sentence'])
        self.assertIn('wait', found['answer']['advice'])

    def test_a_cluster_without_its_slots(self):
        node = self.begin_server('node', cluster_enabled='yes', cluster_port=str(free_port()))
        found = self.examine(69, node.url)
        self.assertIn('CLUSTERDOWN', found['scripts']['sentence'])
        self.assertIn('CLUSTER NODES', found['scripts']['advice'])
        self.assertEqual('ok', found['rights']['level'])

    def test_a_server_that_stands_still_is_not_one_that_refuses(self):
        paused = self.begin_server('paused')
        paused.pause()
        # At the same time, since each waits.
        asked = [(self.start('doctor', '-o', 'json', '--breakers', url), check, advice)
                 for url, check, advice in (
                     (paused.url, 'login', 'paused'),
                     (self.server.url.replace('redis:', 'rediss:'), 'tls', 'write redis://'))]
        for process, check, advice in asked:
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual((69, ''), (process.returncode, err))
            found = json.loads(out)['stores'][0]['checks'][0]
            self.assertEqual(check, found['check'])
            self.assertIn('accepts connections and does not answer', found['sentence'])
            self.assertIn(advice, found['advice'])


class Rights(Scene):
    def as_user(self, *rules):
        self.server.command('ACL', 'SETUSER', 'eve', 'reset', 'on', '>geheim', *rules)
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        return self.server.url.replace('//', '//eve@')

    def rule_of(self, found):
        self.assertEqual('bad', found['rights']['level'])
        return found['rights']['advice'].split('ACL SETUSER eve ')[1].split()

    def test_none_at_all(self):
        self.call_ends(0, '--', 'true')
        before = sorted(self.server.command('KEYS', '*'))
        found = self.examine(77, self.as_user())
        self.assertNotIn('password', str(found))
        self.assertIn('the user "eve" may not', found['rights']['sentence'])
        for right in ('eval', 'hset', 'zadd', 'del'):
            self.assertIn(right, found['rights']['sentence'])
        self.assertIn('not looked at', found['keys']['sentence'])
        self.assertIn('may not run scripts', found['scripts']['sentence'])
        self.assertEqual(before, sorted(self.server.command('KEYS', '*')))
        # What is printed is enough, and then that is told.
        url = self.as_user(*self.rule_of(found))
        found = self.examine(0, url)
        self.assertEqual('ok', found['rights']['level'])
        self.assertIn('"eve" may do all that breakers need', found['rights']['sentence'])
        self.assertIn('1 breaker in the list', found['keys']['sentence'])
        self.assertEqual(before, sorted(self.server.command('KEYS', '*')))

    def test_all_but_one(self):
        whole = self.rule_of(self.examine(77, self.as_user()))
        for right in ('+hset', '+zadd', '+del', '+pexpire'):
            found = self.examine(77, self.as_user(*[one for one in whole if one != right]))
            self.assertRegex(found['rights']['sentence'], rf':\*: {right[1:]}\Z')

    def test_the_keys_of_another_namespace(self):
        self.call_ends(0, '--', 'true')
        found = self.examine(77, self.as_user('+@all', '~trinco:1:other:*', '&*'))
        self.assertIn('not looked at', found['keys']['sentence'])

    def test_no_right_to_the_database(self):
        found = self.examine(77, self.as_user('+@all', '-select', '~*', '&*') + '/1')
        self.assertEqual(['rights'], list(found))
        self.assertIn('ACL SETUSER eve +select', found['rights']['advice'])


if __name__ == '__main__':
    main()
