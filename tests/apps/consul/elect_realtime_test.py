#!/usr/bin/env python3
"""`trinco elect` on a real Consul, and beside `consul lock`. Takes the program's path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'elect'))
from consul_scene import LOCK_DELAY, TTL, ConsulScene, boot_time, is_alive, main, wait_until
from elections import Common, Elections


class OnConsul(Elections, ConsulScene):
    def stand_behind(self, name, *options, ahead, **how):
        """Places are not told."""
        one = self.candidate(name, '--verbose', *options, **how)
        wait_until(lambda: one.said, f'{ahead} are ahead')
        return one

    test_environment = Common.test_the_commands_code_and_environment
    test_observers = Common.test_observers_see_each_leader_and_that_there_is_none
    test_a_signal = Common.test_a_signal_ends_a_candidate_that_waits

    def test_who_cannot_lead_in_time_says_so(self):
        first = self.candidate('chief', '--value', 'alpha')
        self.leads(first)
        for how, what in ((('--no-wait',), 'is taken'),
                          (('--wait', '200ms'), 'could not be had within 200 ms')):
            done = self.elect('chief', *how, '--', 'true')
            self.assertEqual((75, f'trinco: the lead of "chief" {what}: held by "alpha"\n'),
                             (done.returncode, done.stderr))
        first.process.stdin.close()
        self.assertEqual(3, first.end())

    def test_in_turn_with_consul_lock(self):
        """An election and a lock of one name are one."""
        first = self.candidate('chief')
        token, _ = self.leads(first)
        self.assertEqual(75, self.run_lock('chief', '--no-wait', '-q', '--', 'true').returncode)
        theirs = self.start_consul('chief', '-pass-stdin', '--', 'echo in; exec cat')
        wait_until(lambda: len(self.consul.sessions()) == 2, 'it waits')
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        self.assertEqual('in', theirs.line())
        last = self.stand_behind('chief', ahead=1)
        self.assertEqual(0, theirs.let_go(), theirs.said)
        self.assertGreater(self.leads(last)[0], token)
        last.process.stdin.close()
        self.assertEqual(3, last.end())

    def test_a_leader_whose_session_ends_is_told_and_stands_again(self):
        first = self.candidate('chief', '--ttl', f'{TTL}s')
        token, command = self.leads(first)
        observer = self.observe('chief')
        self.assertTrue(self.next_leader(observer))
        session = self.holder_of('chief')
        asked = boot_time()
        self.consul.destroy_session(session)
        self.assertEqual('told', first.line())
        self.assertLess(boot_time() - asked, 3)
        self.assertIsNone(self.next_leader(observer))
        again, _ = self.leads(first)
        self.assertGreater(boot_time() - asked, LOCK_DELAY)
        self.assertGreater(again, token)
        self.assertFalse(is_alive(command))
        self.assertIn('it stands again', first.said)
        first.process.stdin.close()
        self.assertEqual(3, first.end())


if __name__ == '__main__':
    main()
