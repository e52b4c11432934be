#!/usr/bin/env python3
"""What people get wrong with Consul, and servers that are not what the URL says: each command
answers with one sentence that tells what and what to do, and the code that fits. Takes the
program's path."""

import concurrent.futures
import json

from consul_scene import Cluster, ConsulScene, consul_cluster, main
from fleet_mistakes import Names, Strangers
from secured import make_certificates
from secured_consul import Secured

TOKEN = '11111111-2222-3333-4444-555555555555'
STRANGER = '99999999-2222-3333-4444-555555555555'


class NamesOnConsul(Names, ConsulScene):
    def keys(self):
        return self.consul.keys()

    def test_a_lock_inside_of_a_semaphore_is_no_permit(self):
        permits = [self.hold('pool', '-n', '2') for _ in range(2)]
        inner = self.hold('pool/a')
        self.assertEqual(75, self.run_lock('pool', '-n', '2', '--no-wait', '-q', '--',
                                           'true').returncode)
        self.assertEqual(0, permits[0].let_go())
        done = self.run_lock('pool', '-n', '2', '--no-wait', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([0, 0], [permits[1].let_go(), inner.let_go()])


class NamesThatOthersHave(ConsulScene):
    """What a lock or a key is called on every store but Consul, it says to each command, and asks
    no server for it."""
    NAMES = (('.', 'segment'), ('a/./b', 'segment'), ('./a', 'segment'), ('a/.', 'segment'),
             ('.lock', "ends with '.lock'"), ('a/.lock', "ends with '.lock'"))

    def all_say(self, part, *commands):
        def say(words):
            return words, self.mistake(*words, code=64)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for words, sentence in pool.map(say, commands):
                with self.subTest(words=words):
                    self.assertIn(part, sentence)
                    self.assertIn(self.consul.url, sentence)
                    self.assertNotIn('as Consul does', sentence)

    def test_of_keys(self):
        ran = self.folder / 'ran'
        for key, part in self.NAMES:
            self.all_say(part, ('once', key, '--', 'touch', str(ran)), ('records', 'show', key),
                         ('records', 'ls', key),
                         ('records', 'resolve', key, '--not-done', '--confirm', key))
        for beginning in '.*', 'a/.*', 'a/./', '/', '/*':
            self.all_say('segment', ('records', 'ls', beginning))
        self.assertFalse(ran.exists())

    def test_of_locks(self):
        for name, part in (*self.NAMES, ('/a', "begins with '/'")):
            self.all_say(part, ('locks', 'show', name), ('locks', 'ls', name),
                         ('locks', 'break', name, '--confirm', name),
                         ('elect', name, '--observe'), ('lock', name, '--', 'true'))
        for beginning in '.*', 'a/.*', 'a/./', '/', '/*':
            self.all_say('segment', ('locks', 'ls', beginning), ('locks', 'watch', beginning))

    def test_others_are_what_they_were(self):
        done = self.run_program('once', 'x/.lock/.y', '--', 'echo', 'ran')
        self.assertEqual((0, 'ran\n'), (done.returncode, done.stdout), done.stderr)
        for word in 'x/.lock/.y', 'x/.lock/.y*', 'x/.lock*', 'x/.lock/', 'x/*', '':
            done = self.run_program('records', 'ls', word, '-o', 'name')
            self.assertEqual((0, 'x/.lock/.y\n', ''), (done.returncode, done.stdout, done.stderr))
        self.assertEqual(0, self.run_program('records', 'show', 'x/.lock/.y').returncode)
        done = self.run_program('locks', 'ls', 'x/.lock*', '-o', 'name')
        self.assertEqual((0, '', ''), (done.returncode, done.stdout, done.stderr))


class Flags(ConsulScene):
    def test_beyond_63_bits_are_read_and_said_as_they_are(self):
        flags = 2**64 - 1
        self.consul.must('PUT', f'/v1/kv/job/.lock?flags={flags}', 'data')
        sentence = self.mistake('lock', 'job', '--', 'true', code=64)
        self.assertIn('job/.lock', sentence)
        self.assertEqual((flags, 'data'), tuple(
            self.consul.key('job/.lock')[part] for part in ('Flags', 'Value')))
        self.consul.must('DELETE', '/v1/kv/job/.lock')


class Ttls(ConsulScene):
    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', ttl_min='12s')

    def test_below_what_any_server_grants_and_parts_of_seconds(self):
        for ttl in '9s', '1500ms':
            sentence = self.mistake('lock', 'a', '--ttl', ttl, '--', 'true', code=64)
            self.assertIn('10 s' if ttl == '9s' else 'whole seconds', sentence)

    def test_below_what_this_server_grants(self):
        """Told, with what it takes, and not made longer in silence."""
        sentence = self.mistake('lock', 'a', '--ttl', '11s', '--', 'true', code=64)
        self.assertIn('12s', sentence)
        done = self.run_lock('a', '--ttl', '12s', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))


class NoConsul(Strangers, ConsulScene):
    """Addresses at which there is no Consul."""
    APART = True

    @classmethod
    def make_cluster(cls):
        return None

    def test_nobody_listens(self):
        at = f'127.0.0.1:{consul_cluster.free_ports(1)[0]}'
        self.all_say(f'consul://{at}', 69, at, 'refused', 'is Consul running there?')

    def test_a_name_that_no_one_has(self):
        self.all_say('consul://no-such-host.invalid', 69, 'no-such-host.invalid', 'no address',
                     only=['locks'])

    def test_who_answers_is_no_consul(self):
        """A web server, an etcd, a page that moved, and what speaks no HTTP."""
        def web(status, body=b'', more=b''):
            return (b'HTTP/1.1 ' + status + b'\r\n' + more + b'Content-Length: ' +
                    str(len(body)).encode() + b'\r\n\r\n' + body)
        page = web(b'200 OK', b'<html>hello</html>')
        self.all_say(f'consul://{self.listener(page)}', 64, 'not as Consul does')
        cases = [(web(b'404 Not Found', b'404 page not found\n'), 64, '404 page not found'),
                 (web(b'301 Moved Permanently', b'', b'Location: /\r\n'), 64, 'the status 301'),
                 (web(b'200 OK', b'{"a":1}'), 64, 'not as Consul does'),
                 (b'SSH-2.0-OpenSSH_9.2p1\r\n', 64, 'not as Consul does'),
                 (b"-ERR unknown command 'GET'\r\n", 64, 'not as Consul does'),
                 (b'', 69, 'ended the connection'), (None, 69, 'does not answer')]
        def say(case):
            at = self.listener(case[0])
            return at, case[2], self.mistake('locks', 'ls', 'a', '--locks', f'consul://{at}',
                                             code=case[1])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for at, part, sentence in pool.map(say, cases):
                self.assertIn(at, sentence)
                self.assertIn(part, sentence)

    def test_a_url_that_is_none(self):
        for url, part in (('consul://', 'host'), ('consul://h:99999', '99999'),
                          ('consul://h?prefixx=a', 'prefixx'),
                          ('consul://h?prefix=a//b', 'prefix'),
                          ('consul://h?token_epoch=256', '255')):
            self.all_say(url, 64, part, only=['lock', 'locks'])


class Rights(ConsulScene):
    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', token=TOKEN)

    def token_for(self, rules):
        policy = self.consul.must('PUT', '/v1/acl/policy', json.dumps(
            {'Name': f'p{len(rules)}', 'Rules': rules}))
        return self.consul.must('PUT', '/v1/acl/token', json.dumps(
            {'Policies': [{'ID': policy['ID']}]}))['SecretID']

    def say_as(self, token, code, *parts, words=('lock', 'shop/a')):
        if token:
            self.environment['CONSUL_HTTP_TOKEN'] = token
        sentence = self.mistake(*words, '--', 'true', code=code)
        for part in parts:
            self.assertIn(part, sentence)
        self.assertNotIn(token or 'no token', sentence)

    def say_without_command(self, words, code, part):
        done = self.run_program(*words)
        self.assertEqual((code, ''), (done.returncode, done.stdout), done.stderr)
        self.assertIn(part, done.stderr)

    def test_nobody_a_token_that_is_unknown_and_rights_that_are_missing(self):
        at = self.consul.nodes[0].address_and_port
        self.say_as(None, 77, at, 'it wants a token')
        self.say_as(STRANGER, 77, at, 'does not know the token')
        ours = self.token_for('key_prefix "shop/" { policy = "write" } '
                              'session_prefix "" { policy = "write" }')
        self.environment['CONSUL_HTTP_TOKEN'] = ours
        done = self.run_lock('shop/a', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.say_as(ours, 77, at, "'key:write'", 'bank/a', words=('lock', 'bank/a'))
        for words in ('locks', 'show', 'bank/a'), ('locks', 'break', 'bank/a', '--force'), (
                'records', 'show', 'a'):
            self.say_without_command(words, 77, 'key:read')
        # Of many it is told what may be read.
        self.assertEqual(0, self.run_program('locks', 'ls').returncode)
        self.say_as(ours, 77, at, "'key:read'", 'trinco:records/', words=('once', 'shop/a'))
        reader = self.token_for('key_prefix "" { policy = "read" }')
        self.say_as(reader, 77, 'session:write')

    def test_a_holder_whose_session_may_not_be_read_is_not_asked(self):
        self.environment['CONSUL_HTTP_TOKEN'] = TOKEN
        holder = self.hold('job', '--ttl', '10s', '-v')
        self.environment['CONSUL_HTTP_TOKEN'] = self.token_for(
            'key_prefix "" { policy = "write" }')
        done = self.run_program('locks', 'break', 'job', '--confirm', 'job')
        self.assertEqual((77, ''), (done.returncode, done.stdout), done.stderr)
        self.assertIn('session:read', done.stderr)
        self.assertIn('--force', done.stderr)
        # It was not asked, and holds it still; who may read its session asks it.
        self.environment['CONSUL_HTTP_TOKEN'] = TOKEN
        self.assertEqual(1, len(self.listed('job')['holders']))
        done = self.run_program('locks', 'break', 'job', '--confirm', 'job')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(' gave it back, or its session ended', done.stdout)
        self.assertEqual(76, holder.end())

    def test_who_may_not_look_is_not_told_that_nobody_leads(self):
        self.environment['CONSUL_HTTP_TOKEN'] = self.token_for('key "x" { policy = "read" }')
        done = self.run_program('elect', 'job', '--observe')
        self.assertEqual((77, ''), (done.returncode, done.stdout), done.stderr)
        self.assertIn('key:read', done.stderr)

    def test_a_token_in_a_file(self):
        file = self.folder / 'token'
        self.use(f'{self.consul.url}?token_file={file}')
        self.assertIn(str(file), self.mistake('lock', 'a', '--', 'true', code=77))
        file.write_text(TOKEN + '\n')
        done = self.run_lock('a', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))


class Certificates(ConsulScene):
    """A server with TLS, whose certificate is for 127.0.0.1 and good.test."""

    @classmethod
    def make_cluster(cls):
        make_certificates(cls.place)
        return Secured(cls.place / 'consul', cls.place)

    def setUp(self):
        super().setUp()
        self.at = f'127.0.0.1:{self.consul.https_port}'
        self.good = f'consuls://{self.at}?ca={self.place}/ca.pem'

    def say(self, url, code, *parts):
        sentence = self.mistake('lock', 'job', '--locks', url, '--', 'true', code=code)
        for part in parts:
            self.assertIn(part, sentence)

    def test_a_certificate_for_another_name(self):
        for url in self.good, self.good + '&server_name=good.test':
            done = self.run_lock('job', '--locks', url, '--', 'true')
            self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.say(self.good + '&server_name=bad.test', 64, self.at,
                 'certificate is for another name', 'server_name=')

    def test_an_authority_that_is_not_believed(self):
        self.say(f'consuls://{self.at}?ca={self.place}/other.pem', 77, self.at, 'authority', 'ca=')

    def test_without_tls_and_with_it_where_there_is_none(self):
        self.say(f'consul://{self.at}', 64, self.at, 'consuls://')
        plain = self.consul.nodes[0].address_and_port
        self.say(f'consuls://{plain}?ca={self.place}/ca.pem', 64, plain, 'consul://')

    def test_a_file_that_is_not_there(self):
        self.say(f'consuls://{self.at}?ca=/no/such.pem', 64, '/no/such.pem', 'No such file')


if __name__ == '__main__':
    main(at_a_time=6)
