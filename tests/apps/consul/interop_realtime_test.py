#!/usr/bin/env python3
"""`trinco lock` beside Consul's own `consul lock` and its client of Go, on a real Consul: the same
locks and semaphores, both ways. Takes the program's path."""

from consul_scene import ConsulScene, boot_time, is_alive, main, pause, wait_until

# Adds one to what a file says, with a look for others who are in: a folder, which one alone can
# make. Its words: the place.
COUNT = ('mkdir "$0/in" || echo "two in" >> "$0/violations"; n=$(cat "$0/counter"); sleep 0.02; '
         'echo $((n + 1)) > "$0/counter"; rmdir "$0/in"')
# The same for places: a file for each, and never more of them than so many. Whoever is in stays
# until so many have been in at a time, once. Its words: the place, how many.
STAY = ('touch "$0/in-$$"; n=$(ls "$0" | grep -c ^in-); echo "$n" >> "$0/numbers"; '
        '[ "$n" -le "$1" ] || echo "$n in" >> "$0/violations"; '
        '[ "$n" -lt "$1" ] || touch "$0/full"; i=0; '
        'while [ ! -e "$0/full" ] && [ $i -lt 200 ]; do sleep 0.1; i=$((i + 1)); done; '
        'rm "$0/in-$$"')


class Interop(ConsulScene):
    def ground(self):
        """A folder for what COUNT, STAY and the client of Go note."""
        place = self.folder / 'ground'
        place.mkdir()
        (place / 'counter').write_text('0\n')
        return place

    def assert_sound(self, place):
        self.assertFalse((place / 'violations').exists(),
                         (place / 'violations').exists() and (place / 'violations').read_text())

    @staticmethod
    def quoted(script, *words):
        """For `consul lock`, which hands the words to a shell."""
        return "exec sh -c '" + script.replace("'", "'\\''") + "' " + ' '.join(map(str, words))


class OneAtATime(Interop):
    def test_consul_waits_for_us(self):
        ours = self.hold('job')
        theirs = self.start_consul('job', '--', 'echo in')
        wait_until(lambda: len(self.consul.sessions()) == 2, 'it waits')
        pause(0.5)
        self.assertTrue(is_alive(ours.command))
        began = boot_time()
        self.assertEqual(0, ours.let_go())
        self.assertEqual('in', theirs.line())
        # Given back, not lost: nothing is held back for it.
        self.assertLess(boot_time() - began, 3)
        self.assertEqual(0, theirs.end(), theirs.said)

    def test_we_wait_for_consul(self):
        theirs = self.hold_by_consul('job')
        done = self.run_lock('job', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode, done.stderr)
        ours = self.wait_for_lock('job', '--', 'echo', 'in')
        pause(0.5)
        self.assertIsNone(ours.process.poll())
        began = boot_time()
        self.assertEqual(0, theirs.let_go())
        self.assertEqual('in', ours.line())
        self.assertLess(boot_time() - began, 3)
        self.assertEqual(0, ours.end(), ours.said)

    def test_who_holds_for_consul_is_listed(self):
        theirs = self.hold_by_consul('job')
        self.assertEqual(1, len(self.listed('job')['holders']))
        self.assertEqual(0, theirs.let_go())
        self.assertEqual([], self.listed('job')['holders'])

    def test_a_crowd_of_all_kinds_counts_without_a_miss(self):
        place = self.ground()
        go = self.go()
        for who in ('g', 'h'):
            go.send(who, 'visit', 'crowd/.lock', 10, place)
        running = []
        for _ in range(4):
            running.append(self.start('crowd', '--', 'sh', '-c', COUNT, str(place)))
            running.append(self.start_consul('crowd', '--', self.quoted(COUNT, place)))
        for one in running:
            self.assertEqual(0, one.end(), one.said)
        self.assertEqual({'g visited', 'h visited'}, {go.line(), go.line()})
        self.assert_sound(place)
        self.assertEqual('28\n', (place / 'counter').read_text())
        self.consul.must('DELETE', '/v1/kv/crowd/?recurse')  # that of the client of Go stays

    def test_the_client_of_go(self):
        go = self.go()
        ours = self.hold('n')
        self.assertEqual('g taken', go.ask('g', 'try', 'n/.lock'))
        go.send('g', 'lock', 'n/.lock')
        pause(0.5)
        self.assertEqual(0, ours.let_go())
        said = go.line().split()
        self.assertEqual(['g', 'locked', 'n/.lock'], said[:3])
        self.assertEqual(said[3], self.holder_of('n'))
        self.assertEqual(75, self.run_lock('n', '--no-wait', '--', 'true').returncode)
        waiter = self.wait_for_lock('n', '--', 'sh', '-c', 'echo $TRINCO_TOKEN')
        held = self.consul.key('n/.lock')['ModifyIndex']
        self.assertEqual('g unlocked', go.ask('g', 'unlock', 'n/.lock'))
        self.assertGreater(int(waiter.line()), held)
        self.assertEqual(0, waiter.end())


class Several(Interop):
    APART = True

    def test_permits_of_both(self):
        ours = self.hold('pool', '-n', '3')
        theirs = self.hold_by_consul('pool', '-n=3')
        more = self.hold('pool', '-n', '3')
        done = self.run_lock('pool', '-n', '3', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode, done.stderr)
        waits = self.start_consul('pool', '-n=3', '--', 'echo in')
        wait_until(lambda: len(self.consul.keys('pool/')) == 5, 'its contender')
        pause(0.5)
        began = boot_time()
        self.assertEqual(0, more.let_go())
        self.assertEqual('in', waits.line())
        self.assertLess(boot_time() - began, 3)
        self.assertEqual(0, waits.end(), waits.said)
        fourth = self.hold('pool', '-n', '3')
        fifth = self.start('pool', '-n', '3', '--', 'echo', 'in')
        pause(0.5)
        self.assertIsNone(fifth.process.poll())
        self.assertEqual(0, theirs.let_go(), theirs.said)
        self.assertEqual('in', fifth.line())
        self.assertEqual([0, 0, 0], [fifth.end(), fourth.let_go(), ours.let_go()])

    def test_never_more_than_n_in_a_crowd_of_all_kinds(self):
        place = self.ground()
        go = self.go()
        for who in ('g', 'h', 'i'):
            go.send(who, 'stay', 'pool', 3, 3, place)
        running = []
        for _ in range(5):
            running.append(self.start('pool', '-n', '3', '--', 'sh', '-c', STAY, str(place), '3'))
            running.append(self.start_consul('pool', '-n=3', '--', self.quoted(STAY, place, 3)))
        for one in running:
            self.assertEqual(0, one.end(), one.said)
        self.assertEqual({'g stayed', 'h stayed', 'i stayed'}, {go.line() for _ in range(3)})
        self.assert_sound(place)
        numbers = [int(line) for line in (place / 'numbers').read_text().split()]
        self.assertEqual(19, len(numbers))
        self.assertEqual(3, max(numbers), 'never more, and not one after another')
        self.consul.must('DELETE', '/v1/kv/pool/?recurse')

    def test_another_number_is_refused_on_both_sides(self):
        theirs = self.hold_by_consul('pool', '-n=3')
        self.assertIn('a semaphore with 3 permits, not 2',
                      self.mistake('lock', 'pool', '-n', '2', '--', 'true', code=64))
        self.assertEqual(0, theirs.let_go(), theirs.said)
        ours = self.hold('pool', '-n', '2')
        refused = self.start_consul('pool', '-n=3', '--', 'true')
        self.assertEqual(1, refused.end())
        self.assertIn('limit', refused.said + refused.process.stdout.read())
        self.assertEqual(0, ours.let_go())

    def test_a_mutex_and_permits_of_one_name_are_not_mixed(self):
        theirs = self.hold_by_consul('pool', '-n=3')
        sentence = self.mistake('lock', 'pool', '--', 'true', code=64)
        self.assertIn('is not that of a lock but of a semaphore', sentence)
        self.assertEqual(0, theirs.let_go(), theirs.said)
        theirs = self.hold_by_consul('pool')
        sentence = self.mistake('lock', 'pool', '-n', '3', '--', 'true', code=64)
        self.assertIn('is not that of a semaphore but of a lock', sentence)
        self.assertEqual(0, theirs.let_go(), theirs.said)
        ours = self.hold('pool')
        refused = self.start_consul('pool', '-n=3', '--', 'true')
        self.assertEqual(1, refused.end())
        self.assertEqual(0, ours.let_go())


if __name__ == '__main__':
    main()
