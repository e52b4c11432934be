#!/usr/bin/env python3
"""`trinco once` on a real Consul whose session is lost while its command runs: the lock of its key
is kept from everybody for the lock-delay, though nobody holds it. Takes the program's path."""

from consul_scene import ConsulScene, main
from fleet_once import GONE, LostRuns


class LostRunsOnConsul(LostRuns, ConsulScene):
    TTL = 10
    LIVES = 'if it was killed, its session ends one to two times 10 s after its last renewal'

    def end_session_of(self, key):
        self.consul.destroy_session(self.holder_of(f'.trinco/once/{key}'))

    def test_within_the_lock_delay_nobody_is_said_to_hold_it(self):
        self.lose('again')
        code, said = self.ask('again', '--on-interrupted', 'rerun', wait='500ms')
        self.assertEqual(75, code, said)
        self.assertRegex(said, r'could not be begun within 500 ms, though nobody holds its lock '
                         r'\(' + GONE + r'\): its lock [^;]*lock-delay')
        self.resolve('again')
        code, said = self.ask('again')
        self.assertEqual(75, code, said)
        self.assertRegex(said, r'though nobody holds its lock: its lock [^;]*lock-delay')
        done = self.run_words([*self.once('again', '--wait', '15s'), '--', 'echo', 'ran'])
        self.assertEqual((0, 'ran\n', ''), (done.returncode, done.stdout, done.stderr))


if __name__ == '__main__':
    main()
