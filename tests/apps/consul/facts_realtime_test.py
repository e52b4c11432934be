#!/usr/bin/env python3
"""What docs/consul-facts.md says of Consul, shown on the real one: what the store relies on. Needs
no program of ours."""

import json
import time

from facts_scene import LOCK_FLAGS, NOBODY, Facts, lock, main, text, verb, wait_until


class Transactions(Facts):
    def test_refusals_and_their_words(self):
        ours, other = self.consul.create_session(), self.consul.create_session()
        self.done(lock('a', ours))
        for what, operation in (
                ('failed to lock key "a", lock is already held', lock('a', other)),
                (f'invalid session "{NOBODY}"', lock('x', NOBODY)),
                ('missing session', lock('x', '')),
                ('failed to unlock key "a", lock isn\'t held, or is held by another session',
                 verb('unlock', 'a', Session=other)),
                ('failed to unlock key "none", lock isn\'t held, or is held by another session',
                 verb('unlock', 'none', Session=other)),
                (f'failed session check for key "a", current session "{ours}" != "{other}"',
                 verb('check-session', 'a', Session=other)),
                ('failed to check session, key "none" doesn\'t exist',
                 verb('check-session', 'none', Session=other)),
                ('failed to check index, key "none" doesn\'t exist',
                 verb('check-index', 'none', Index=1)),
                ('key "a" exists', verb('check-not-exists', 'a')),
                ('key "none" doesn\'t exist', verb('get', 'none')),
                ('failed to set key "a", index is stale', verb('cas', 'a', Index=0)),
                ('failed to set key "a", index is stale', verb('cas', 'a', Index=3)),
                ('failed to set key "none", index is stale', verb('cas', 'none', Index=3)),
                ('failed to delete key "a", index is stale', verb('delete-cas', 'a', Index=3)),
                ('Must provide key', verb('set', '')),
                ('unknown KV verb "nonsense"', verb('nonsense', 'a'))):
            self.assertEqual(what, self.refused(operation))
        self.assertRegex(self.refused(verb('check-index', 'a', Index=1)),
                         r'^failed index check for key "a", current modify index \d+ != 1$')

    def test_all_or_none_and_each_refusal_is_told(self):
        ours, other = self.consul.create_session(), self.consul.create_session()
        self.done(lock('m/b', ours), lock('m/d', ours))
        status, told = self.txn(*(lock(f'm/{name}', other) for name in 'abcd'))
        self.assertEqual(409, status)
        self.assertEqual([1, 3], [number for number, _ in told])
        self.assertEqual(['m/b', 'm/d'], self.consul.keys('m/'))

    def test_what_is_as_good_as_done(self):
        self.assertEqual([], self.done(verb('delete', 'none')))
        self.assertEqual([], self.done(verb('delete-cas', 'none', Index=3)))
        self.assertEqual([], self.done(verb('get-tree', 'none/')))
        self.assertEqual([], self.done(verb('check-not-exists', 'none')))

    def test_keys_that_can_be_written_and_that_no_path_names(self):
        for key in ('p/./k', 'p/../k', 'p//k', 'p/..'):
            self.done(verb('set', key, Value=text('v')))
            self.assertEqual(301, self.consul.ask('GET', f'/v1/kv/{key}').status, key)
            self.done(verb('delete', key))

    def test_rows_have_values_of_reads_alone(self):
        session = self.consul.create_session()
        first, second = self.done(lock('r', session), verb('get', 'r'))
        self.assertEqual((None, text('v')), (first['Value'], second['Value']))
        del first['Value'], second['Value']
        self.assertEqual(first, second)
        self.assertEqual((session, 1, LOCK_FLAGS, first['CreateIndex']),
                         (first['Session'], first['LockIndex'], first['Flags'],
                          first['ModifyIndex']))

    def test_how_many_operations_and_how_large(self):
        many = [verb('set', f'n/{i}', Value=text('1')) for i in range(129)]
        self.assertEqual(128, len(self.done(*many[:128])))
        status, told = self.txn(*many)
        self.assertEqual((413, 'Transaction contains too many operations (129 > 128)'),
                         (status, told))
        # The request as a whole: a value is told in base64.
        self.done(verb('set', 'large', Value=text('x' * 390_000)))
        status, told = self.txn(verb('set', 'large', Value=text('x' * 394_000)))
        self.assertEqual(413, status, told)
        self.assertRegex(told, r'^Request body\(\d+ bytes\) too large, max size: 524288 bytes\.')
        answer = self.consul.ask('PUT', '/v1/txn', 'nonsense')
        self.assertEqual(400, answer.status, answer.body)


class Indexes(Facts):
    def test_a_grant_has_a_modify_index_above_all_before_it_also_anew(self):
        seen = []
        for number in range(3):
            session = self.consul.create_session(Behavior='delete')
            row, = self.done(lock('t', session))
            seen.append((row['LockIndex'], row['ModifyIndex']))
            if number == 0:
                self.done(verb('unlock', 't', Session=session))
            else:  # with the key its LockIndex is gone
                self.done(verb('unlock', 't', Session=session), verb('delete', 't'))
        self.assertEqual([1, 2, 1], [lock_index for lock_index, _ in seen])
        tokens = [token for _, token in seen]
        self.assertEqual(sorted(set(tokens)), tokens)

    def test_the_holder_locks_again_and_writes(self):
        session = self.consul.create_session()
        first, = self.done(lock('h', session))
        same, = self.done(lock('h', session))
        self.assertEqual(first, same, 'what changes nothing is not written')
        other, = self.done(lock('h', session, 'w'))
        self.assertEqual((first['LockIndex'], first['CreateIndex']),
                         (other['LockIndex'], other['CreateIndex']))
        self.assertGreater(other['ModifyIndex'], first['ModifyIndex'])
        released, = self.done(verb('unlock', 'h', Session=session))
        self.assertNotIn('Session', released)
        self.assertEqual(1, released['LockIndex'])

    def test_whoever_writes_leaves_it_held_and_takes_its_lock_index(self):
        """By the verbs set and cas; lock keeps it."""
        session = self.consul.create_session()
        for write in ('set', 'cas'):
            held, = self.done(lock('w', session, write))
            row, = self.done(verb(write, 'w', Value=text('other'), Index=held['ModifyIndex']))
            self.assertEqual((session, 0, 0), (row['Session'], row['LockIndex'], row['Flags']))
            self.assertEqual(held['CreateIndex'], row['CreateIndex'])

    def test_unlocking_gives_the_index_of_its_transaction(self):
        """So what is unlocked can be deleted in the same one, but not at the index it had."""
        session = self.consul.create_session()
        held, = self.done(lock('x', session))
        self.assertEqual('failed to delete key "x", index is stale', self.refused(
            verb('unlock', 'x', Session=session),
            verb('delete-cas', 'x', Index=held['ModifyIndex'])))
        self.done(verb('check-session', 'x', Session=session),
                  verb('delete-cas', 'x', Index=held['ModifyIndex']))
        self.done(lock('x', session))
        self.done(verb('unlock', 'x', Session=session), verb('delete', 'x'))
        self.assertIsNone(self.consul.key('x'))

    def test_keys_of_one_transaction_share_an_index(self):
        session = self.consul.create_session()
        rows = self.done(lock('s/a', session), lock('s/b', session))
        self.assertEqual(rows[0]['ModifyIndex'], rows[1]['ModifyIndex'])

    def test_flags_are_unsigned_and_of_64_bits(self):
        row, = self.done(verb('set', 'f', Value=text('x'), Flags=2**64 - 1))
        self.assertEqual(2**64 - 1, row['Flags'])


class Blocking(Facts):
    def test_of_a_key_that_is_there(self):
        self.put('k', 'a')
        status, index, _ = self.read('/v1/kv/k')
        self.assertEqual((200, self.consul.key('k')['ModifyIndex']), (status, index))
        with self.soon(lambda: self.put('other')):
            self.assertGreater(self.read(f'/v1/kv/k?index={index}&wait=1s')[2], 0.9)
        with self.soon(lambda: self.put('k', 'b')):
            _, next_index, took = self.read(f'/v1/kv/k?index={index}&wait=5s')
        self.assertLess(took, 2)
        self.assertGreater(next_index, index)
        with self.soon(lambda: self.consul.ask('DELETE', '/v1/kv/k')):
            status, gone, took = self.read(f'/v1/kv/k?index={next_index}&wait=5s')
        self.assertEqual(404, status)
        self.assertLess(took, 2)
        self.assertGreater(gone, next_index)

    def test_of_a_key_that_is_not_there(self):
        self.put('something')
        status, index, _ = self.read('/v1/kv/absent')
        self.assertEqual(404, status)
        self.assertGreaterEqual(index, 1)
        with self.soon(lambda: self.put('something', '2')):
            self.assertGreater(self.read(f'/v1/kv/absent?index={index}&wait=1s')[2], 0.9)
        index = self.read('/v1/kv/absent')[1]
        with self.soon(lambda: self.put('absent')):
            status, _, took = self.read(f'/v1/kv/absent?index={index}&wait=5s')
        self.assertEqual(200, status)
        self.assertLess(took, 2)

    def test_of_all_under_a_prefix(self):
        self.put('p/a')
        index = self.read('/v1/kv/p/?recurse')[1]
        with self.soon(lambda: self.put('q')):
            self.assertGreater(self.read(f'/v1/kv/p/?recurse&index={index}&wait=1s')[2], 0.9)
        with self.soon(lambda: self.put('p/b')):
            _, index, took = self.read(f'/v1/kv/p/?recurse&index={index}&wait=5s')
        self.assertLess(took, 2)
        with self.soon(lambda: self.consul.ask('DELETE', '/v1/kv/p/b')):
            _, after, took = self.read(f'/v1/kv/p/?recurse&index={index}&wait=5s')
        self.assertLess(took, 2)
        self.assertGreater(after, index)

    def test_index_0_does_not_block_and_one_ahead_does(self):
        self.put('z')
        self.assertLess(self.read('/v1/kv/z?index=0&wait=5s')[2], 2)
        self.assertGreater(self.read('/v1/kv/z?index=999999999&wait=1s')[2], 0.9)

    def test_headers(self):
        answer = self.consul.ask('GET', '/v1/kv/nothing?consistent')
        self.assertEqual(('true', '0'), tuple(answer.headers[name] for name in (
            'X-Consul-KnownLeader', 'X-Consul-LastContact')))

    def test_a_snapshot_that_is_restored_is_not_told_but_indexes_go_on(self):
        """Who waits is woken with what was there before, and asks again with an index that the
        restored state may reach late: a look without an index tells."""
        self.put('snap', 'old')
        self.consul.snapshot('save')
        for number in range(20):
            self.put('snap', str(number))
        index = self.read('/v1/kv/snap')[1]
        with self.soon(lambda: self.consul.snapshot('restore')):
            status, _, took = self.read(f'/v1/kv/snap?index={index}&wait=10s')
        self.assertEqual(200, status)
        self.assertLess(took, 5)
        wait_until(lambda: self.consul.key('snap')['Value'] == 'old', 'what was restored')
        self.assertLess(self.read('/v1/kv/snap')[1], index)
        self.assertGreater(self.read(f'/v1/kv/snap?index={index}&wait=1s')[2], 0.9)
        self.put('snap', 'new')
        self.assertGreater(self.read('/v1/kv/snap')[1], index, 'indexes of the log go on')


class Sessions(Facts):
    def test_what_is_made_of_a_request(self):
        def made(**members):
            answer = self.consul.ask('PUT', '/v1/session/create', json.dumps(members))
            if answer.status != 200:
                return answer.status, answer.body
            facts, = self.consul.must('GET', '/v1/session/info/' + answer.json()['ID'])
            return facts
        plain = made(TTL='10s')
        self.assertEqual((15 * 10**9, 'release', ['serfHealth'], 'n0'),
                         (plain['LockDelay'], plain['Behavior'], plain['NodeChecks'],
                          plain['Node']))
        ours = made(TTL='10s', LockDelay='5s', Behavior='delete', NodeChecks=[])
        self.assertEqual((5 * 10**9, 'delete', [], '10s'),
                         (ours['LockDelay'], ours['Behavior'], ours['NodeChecks'], ours['TTL']))
        self.assertEqual(0, made(TTL='10s', LockDelay='0s')['LockDelay'])
        for ttl in ('999ms', '24h1s'):
            status, told = made(TTL=ttl)
            self.assertEqual(500, status)
            self.assertIn('Invalid Session TTL', told)
            self.assertIn('must be between [1s=24h0m0s]', told)
        status, told = made(TTL='10s', Node='nobody')
        self.assertEqual(500, status)
        self.assertIn('Missing node registration', told)

    def test_renewed_and_destroyed_where_there_is_none(self):
        answer = self.consul.ask('PUT', f'/v1/session/renew/{NOBODY}')
        self.assertEqual((404, f"Session id '{NOBODY}' not found"), (answer.status, answer.body))
        answer = self.consul.ask('PUT', f'/v1/session/destroy/{NOBODY}')
        self.assertEqual((200, True), (answer.status, answer.json()))
        answer = self.consul.ask('GET', f'/v1/session/info/{NOBODY}')
        self.assertEqual((200, []), (answer.status, answer.json()))

    def test_it_ends_two_ttls_after_it_was_renewed(self):
        session = self.consul.create_session(TTL='2s')
        time.sleep(0.5)
        asked = time.monotonic()
        renewed, = self.consul.must('PUT', f'/v1/session/renew/{session}')
        answered = time.monotonic()
        self.assertEqual('2s', renewed['TTL'])
        self.wait_for_end(session)
        ended = time.monotonic()
        self.assertGreater(ended - asked, 3.9)
        self.assertLess(ended - answered, 5.5)

    def test_an_end_deletes_or_releases_and_keeps_others_away_for_a_while(self):
        other = self.consul.create_session()
        for behavior in ('delete', 'release'):
            session = self.consul.create_session(Behavior=behavior, LockDelay='3s')
            before, = self.done(lock('d', session, behavior))
            asked = time.monotonic()
            self.consul.destroy_session(session)
            ended = time.monotonic()
            row = self.consul.key('d')
            if behavior == 'delete':
                self.assertIsNone(row)
            else:
                self.assertNotIn('Session', row)
                self.assertEqual((behavior, 1), (row['Value'], row['LockIndex']))
                self.assertGreater(row['ModifyIndex'], before['ModifyIndex'])
            self.assertEqual('failed to lock key "d" due to lock delay',
                             self.refused(lock('d', other)))
            # Told alone, before anything else is looked at.
            self.assertEqual('failed to lock key "d" due to lock delay',
                             self.refused(lock('d', other), lock('x', NOBODY)))
            answer = self.consul.ask('PUT', f'/v1/kv/d?acquire={other}', 'v')
            self.assertEqual((200, False), (answer.status, answer.json()))
            self.done(verb('set', 'd', Value=text('whoever writes')))
            wait_until(lambda: self.txn(lock('d', other))[0] == 200, 'it can be locked')
            self.assertGreater(time.monotonic() - asked, 2.9)
            self.assertLess(time.monotonic() - ended, 6)
            self.done(verb('unlock', 'd', Session=other), verb('delete', 'd'))

    def test_what_is_given_back_or_deleted_first_keeps_nobody_away(self):
        other = self.consul.create_session()
        for last in (verb('unlock', 'g', Session=''), verb('delete', 'g')):
            session = self.consul.create_session(LockDelay='30s', Behavior='delete')
            self.done(lock('g', session))
            self.done({**last, 'Session': session})
            self.consul.destroy_session(session)
            self.done(lock('g', other))
            self.done(verb('unlock', 'g', Session=other), verb('delete', 'g'))

    def test_a_key_that_was_deleted_under_its_holder_is_free(self):
        session, other = self.consul.create_session(), self.consul.create_session()
        self.done(lock('u', session))
        self.done(verb('delete', 'u'))
        row, = self.done(lock('u', other))
        self.assertEqual(1, row['LockIndex'])
        self.assertTrue(self.consul.must('GET', f'/v1/session/info/{session}'))


if __name__ == '__main__':
    main()
