#!/usr/bin/env python3
"""`trinco lock` on a real Consul when something happens to a lock that is held: its session ends,
its key is deleted, its owner dies. Takes the program's path."""

import signal

from consul_scene import LOCK_DELAY, TTL, boot_time, is_alive, main, wait_until
from writers import Writers


class Faults(Writers):
    def session_of(self, name):
        return wait_until(lambda: self.holder_of(name), 'somebody holds it')


class SessionsEnd(Faults):
    APART = True

    def test_destroyed_under_a_holder(self):
        """It is told at once, and nobody follows within the lock-delay."""
        holder = self.begin_writing('job', 'first')
        token = self.granted(holder)
        waiter = self.begin_writing('job', 'second')
        wait_until(lambda: waiter.said, 'the second waits')
        session = self.session_of('job')
        asked = boot_time()
        self.consul.destroy_session(session)
        ended = boot_time()
        self.assertEqual(76, holder.end(), holder.said)
        self.assertLess(self.times(holder)[-1] - ended, 3, 'it was told late')
        self.assertGreater(self.granted(waiter), token)
        begins = self.writes(waiter)
        self.assertGreater(begins - asked, LOCK_DELAY)
        self.assertLess(begins - ended, LOCK_DELAY + 3)
        self.assertLess(self.times(holder)[-1], begins, 'both wrote at a time')
        # Who waits is told why, and for how long: the lock is free, and Consul holds it back.
        self.assertRegex(waiter.said, r'keeps it back for [1-5] s more at most, for the lock-delay')
        self.end_of(waiter)

    def test_an_owner_that_dies(self):
        """Its session ends between one and two TTLs later, and the lock-delay follows."""
        holder = self.begin_writing('job', 'first')
        self.granted(holder)
        waiter = self.begin_writing('job', 'second')
        wait_until(lambda: waiter.said, 'the second waits')
        holder.signal(signal.SIGKILL)
        died = boot_time()
        holder.end()
        began = self.writes(waiter)
        self.assertGreater(began - died, TTL + LOCK_DELAY - TTL / 3 - 0.5)
        self.assertLess(began - died, 2 * TTL + LOCK_DELAY + 8)
        print(f'an owner died: the next began after {began - died:.2f} s')
        self.assertLess(self.times(holder)[-1], began)
        self.end_of(waiter)

    def test_of_consul_lock_while_we_wait(self):
        theirs = self.hold_by_consul('job')
        ours = self.begin_writing('job', 'ours')
        wait_until(lambda: ours.said, 'ours waits')
        session = self.session_of('job')
        asked = boot_time()
        self.consul.destroy_session(session)
        ended = boot_time()
        self.assertEqual(0, theirs.end(), theirs.said)
        self.assertFalse(is_alive(theirs.command))
        began = self.writes(ours)
        self.assertGreater(began - asked, 15, 'the lock-delay of `consul lock` is 15 s')
        self.assertLess(began - ended, 15 + 4)
        self.assertRegex(ours.said, r'keeps it back for 1[0-5] s more at most')
        self.end_of(ours)

    def test_a_try_within_the_lock_delay_is_refused_and_told_why(self):
        holder = self.hold('job')
        self.consul.destroy_session(self.session_of('job'))
        self.assertEqual(76, holder.end(), holder.said)
        done = self.run_lock('job', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode, done.stderr)
        self.assertIn('lock-delay', done.stderr)
        done = self.run_lock('job', '--wait', '10s', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)


class Permits(Faults):
    """Each has a session of its own, and no lock-delay."""

    def lose(self, away):
        holder = self.hold('pool', '-n', '1')
        contender, = (key for key in self.consul.keys('pool/') if not key.endswith('/.lock'))
        began = boot_time()
        away(contender)
        self.assertEqual(76, holder.end(), holder.said)
        self.assertLess(boot_time() - began, 3, 'it was told late')
        done = self.run_lock('pool', '-n', '1', '--no-wait', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)

    def test_whose_session_ends(self):
        self.lose(lambda contender: self.consul.destroy_session(
            self.consul.key(contender)['Session']))

    def test_whose_contender_is_deleted(self):
        self.lose(lambda contender: self.consul.must('DELETE', f'/v1/kv/{contender}'))


class KeysVanish(Faults):
    APART = True

    def test_deleted_under_a_holder_and_made_anew_by_the_next(self):
        """A key that is deleted takes the number of its grants with it; tokens go on."""
        holder = self.begin_writing('job', 'first')
        token = self.granted(holder)
        waiter = self.begin_writing('job', 'second')
        wait_until(lambda: waiter.said, 'the second waits')
        self.consul.must('DELETE', '/v1/kv/job/.lock')
        deleted = boot_time()
        self.assertGreater(self.granted(waiter), token)
        self.assertLess(self.writes(waiter) - deleted, 3, 'there is no lock-delay')
        self.assertEqual(76, holder.end(), holder.said)
        self.assertLess(self.times(holder)[-1] - deleted, 3)
        self.assertEqual(1, self.consul.key('job/.lock')['LockIndex'])
        self.end_of(waiter)

    def test_tokens_of_many_who_follow_each_other(self):
        tokens = []
        for _ in range(5):
            done = self.run_lock('job', '--', 'sh', '-c', 'echo $TRINCO_TOKEN')
            self.assertEqual(0, done.returncode, done.stderr)
            tokens.append(int(done.stdout))
            self.assertEqual([], self.consul.keys())
        self.assertEqual(sorted(set(tokens)), tokens)

    def test_flags_of_somebody_else(self):
        """A key that is no lock."""
        self.consul.must('PUT', '/v1/kv/job/.lock?flags=7', 'data')
        sentence = self.mistake('lock', 'job', '--', 'true', code=64)
        self.assertIn('job/.lock', sentence)
        self.assertEqual('data', self.consul.key('job/.lock')['Value'])
        self.consul.must('DELETE', '/v1/kv/job/.lock')


if __name__ == '__main__':
    main(at_a_time=4)
