#!/usr/bin/env python3
"""`trinco demo` as a newcomer sees it: what it shows, how long it takes, and that nothing is left
behind, however it ends. Takes the program's path. With DEMO_FULL=1 all acts are played in one
demonstration, too."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import at_once  # noqa: E402

PROGRAM = ''
WHOLE_TIME = 60
TICKET_CLAIMS = {
    'last_ticket_sold_twice_without_lock', 'last_ticket_sold_once_with_lock',
    'oversold_without_lock', 'sold_exactly_once_each', 'tokens_increase', 'killed_holder',
    'paused_wrapper', 'stale_token_refused'}
INVOICE_CLAIMS = {'lock_alone_charged_twice', 'once_charged_once', 'run_again_under_its_id',
                  'told_what_was_recorded'}
ESCAPE = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')
COLOUR = re.compile(r'\x1b\[[0-9;]*m')


def eventually(condition, limit):
    """Whether the condition came true within so many seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Demo(unittest.TestCase):
    APART = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='trinco-demo-test-')
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        self.mark = f'DEMO_TEST_MARK={uuid.uuid4()}'
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith('TRINCO_') and name != 'NO_COLOR'}
        name, value = self.mark.split('=')
        store = f'local:{self.place}/unused.db'
        self.environment.update({name: value, 'TMPDIR': str(self.place), 'TERM': 'xterm',
                                 'TRINCO_LOCKS': store, 'TRINCO_BREAKERS': store,
                                 'TRINCO_BREAKERS_MIRROR': 'none'})

    def processes(self):
        """Those of this test that live, however they were started."""
        found = []
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (folder / 'environ').read_bytes().split(b'\0'):
                    found.append(int(folder.name))
        return found

    def nothing_left(self):
        return not self.processes() and not list(self.place.iterdir())

    def assert_nothing_left(self):
        self.assertEqual([], self.processes())
        self.assertEqual([], list(self.place.iterdir()))

    def start(self, *words, **more):
        how = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   env=self.environment, text=True)
        started = subprocess.Popen([PROGRAM, 'demo', *words], **dict(how, **more))
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.stderr.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def result(self, demo, *words):
        """The last line of a --json that has ended well."""
        out, err = demo.communicate(timeout=WHOLE_TIME + 10)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertTrue(lines, err)
        self.assertEqual((0, ''), (demo.returncode, err), (words, lines[-1]))
        for line in lines:
            self.assertEqual(1, line['schema'])
        for line in lines[:-1]:
            self.assertLessEqual({'elapsed_ms', 'event', 'text', 'act'}, set(line))
            self.assertLessEqual(len(line['text']), 68, line)
        self.assertEqual('result', lines[-1]['event'])
        self.assertTrue(lines[-1]['ok'])
        self.assertTrue(lines[-1]['nothing_left'])
        self.assertEqual(7, lines[-1]['seed'])
        return lines[-1]

    def assert_tickets(self, tickets):
        self.assertEqual(dict.fromkeys(TICKET_CLAIMS, True), tickets['claims'])
        self.assertTrue(tickets['ok'])
        self.assertEqual((2, 1), (tickets['last_ticket']['sold_without_lock'],
                                  tickets['last_ticket']['sold_with_lock']))
        self.assertGreater(tickets['without_lock']['sold'], 100)
        locked = tickets['with_lock']
        self.assertEqual((100, 0, 0), (locked['sold'], locked['left'],
                                       locked['sold_more_than_once']))
        self.assertEqual(76, locked['paused']['exit_code'])
        self.assertEqual(137, locked['killed']['exit_code'])
        for victim in ('killed', 'paused', 'frozen'):
            self.assertGreater(locked[victim]['next_token'], locked[victim]['token'])
        self.assertTrue(locked['frozen']['late_write_refused'])

    def assert_invoice(self, invoice):
        self.assertEqual(dict.fromkeys(INVOICE_CLAIMS, True), invoice['claims'])
        self.assertEqual((2, 1), (invoice['lock']['charges'], invoice['once']['charges']))
        self.assertEqual('done', invoice['once']['provider_said'])
        self.assertTrue(invoice['once']['same_run'])

    def assert_breaker(self, breaker):
        self.assertTrue(breaker['ok'])
        self.assertTrue(breaker['claims'])
        self.assertNotIn(False, breaker['claims'].values())

    # Each of these two plays both acts at once, in one place: neither disturbs the other.

    def test_tickets_in_json_beside_breaker_on_a_terminal(self):
        began = time.monotonic()
        tickets = self.start('--json', '--seed', '7', '--only', 'tickets')
        shown, code = self.on_terminal('--only', 'breaker')
        result = self.result(tickets)
        self.assertIsNone(result['breaker'])
        self.assert_tickets(result['tickets'])
        self.assertEqual(0, code, shown[-3000:])
        self.assert_live_view(shown, 'gateway  ', 'breaker  ', 'service 5', 'All of it held',
                              'call payments -- false')
        self.assertLess(time.monotonic() - began, WHOLE_TIME / 2)
        self.assert_nothing_left()

    def test_breaker_in_json_beside_tickets_on_a_terminal(self):
        began = time.monotonic()
        breaker = self.start('--json', '--seed', '7', '--only', 'breaker')
        shown, code = self.on_terminal('--only', 'tickets')
        result = self.result(breaker)
        self.assertIsNone(result['tickets'])
        self.assert_breaker(result['breaker'])
        self.assertEqual(0, code, shown[-3000:])
        self.assert_live_view(shown, 'stock      [', 'receipts   [', '1 wait', '1 holds', 'STOP',
                              'All of it held', 'lock nightly -- sh -c')
        self.assertLess(time.monotonic() - began, WHOLE_TIME / 2)
        self.assert_nothing_left()

    def test_invoice_in_json_and_on_a_terminal(self):
        began = time.monotonic()
        invoice = self.start('--json', '--seed', '7', '--only', 'invoice')
        shown, code = self.on_terminal('--only', 'invoice')
        result = self.result(invoice)
        self.assertEqual([None] * 3, [result[act] for act in ('tickets', 'breaker', 'leader')])
        self.assert_invoice(result['invoice'])
        self.assertEqual(0, code, shown[-3000:])
        self.assert_live_view(shown, 'provider  ', 'KILLED', 'All of it held')
        self.assertLess(time.monotonic() - began, WHOLE_TIME / 3)
        self.assert_nothing_left()

    def test_an_invoice_that_is_interrupted_leaves_nothing(self):
        demo = self.started_until('killed', '--only', 'invoice')
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=10)
        self.assertEqual((130, 'trinco: interrupted; nothing is left behind\n'),
                         (demo.returncode, err))
        self.assert_nothing_left()

    def assert_live_view(self, shown, *words):
        plain = ESCAPE.sub('', shown)
        for line in re.split(r'[\r\n]+', plain):
            # A command to be copied stays whole, however long the program's own path is.
            if re.match(r'  \S*trinco (lock|locks|call|breakers)\b', line):
                continue
            self.assertLessEqual(len(line), 80, line)
        for word in words:
            self.assertIn(word, plain)
        self.assertRegex(shown, COLOUR)
        moves = {match[-1] for match in ESCAPE.findall(shown)}
        self.assertEqual(set('mAKJ'), moves)  # nothing is erased before it is overwritten
        self.assertLess(len(re.findall(r'\x1b\[\d+A', shown)), 400)

    @unittest.skipUnless(os.environ.get('DEMO_FULL'), 'the acts are played one by one')
    def test_the_whole_is_over_in_time(self):
        began = time.monotonic()
        shown = self.result(self.start('--json', '--seed', '7'))
        self.assertLess(time.monotonic() - began, WHOLE_TIME)
        self.assert_tickets(shown['tickets'])
        self.assert_breaker(shown['breaker'])
        self.assert_invoice(shown['invoice'])
        self.assert_nothing_left()

    def started_until(self, event, *words):
        """A demonstration that has just told this event."""
        demo = self.start('--json', *(words or ('--only', 'tickets')))
        while line := demo.stdout.readline():
            if json.loads(line)['event'] == event:
                return demo
        return self.fail(f'no {event}: {demo.stderr.read()}')

    def test_interrupted_at_once(self):
        for number in (signal.SIGHUP, signal.SIGTERM):
            demo = self.started_until('act')
            demo.send_signal(number)
            _, err = demo.communicate(timeout=10)
            self.assertEqual(128 + number, demo.returncode)
            self.assertEqual('trinco: interrupted; nothing is left behind\n', err)
            self.assert_nothing_left()

    def test_an_interrupted_scene_has_no_result(self):
        demo = self.start('--plain', '--only', 'tickets')
        told = ''
        while 'No lock.' not in told or '8 services' not in told:
            line = demo.stdout.readline()
            self.assertTrue(line, told)
            told += line
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=10)
        self.assertEqual((130, 'trinco: interrupted; nothing is left behind\n'),
                         (demo.returncode, err))
        self.assertNotIn('Sold', out)

    def test_interrupted_while_everything_around_a_holder_stands_still(self):
        demo = self.started_until('frozen')
        self.assertGreater(len(self.processes()), 10)
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=10)
        self.assertEqual((130, 'trinco: interrupted; nothing is left behind\n'),
                         (demo.returncode, err))
        self.assert_nothing_left()

    def test_killed_it_takes_its_processes_along_and_the_next_one_tidies_up(self):
        demo = self.started_until('frozen')
        self.assertGreater(len(self.processes()), 10)
        demo.kill()
        self.assertTrue(eventually(lambda: not self.processes(), 2), self.processes())
        demo.wait()
        left, = self.place.iterdir()
        (self.place / 'trinco-demo-mine00').mkdir()
        (self.place / 'trinco-demo-mine00' / 'letter').touch()
        demo = self.started_until('act')
        self.assertFalse(left.exists())
        demo.terminate()
        demo.communicate(timeout=10)
        self.assertEqual(['trinco-demo-mine00'], [p.name for p in self.place.iterdir()])

    def test_a_reader_that_goes_away_ends_it(self):
        demo = self.started_until('act')
        demo.stdout.close()
        self.assertEqual(74, demo.wait(timeout=15))
        self.assertEqual('', demo.stderr.read())
        self.assert_nothing_left()

    def test_a_full_disk_ends_it_with_a_sentence(self):
        with open('/dev/full', 'w', encoding='ascii') as full:
            demo = subprocess.run([PROGRAM, 'demo', '--plain'], stdout=full,
                                  stderr=subprocess.PIPE, env=self.environment, text=True,
                                  timeout=15, check=False)
        self.assertEqual(74, demo.returncode)
        self.assertRegex(demo.stderr, r'\Atrinco: standard output [^\n]+: No space left[^\n]+\n\Z')
        self.assert_nothing_left()

    def on_terminal(self, *words, until=None, columns=80):
        """All that appears on a terminal, and the exit code. With `until` it gets Ctrl-C as soon as
        this has appeared."""
        process, terminal = pty.fork()
        if process == 0:
            os.execve(PROGRAM, [PROGRAM, 'demo', *words], self.environment)
        size = struct.pack('HHHH', 24, columns, 0, 0)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        shown = b''
        end = time.monotonic() + WHOLE_TIME
        while time.monotonic() < end and select.select([terminal], [], [], WHOLE_TIME)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            shown += part
            if until and until in ESCAPE.sub('', shown.decode(errors='replace')):
                os.write(terminal, b'\x03')
                until = None
        os.close(terminal)
        _, status = os.waitpid(process, 0)
        return shown.decode(), os.waitstatus_to_exitcode(status)

    def test_ctrl_c_and_no_color(self):
        self.environment['NO_COLOR'] = '1'
        shown, code = self.on_terminal('--only', 'tickets', until='receipts', columns=40)
        self.assertEqual(130, code, shown)
        self.assertNotRegex(shown, COLOUR)
        self.assertIn('\x1b[K', shown)
        for line in shown.split('\n'):
            if line.startswith((' lock ', ' receipts ', ' ----')):
                self.assertLessEqual(len(ESCAPE.sub('', line).rstrip('\r')), 40, line)
        self.assertTrue(self.nothing_left())

    def test_plain_lines_where_nothing_moves(self):
        for change, words in (({'TERM': 'dumb'}, ()), ({}, ('--plain',))):
            self.environment.update(change)
            shown, code = self.on_terminal('--only', 'tickets', *words, until='left, and thinks')
            self.assertEqual(130, code, shown)
            self.assertNotIn('\x1b', shown)
        self.assertTrue(self.nothing_left())

    def test_configuration_of_the_user_has_no_part_in_it(self):
        bad = self.place.parent / f'{self.place.name}.toml'
        bad.write_text('nonsense = = 1\n')
        self.addCleanup(bad.unlink)
        self.environment.update(TRINCO_CONFIG=str(bad), TRINCO_LOCKS='redis://nowhere:1',
                                TRINCO_TOKEN='5')
        demo = self.started_until('sold_once')
        demo.terminate()
        demo.communicate(timeout=10)

    def test_says_where_it_could_not_play(self):
        self.environment['TMPDIR'] = '/proc'
        demo = self.start('--json')
        out, err = demo.communicate(timeout=10)
        self.assertEqual((69, ''), (demo.returncode, out))
        self.assertRegex(err, r'\Atrinco: [^\n]*/proc[^\n]*TMPDIR[^\n]*\n\Z')


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    at_once.main(8)
