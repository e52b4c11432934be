#!/usr/bin/env python3
"""`trinco once` on a real etcd whose session is lost while its command runs. Takes the program's
path."""

from etcd_scene import EtcdScene, main
from fleet_once import LostRuns


class LostRunsOnEtcd(LostRuns, EtcdScene):
    TTL = 5  # longer than it takes to ask for what lives as far as is known
    LIVES = r'its session ends in about \d+ s unless it is renewed'

    def end_session_of(self, key):
        entry, = self.etcd.keys(f'.trinco/once/{key}/')
        self.etcd.must('lease', 'revoke', entry.rsplit('/', 1)[1])

    def test_resolved_it_is_run_at_once(self):
        self.lose('again')
        self.resolve('again')
        done = self.run_words([*self.once('again', '--wait', '0s'), '--', 'echo', 'ran'])
        self.assertEqual((0, 'ran\n', ''), (done.returncode, done.stdout, done.stderr))


if __name__ == '__main__':
    main()
