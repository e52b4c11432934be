"""What the tests of `trinco elect` share, on whichever store: candidates, observers, leaders."""

import json
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'lock'))
import scene  # noqa: E402
from scene import PROGRAM, Scene, wait_until  # noqa: E402

# Says its token, and goes on until it is asked to end; counts how often that was.
LEADER = ('trap "echo told; exit 0" TERM; echo $TRINCO_TOKEN $$; '
          'while :; do read -r line || exit 3; echo "$line"; done')
STUBBORN = 'trap "" TERM; echo $TRINCO_TOKEN $$; while :; do sleep 0.01; done'


class Elections:
    """For a Scene."""

    def candidate(self, name, *options, script=LEADER, **how):
        """Stands; its first line comes when it leads."""
        return self.start_elect(name, *options, '--', 'sh', '-c', script, **how)

    def start_elect(self, name, *words, **how):
        one = scene.Lock([PROGRAM, 'elect', name, *words], env=self.environment, **how)
        self.addCleanup(one.close)
        return one

    def leads(self, one):
        """Waits until it leads; the token and the process of its command."""
        token, pid = one.line().split()
        return int(token), int(pid)

    def elect(self, name, *words):
        return self.run_words([PROGRAM, 'elect', name, *words])

    def observe(self, name, form='json'):
        return self.start_elect(name, '--observe', '-o', form)

    def next_leader(self, observer):
        """Of the next line: the leader's value, None for nobody."""
        said = json.loads(observer.line())
        self.assertEqual((1, 'leader'), (said['schema'], said['change']), said)
        return said['leader'] and said['leader']['value']

    def stand_behind(self, name, *options, ahead, **how):
        one = self.candidate(name, '--verbose', *options, **how)
        wait_until(lambda: f'{ahead} ahead' in one.said, f'the place of a candidate: {one.said}')
        return one


class ElectionScene(Elections, Scene):
    pass


class Common(Elections):
    """What must hold on every store."""

    def test_the_commands_code_and_environment(self):
        done = self.elect('chief', '--', 'sh', '-c', 'echo $TRINCO_LOCK $TRINCO_LEASE; exit 7')
        self.assertEqual((7, ''), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r'\Achief \S+\n\Z')
        self.assertEqual(127, self.elect('chief', '--', 'no-such-command-here').returncode)
        self.assertEqual(143, self.elect('chief', '--', 'sh', '-c', 'kill -TERM $$').returncode)
        self.assertEqual(0, self.elect('chief', '--no-wait', '--', 'true').returncode)

    def test_the_next_leads_when_the_leader_is_killed(self):
        first = self.candidate('chief', '--ttl', '2s')
        token, command = self.leads(first)
        second = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        first.process.kill()
        later, _ = self.leads(second)
        self.assertGreater(later, token)
        self.assertFalse(scene.is_alive(command))
        second.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (second.line(), second.end()))

    def test_a_leader_that_is_asked_back_stands_again(self):
        first = self.candidate('chief', '--value', 'one', '--ttl', '2s')
        token, command = self.leads(first)
        self.ask_back('chief')
        self.assertEqual('told', first.line())
        again, other = self.leads(first)
        self.assertGreater(again, token)
        self.assertNotEqual(command, other)
        self.assertFalse(scene.is_alive(command))
        self.assertIsNone(first.process.poll())
        wait_until(lambda: '; it stands again\n' in first.said, 'what it says of that')
        self.assertRegex(first.said, r'(?m)^trinco: the lead of "chief" [^\n]*; it stands again$')
        first.process.stdin.close()
        self.assertEqual(3, first.end())

    def test_it_stands_again_behind_those_who_wait(self):
        first = self.candidate('chief', '--ttl', '2s')
        second = None
        self.leads(first)
        second = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        self.ask_back('chief')
        self.assertEqual('told', first.line())
        middle, _ = self.leads(second)
        second.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (second.line(), second.end()))
        last, _ = self.leads(first)
        self.assertGreater(last, middle)
        first.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (first.line(), first.end()))

    def test_observers_see_each_leader_and_that_there_is_none(self):
        observer = self.observe('chief')
        self.assertIsNone(self.next_leader(observer))
        first = self.candidate('chief', '--value', 'alpha:1')
        self.leads(first)
        self.assertEqual('alpha:1', self.next_leader(observer))
        lines = self.observe('chief', 'table')
        self.assertRegex(lines.line(), r'\A\S+Z  chief is led by "alpha:1"(, token \d+)?\Z')
        names = self.observe('chief', 'name')
        self.assertEqual('alpha:1', names.line())
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        self.assertIsNone(self.next_leader(observer))
        self.assertRegex(lines.line(), r'\A\S+Z  chief has no leader\Z')
        self.assertEqual('', names.line())
        for one in (observer, lines, names):
            one.signal(signal.SIGTERM)
            self.assertEqual((0, ''), (one.end(), one.said))

    def test_who_cannot_lead_in_time_says_so(self):
        first = self.candidate('chief', '--value', 'alpha')
        self.leads(first)
        done = self.elect('chief', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: the lead of "chief" is taken: held for [^\n]* by '
                                      r'"alpha"\n\Z')
        done = self.elect('chief', '--wait', '200ms', '-q', '--code-not-acquired', '9', '--',
                          'true')
        self.assertEqual((9, ''), (done.returncode, done.stderr))
        first.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (first.line(), first.end()))

    def test_a_signal_ends_a_candidate_that_waits(self):
        first = self.candidate('chief')
        self.leads(first)
        second = self.stand_behind('chief', ahead=1)
        second.signal(signal.SIGTERM)
        self.assertEqual(143, second.end())
        first.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (first.line(), first.end()))

    def test_who_was_asked_to_end_does_not_stand_again(self):
        """The command takes its time to end, and the lead is lost meanwhile."""
        script = ('trap "echo told; sleep 60 & wait" TERM; echo $TRINCO_TOKEN $$; '
                  'while :; do sleep 0.01; done')
        first = self.candidate('chief', '--ttl', '3s', '--grace', '200ms', script=script)
        self.leads(first)
        first.signal(signal.SIGTERM)
        self.assertEqual('told', first.line())
        self.ask_back('chief')
        self.assertEqual(137, first.end())
        self.assertNotIn('stands again', first.said)

    def test_who_is_asked_to_end_while_the_command_is_stopped_does_not_stand_again(self):
        script = ('trap "echo told; sleep 60 & wait" TERM; echo $TRINCO_TOKEN $$; '
                  'while :; do sleep 0.01; done')
        first = self.candidate('chief', '--ttl', '6s', '--grace', '1s', script=script)
        self.leads(first)
        asking = threading.Thread(target=self.ask_back, args=('chief',))  # until it is given back
        asking.start()
        self.assertEqual('told', first.line())
        first.signal(signal.SIGTERM)
        self.assertEqual(137, first.end())
        asking.join()
        self.assertNotIn('stands again', first.said)

    def test_a_candidate_that_waits_goes_on_when_it_is_told_to_read_its_configuration(self):
        first = self.candidate('chief')
        self.leads(first)
        second = self.stand_behind('chief', ahead=1, start_new_session=True)
        second.signal(signal.SIGHUP)
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        self.leads(second)
        second.process.stdin.close()
        self.assertEqual(3, second.end())

    def test_a_candidate_whose_guardian_is_killed_stands_anew(self):
        first = self.candidate('chief')
        self.leads(first)
        second = self.stand_behind('chief', ahead=1)
        guardian = scene.only_child_of(second.pid)
        os.kill(guardian, signal.SIGKILL)
        wait_until(lambda: second.said.count('1 ahead') == 2, f'a second place: {second.said}')
        self.assertIn('the guardian of the command was killed while this one waited', second.said)
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        _, command = self.leads(second)
        self.assertEqual(second.pid, scene.parent_of(scene.parent_of(command)))
        second.process.stdin.close()
        self.assertEqual(3, second.end())

    def test_a_candidate_whose_time_ran_out_while_it_waited_never_leads_by_it(self):
        first = self.candidate('chief', '--ttl', '2s')
        token, _ = self.leads(first)
        second = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        second.signal(signal.SIGSTOP)
        wait_until(lambda: self.entries('chief') == 1, 'the end of the lease of the candidate')
        third = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        second.signal(signal.SIGCONT)
        wait_until(lambda: 'it queues anew' in second.said, 'what it says of that')
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        middle, _ = self.leads(third)  # and not the second
        self.assertGreater(middle, token)
        third.process.stdin.close()
        last, _ = self.leads(second)
        self.assertGreater(last, middle)
        second.process.stdin.close()
        self.assertEqual(3, second.end())
