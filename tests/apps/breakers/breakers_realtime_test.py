#!/usr/bin/env python3
"""`trinco breakers` from outside: every verb, every format, and what is said about mistakes."""

import fcntl
import getpass
import json
import os
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import termios

from scene import PATIENCE, PROGRAM, Scene, main, wait_until

VERBS = {'trip': 'open', 'force-open': 'forced_open', 'disable': 'disabled',
         'observe': 'observing'}


class Looking(Scene):
    def test_an_empty_store_says_so(self):
        for words in (['breakers'], ['breakers', 'ls'], ['breaker', 'ls'],
                      ['breakers', 'ls', 'x*']):
            code, out, err = self.run_program(*words)
            self.assertEqual((0, ''), (code, out))
            self.assertRegex(err, r'\Atrinco: the store [^\n]+ has no (such )?breakers [^\n]+\n\Z')
        said = json.loads(self.answer('breakers', '-o', 'json'))
        self.assertEqual([], said['breakers'])
        self.assertEqual('', self.answer('breakers', '-o', 'name'))

    def test_ls_is_a_row_a_breaker(self):
        self.fail_calls(1, name='pay')
        self.fail_calls(5, '--open-for', '1h', name='rates')
        rows = self.answer('breakers').splitlines()
        self.assertEqual('NAME STATE SINCE NEXT FAILED LIMIT CALLS VOTERS REASON'.split(),
                         rows[0].split())
        self.assertRegex(rows[1], r'^pay +closed +- +- +100 % +50 % +1 +1/1 +-$')
        self.assertRegex(rows[2], r'^rates +open +\d.*? +(1 h|59 min).*? +- +50 % +0 +0/1 +'
                                  r'failure_rate$')
        self.assertEqual('pay\nrates\n', self.answer('breakers', '-o', 'name'))
        self.answer('breakers', 'force-open', 'pay', '--for', '2h', '--reason', 'maintenance ' * 9)
        lines = self.answer('breakers', 'ls').splitlines()
        self.assertRegex(lines[1], r'^pay +forced_open +(-|\d.*) +(2 h|1 h 59 min) +.* '
                                   r'(maintenance +){9}\(by \S+\)$')
        # A terminal takes no more than its width, and all of that.
        for width in (80, 120):
            lines = self.on_terminal(width, 'breakers', 'ls').splitlines()
            self.assertRegex(lines[1], r' mainten.*\.\.\.$')
            self.assertEqual(width, max(len(line) for line in lines))
        self.answer('breakers', 'set', 'pay', 'failure_rate=0.25')
        lines = self.answer('breakers', 'ls', 'pay').splitlines()
        self.assertRegex(
            lines[1], r'^pay +forced_open +(-|\d.*) +(2 h|1 h 59 min) .* 25 % +1 .* '
                      r'set, 30 d +maint')
        self.answer('breakers', 'resume', 'pay')
        self.assertNotIn('NEXT', self.answer('breakers', 'ls', 'pay'))

    def on_terminal(self, width, *words):
        """What the program says to a terminal of so many columns."""
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack('HHHH', 24, width, 0, 0))
        process = self.start(*words, stdout=its)
        os.close(its)
        self.assertEqual(0, process.wait(), process.stderr.read())
        return os.read(ours, 65_536).decode()

    def test_ls_takes_names_and_prefixes(self):
        for name in ('pay', 'payments', 'rates', 'other'):
            self.call_ends(0, '--', 'true', name=name)
        for words, names in (([], 'other pay payments rates'), (['pay'], 'pay'),
                             (['pay*'], 'pay payments'), (['rates', 'pay*', 'pay'],
                                                          'pay payments rates'),
                             (['*'], 'other pay payments rates'), (['x*'], '')):
            with self.subTest(words):
                self.assertEqual(names.split(),
                                 self.answer('breakers', 'ls', *words, '-o', 'name').split())
        err = self.mistake('breakers', 'ls', 'pay', 'ratse', '-o', 'json')
        self.assertIn('did you mean rates?', err)
        self.assertIn('A-Z', self.mistake('breakers', 'ls', 'p y'))
        self.assertIn('A-Z', self.mistake('breakers', 'ls', 'p y*'))

    def test_ls_pages_through_all(self):
        self.call_ends(0, '--', 'true')
        with sqlite3.connect(self.file) as db:
            columns = [row[1] for row in db.execute('PRAGMA table_info(breakers)')
                       if row[1] not in ('id', 'name')]
            list_of = ', '.join(columns)
            for i in range(450):
                db.execute(f'INSERT INTO breakers(name, {list_of}) SELECT ?, {list_of} '
                           "FROM breakers WHERE name = 'pay'", (f'copy{i:03}',))
        db.close()
        names = self.answer('breakers', '-o', 'name').split()
        self.assertEqual([f'copy{i:03}' for i in range(450)] + ['pay'], names)
        self.assertEqual(452, len(self.answer('breakers', 'ls').splitlines()))
        self.assertEqual(100, len(self.answer('breakers', 'ls', 'copy3*', '-o', 'name').split()))

    def test_json_of_ls_and_show(self):
        self.fail_calls(1)
        said = json.loads(self.answer('breakers', 'ls', '-o', 'json'))
        self.assertEqual(2, said['schema'])
        self.assertEqual('default', said['namespace'])
        self.assertTrue(said['store'].startswith('local:'))
        (row,) = said['breakers']
        breaker = self.show()
        for key in ('name', 'error', 'state', 'in_force', 'reason', 'override', 'remaining_ms',
                    'backoff_level', 'era', 'rev', 'since_ms', 'failed_share', 'opens_at_share',
                    'why', 'window', 'totals', 'voters', 'probes_left', 'options_set'):
            self.assertIn(key, row)
            self.assertEqual(row[key], breaker[key], key)
        self.assertEqual({'success': 0, 'failure': 1, 'slow_success': 0, 'slow_failure': 0,
                          'ignored': 0, 'rejected': 0}, row['window'])
        self.assertEqual({'failing': 1, 'live': 1, 'quorum': 2}, row['voters'])
        self.assertEqual((1, 0.5, None), (row['failed_share'], row['opens_at_share'],
                                          row['override']))
        self.assertEqual(18, len(breaker['options']))
        self.assertIn('"window_ms":300000,', self.answer('breakers', 'show', 'pay', '-o', 'json'))
        (instance,) = breaker['instances']
        self.assertEqual(1, instance['window']['failure'])
        self.assertEqual('latest', instance['options'])
        self.assertEqual({'instance', 'voter', 'heard_ms', 'options', 'window'}, set(instance))
        self.assertIsNone(breaker['measured'])  # no server is asked

    def test_show_is_the_whole_of_one(self):
        self.fail_calls(5, '--open-for', '1h', '--failure-count', '5')
        page = self.answer('breakers', 'show', 'pay')
        self.assertRegex(page, r'\Apay is open \(failure_count\); probes begin in [^\n]+\n')
        self.assertEqual('at least 5 calls within 5 min had failed, as 1 voter or more saw',
                         self.show()['why'])
        for part in ('why      at least 5 calls within 5 min had failed, as 1 voter or more saw\n',
                     'totals   0 succeeded, 5 failed', 'opens at 50 % of at least 5 in 5 min, or '
                     'at 5 failures', 'options  of ', ':call:', 'probes   5 of 5 left',
                     '  open_for          1 h\n', 'it begins anew with every change of state'):
            self.assertIn(part, page)
        self.assertRegex(page, r'\n\nINSTANCE +VOTER [^\n]+\n(\S+ +\S+ +0 +0 +\d+ [^\n]+\n)+\Z')
        self.answer('breakers', 'reset', 'pay')
        self.fail_calls(1)
        page = self.answer('breakers', 'show', 'pay')
        self.assertRegex(page, r'(?m)^INSTANCE +VOTER +CALLS .*\n'
                               r'\S+:call:\S+ +(?![0-9a-f]{9})\S+ +1 ')
        self.assertNotIn('begins anew', page)
        self.assertNotIn('why  ', page)
        self.assertIsNone(self.show()['why'])
        # All of them are listed, also those without a call in the window.
        rows = page.split('\nINSTANCE ')[1].splitlines()[1:]
        self.assertEqual(sorted(one['instance'] for one in self.show()['instances']),
                         sorted(row.split()[0] for row in rows))
        self.assertGreater(len(rows), 1)
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.assertIn('options  set by an operator', self.answer('breakers', 'show', 'pay'))
        self.assertEqual('pay\n', self.answer('breakers', 'show', 'pay', '-o', 'name'))
        self.assertIn('did you mean pay?', self.mistake('breakers', 'show', 'apy'))
        self.assertIn("'trinco breakers' lists", self.mistake('breakers', 'show', 'frobnicate'))
        self.mistake('breakers', 'show')

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.fail_calls(1)
        for words in (['ls'], ['show', 'pay'], ['reset', 'pay'], ['watch']):
            with self.subTest(words), open('/dev/full', 'wb') as full:
                done = subprocess.run([PROGRAM, 'breakers', *words], stdout=full,
                                      stderr=subprocess.PIPE, text=True, env=self.environment,
                                      timeout=PATIENCE, check=False)
                self.assertEqual(74, done.returncode)
                self.assertRegex(done.stderr, r'\Atrinco: standard output [^\n]+\n\Z')


class Operating(Scene):
    def setUp(self):
        super().setUp()
        self.call_ends(0, '--', 'true')

    def operate(self, verb, *words):
        said = json.loads(self.answer('breakers', verb, 'pay', *words, '-o', 'json'))
        self.assertEqual({'schema', 'store', 'namespace', 'breaker'}, set(said))
        breaker = said['breaker']
        self.assertEqual((2, 'pay', None), (said['schema'], breaker['name'], breaker['error']))
        return breaker

    def test_every_verb_answers_with_the_state_after_it(self):
        who = f'{getpass.getuser()}@{os.uname().nodename}'
        for verb, state in VERBS.items():
            said = self.operate(verb, '--reason', 'because of rain')
            self.assertEqual(state, said['in_force'])
            text = said['reason'] or said['override']['reason']
            self.assertIn('because of rain', text)
            self.assertIn(f'(by {who[:64]})', text)
            self.assertEqual(state, self.state())
        said = self.operate('resume')
        self.assertEqual(('open', None), (said['in_force'], said['override']))
        said = self.operate('reset', '--reason', 'all is well')
        self.assertEqual('closed', said['in_force'])
        self.assertIn('all is well', said['reason'])
        line = self.answer('breakers', 'force-open', 'pay', '--for', '2h')
        self.assertRegex(line, r'\Apay is forced open, by an operator: forced open \(by [^\n]+\); '
                               r'for another (2 h|1 h 59 min); beneath it is closed\n\Z')
        self.assertEqual('pay\n', self.answer('breakers', 'resume', 'pay', '-o', 'name'))

    def test_how_long_it_lasts(self):
        self.assertGreater(self.operate('force-open')['override']['remaining_ms'], 86_390_000)
        self.assertLessEqual(self.operate('disable', '--for', '5s')['override']['remaining_ms'],
                             5_000)
        self.operate('resume')
        self.assertGreater(self.operate('trip', '--for', '1h')['remaining_ms'], 3_590_000)
        self.operate('reset')
        self.assertLessEqual(self.operate('trip')['remaining_ms'], 10_000)
        self.operate('observe', '--for', '1ms')
        wait_until(lambda: self.state() == 'open', 'the end of the override')
        for words in (['--for', '31d'], ['--for', '0s'], ['--for', '-1s'], ['--for', '3']):
            self.assertIn('--for', self.mistake('breakers', 'trip', 'pay', *words))
        self.assertIn('--for', self.mistake('breakers', 'reset', 'pay', '--for', '3s'))

    def test_a_name_that_is_not_there_is_a_mistake(self):
        for verb in (*VERBS, 'reset', 'resume', 'unset'):
            err = self.mistake('breakers', verb, 'paay')
            self.assertIn('has no breaker "paay"', err)
            self.assertIn('did you mean pay?', err)
        self.mistake('breakers', 'set', 'paay', 'window=2s')
        self.mistake('breakers', 'forget', 'paay', '--confirm', 'paay')
        self.assertEqual('pay\n', self.answer('breakers', '-o', 'name'))
        for verb in VERBS:
            self.answer('breakers', verb, 'new-' + verb, '--create')
        self.answer('breakers', 'set', 'new-set', 'window=2s', '--create')
        self.assertEqual(6, len(self.answer('breakers', '-o', 'name').split()))
        self.assertIn('--create', self.mistake('breakers', 'reset', 'x', '--create'))

    def test_a_reason_is_one_plain_line_of_200_bytes(self):
        self.operate('trip', '--reason', 'x' * 200)
        self.operate('trip', '--reason', 'wegen Überlast – später mehr')
        err = self.mistake('breakers', 'trip', 'pay', '--reason', 'x' * 201)
        self.assertIn('201 bytes; at most 200', err)
        for bad in ('two\nlines', '\x1b[31mred', 'tab\there'):
            self.assertIn('control characters',
                          self.mistake('breakers', 'trip', 'pay', '--reason', bad))

    def test_set_changes_options_for_everybody(self):
        text = self.answer('breakers', 'set', 'pay', 'failure_rate=0.3', 'window=20s')
        self.assertRegex(text, r"\Apay: failure_rate=0.3 window=20s governs for 30 d, [^\n]+\n")
        breaker = self.show()
        self.assertEqual((0.3, 20_000, True), (breaker['options']['failure_rate'],
                                               breaker['options']['window_ms'],
                                               breaker['options_set']))
        # One after another adds up.
        said = json.loads(self.answer('breakers', 'set', 'pay', 'minimum_calls=2', '-o', 'json'))
        self.assertEqual((2, 20_000), (said['breaker']['options']['minimum_calls'],
                                       said['breaker']['options']['window_ms']))
        self.fail_calls(2, '--window', '1min', '--minimum-calls', '100')
        self.assertEqual('open', self.state())
        said = json.loads(self.answer('breakers', 'unset', 'pay', '-o', 'json'))['breaker']
        self.assertEqual((False, 60_000, 100), (said['options_set'], said['options']['window_ms'],
                                                said['options']['minimum_calls']))
        self.assertEqual('pay\n', self.answer('breakers', 'unset', 'pay', '-o', 'name'))

    def test_set_ends_by_itself(self):
        self.answer('breakers', 'set', 'pay', 'window=20s', '--for', '1s')
        self.assertEqual(20_000, self.show()['options']['window_ms'])
        # Any call removes what has run out.
        wait_until(lambda: self.call('--', 'true')[0] == 0 and not self.show()['options_set'],
                   'the end of what was set')
        self.assertEqual(300_000, self.show()['options']['window_ms'])

    def test_until_when_options_are_set_is_told(self):
        self.answer('breakers', 'set', 'pay', 'window=20s', '--for', '1h')
        self.assertRegex(self.answer('breakers', 'ls', 'pay'), r'\n[^\n]* set, (1 h|59 min)')
        self.assertRegex(self.answer('breakers', 'show', 'pay'),
                         r'options +set by an operator, for')
        self.assertTrue(3_500_000 < self.show()['set_remaining_ms'] <= 3_600_000)
        said = self.answer('breakers', 'set', 'pay', 'quorum=1', '--for', '2h')
        self.assertIn('quorum=1 governs for 2 h, as does now what was set before', said)
        self.assertGreater(self.show()['set_remaining_ms'], 7_000_000)
        self.answer('breakers', 'unset', 'pay')
        self.assertIsNone(self.show()['set_remaining_ms'])

    def test_what_is_set_before_the_first_call_ends(self):
        self.answer('breakers', 'set', 'new', 'failure_rate=0.1', '--create')
        self.call('--', 'true', name='new')
        options = self.show('new')['options']
        # Beneath it is what calls are configured with.
        self.assertEqual((0.1, 5), (options['failure_rate'], options['minimum_calls']))
        self.answer('breakers', 'unset', 'new')
        self.assertEqual(0.5, self.show('new')['options']['failure_rate'])

    def test_set_says_what_is_wrong(self):
        for words, said in ((['window'], 'KEY=VALUE'), (['=3s'], 'KEY=VALUE'),
                            (['windw=3s'], 'did you mean window?'), (['window=3'], 'no unit'),
                            (['failure_rate=2'], 'failure_rate is "2"; allowed is more than 0'),
                            (['failure_rate=x'], 'allowed is more than 0'),
                            (['window=3s', 'window=4s'], 'twice'),
                            (['open_for=20min'], 'open_max is 5 min, but must be open_for'),
                            (['call_timeout=3s'], "process's own"), ([], 'KEY=VALUE')):
            with self.subTest(words):
                self.assertIn(said, self.mistake('breakers', 'set', 'pay', *words))
        self.assertFalse(self.show()['options_set'])
        self.answer('breakers', 'set', 'pay', 'open_for=20min', 'open_max=30min')

    def test_forget_begins_anew_and_wants_to_be_meant(self):
        self.operate('force-open')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.assertIn('say --confirm pay to go on', self.mistake('breakers', 'forget', 'pay'))
        self.assertIn('--confirm says "pya", but the name is "pay"',
                      self.mistake('breakers', 'forget', 'pay', '--confirm', 'pya'))
        self.assertEqual('forced_open', self.state())
        said = self.operate('forget', '--confirm', 'pay')
        self.assertEqual(('closed', None), (said['in_force'], said['override']))
        breaker = self.show()
        self.assertEqual((False, 0), (breaker['options_set'], breaker['totals']['success']))

    def test_a_damaged_record_is_named_and_forgotten(self):
        with sqlite3.connect(self.file) as db:
            db.execute("UPDATE breakers SET record = x'00' WHERE name = 'pay'")
        db.close()
        err = self.mistake('breakers', 'show', 'pay', code=69)
        self.assertIn("cannot be read: its record is damaged; "
                      "'trinco breakers forget pay --confirm pay", err)
        self.mistake('breakers', 'reset', 'pay', code=69)
        code, out, err = self.call('--', 'echo', 'hi')
        self.assertEqual((0, 'hi\n'), (code, out))
        self.assertRegex(err, r'\Atrinco: could not say whether pay is closed at [^\n]+: [^\n]+; '
                              r'the call is made without its breaker\n\Z')
        self.assertEqual('closed', self.operate('forget', '--confirm', 'pay')['in_force'])
        self.call_ends(0, '--', 'true')
        self.assertEqual(1, self.show()['totals']['success'])

    def test_a_store_that_cannot_be_used(self):
        for words in (['ls'], ['show', 'pay'], ['watch'], ['trip', 'pay'],
                      ['set', 'pay', 'quorum=1']):
            self.mistake('breakers', *words, '--breakers', 'local:relative')
            self.assertIn('/proc/x.db',
                          self.mistake('breakers', *words, '--breakers', 'local:/proc/x.db',
                                       code=77))


class Watching(Scene):
    def lines_of(self, process):
        while True:
            line = process.stdout.readline()
            if not line:
                return
            yield line.rstrip('\n')

    def watch(self, *words):
        process = self.start('breakers', 'watch', *words)
        return process, self.lines_of(process)

    def test_a_line_a_change_from_what_there_is(self):
        self.call_ends(0, '--', 'true')
        process, lines = self.watch()
        self.assertRegex(next(lines), r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  pay is closed$')
        self.answer('breakers', 'trip', 'pay', '--for', '50ms')
        self.assertRegex(next(lines), r'pay is open \(operator trip, by [^)]+\); probes begin ')
        self.wait_for_probes()
        self.call_ends(0, '--', 'true')
        self.assertRegex(next(lines), r'pay is half open \(probing\)$')
        for _ in range(4):
            self.call_ends(0, '--', 'true')
        self.assertRegex(next(lines), r'pay is closed \(recovered\)$')
        self.call_ends(0, '--', 'true', name='other')
        self.assertRegex(next(lines), r'other is closed$')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.assertRegex(next(lines), r'other options govern; pay is closed')
        self.answer('breakers', 'disable', 'other', '--reason', 'x')
        self.assertRegex(next(lines), r'other is disabled: .* by an operator: x \(by ')
        process.send_signal(signal.SIGINT)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertEqual('', process.stderr.read())

    def test_json_lines_of_some(self):
        self.call_ends(0, '--', 'true')
        self.call_ends(0, '--', 'true', name='rates')
        process, lines = self.watch('pay*', '-o', 'json')
        begin = json.loads(next(lines))
        self.assertEqual((2, 'begin', 'pay', 'closed'),
                         (begin['schema'], begin['change'], begin['breaker']['name'],
                          begin['breaker']['in_force']))
        self.answer('breakers', 'trip', 'rates')
        self.answer('breakers', 'force-open', 'pay')
        self.answer('breakers', 'trip', 'payments', '--create')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        changes = [json.loads(next(lines)) for _ in range(3)]
        self.assertEqual([('override', 'pay'), ('begin', 'payments'), ('options', 'pay')],
                         [(c['change'], c['breaker']['name']) for c in changes])
        self.assertTrue(all(re.match(r'\d{4}-.*Z$', c['at']) for c in changes))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))

    def test_ends_when_nobody_reads(self):
        self.call_ends(0, '--', 'true')
        process, lines = self.watch('-o', 'name')
        self.assertEqual('pay', next(lines))
        process.stdout.close()
        self.assertEqual(74, process.wait(PATIENCE))
        self.assertEqual('', process.stderr.read())

    def test_a_signal_that_is_ignored_does_not_end_it(self):
        self.call_ends(0, '--', 'true')
        process = subprocess.Popen(
            ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh', PROGRAM, 'breakers', 'watch', '-o',
             'name'], env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        lines = self.lines_of(process)
        self.assertEqual('pay', next(lines))
        process.send_signal(signal.SIGHUP)
        self.call_ends(0, '--', 'true', name='other')
        self.assertEqual('other', next(lines))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))

    def test_leaves_nothing_behind(self):
        self.call_ends(0, '--', 'true')
        before = sorted(p.name for p in self.folder.iterdir())
        process, lines = self.watch()
        next(lines)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        self.assertEqual(before, sorted(p.name for p in self.folder.iterdir()))


if __name__ == '__main__':
    main()
