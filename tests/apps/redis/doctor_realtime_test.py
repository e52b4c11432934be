#!/usr/bin/env python3
"""`trinco doctor` and servers that are set up badly. Takes the program and a service."""

import contextlib
import json
import shlex
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
                              'keys', 'eviction', 'memory', 'persistence', 'replicas',
                              'clock'},
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

    def test_memory_that_is_used_up_is_the_cause_and_not_the_scripts(self):
        self.server.command('CONFIG', 'SET', 'maxmemory', '500kb')
        found = self.examine(code=69)
        self.assertEqual(['memory'], [k for k, one in found.items() if one['level'] == 'bad'])
        self.assertRegex(found['memory']['sentence'],
                         r'\A[\d.]+ [KM]iB of 500 KiB used: the server refuses what breakers')
        self.assertIn('maxmemory', found['memory']['advice'])
        self.assertEqual('warn', found['scripts']['level'])
        self.assertIn('(OOM), see memory', found['scripts']['sentence'])

    def test_the_whole_line_of_a_refusal_is_shown(self):
        sentence = self.bad_one('login', url=self.server.url + '/99')
        self.assertIn('the server refused SELECT: "ERR DB index is out of range"', sentence)
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        sentence = self.bad_one('login')
        self.assertIn('called without any password configured', sentence)
        self.assertNotIn('geheim', sentence)

    def keys(self):
        code, out, _ = self.run_program('doctor', '-o', 'json')
        checks = json.loads(out)['stores'][0]['checks']
        return code, [one for one in checks if one['check'] == 'keys']

    def paste(self, line):
        """A line of redis-cli, where there is one; else its last words as a command."""
        self.assertRegex(line, rf'\Aredis-cli -h 127\.0\.0\.1 -p {self.server.port} ')
        self.server.command(*shlex.split(line)[5:])

    def test_keys_of_a_wrong_type_are_found_and_the_way_out_is_one(self):
        for name in ('pay', 'rates'):
            self.call_ends(0, '--', 'true', name=name)
        self.assertEqual((0, ['2 breakers in the list; no key of theirs is of a wrong type']),
                         (self.keys()[0], [one['sentence'] for one in self.keys()[1]]))
        wrong = {'trinco:1:default:{pay}:voters': 'hash', 'trinco:1:default:{rates}': 'hash',
                 'trinco:1:default:{rates}:instances': 'zset',
                 # Nobody has listed this one.
                 'trinco:1:default:{fx}': 'hash'}
        for key in wrong:
            self.server.command('DEL', key)
            self.server.command('LPUSH', key, 'x')
        self.server.command('SET', 'trinco:1:default:{pay}:others', 'of nobody')
        self.server.command('SET', 'trinco:1:other:{pay}', 'of another namespace')
        code, found = self.keys()
        self.assertEqual(69, code)
        self.assertEqual(sorted(wrong), sorted(one['sentence'].split('"')[1] for one in found))
        for one in found:
            key = one['sentence'].split('"')[1]
            self.assertEqual('bad', one['level'])
            self.assertRegex(one['sentence'], rf' is a list, where the breaker \w+ keeps a '
                                              rf'{wrong[key]}: ')
            look, forget, remove = one['commands']
            self.assertIn(' TYPE ', look)
            self.assertTrue(forget.startswith('trinco breakers forget '), forget)
            if 'pay' in key:
                words = shlex.split(forget)
                self.assertEqual(self.server.url, words[words.index('--breakers') + 1])
                self.assertEqual(0, self.run_program(*words[1:])[0])
            else:
                self.paste(remove)
        self.assertEqual(0, self.keys()[0])
        self.server.command('DEL', 'trinco:1:default:index')
        self.server.command('SET', 'trinco:1:default:index', 'x')
        code, (one,) = self.keys()
        self.assertEqual((0, 'warn'), (code, one['level']))
        self.assertIn('"trinco:1:default:index" is a string', one['sentence'])
        self.paste(one['commands'][-1])
        self.call_ends(0, '--', 'true')
        self.assertEqual('pay\n', self.answer('breakers', '-o', 'name'))

    def test_keys_are_looked_at_with_the_rights_that_breakers_have(self):
        self.call_ends(0, '--', 'true')
        self.server.command('DEL', 'trinco:1:default:{pay}')
        self.server.command('SET', 'trinco:1:default:{pay}', 'x')
        rule = self.as_user('~*', '+@all', '-hset')
        rule = self.examine(url=rule, code=77)['rights']['advice'].split('SETUSER ann ')[1]
        one = self.examine(url=self.as_user(*rule.split()), code=69)['keys']
        self.assertIn('is something else, where the breaker pay keeps a hash', one['sentence'])
        self.assertIn(' --user ann --askpass DEL ', one['commands'][-1])

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
        self.assertIn(f'name the primary, {self.server.url}, or',
                      self.examine(url=replica.url, code=69)['role']['advice'])
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
