#!/usr/bin/env python3
"""A store file that cannot be used, or not now: each command answers with one sentence and the code
that fits, nothing is lost or half-written, and when the trouble is over everything goes on. Takes
the program's path."""

import json
import os
import pathlib
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'lock'))
import scene
from scene import PATIENCE, PROGRAM, Scene, wait_until

NOBODY = 65534


def commands(store):
    """One command for each way of using a store."""
    return {'lock': ['lock', 'job', '--ttl', '1s', '--locks', store, '--', 'true'],
            'locks': ['locks', 'ls', '--locks', store],
            'call': ['call', 'b', '--breakers', store, '--on-no-store', 'refuse', '--', 'true'],
            'breakers': ['breakers', 'ls', '--breakers', store]}


class Trouble(Scene):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.file = self.folder / 'x.db'

    @property
    def lock(self):
        return commands(self.store)['lock']

    @property
    def call(self):
        return commands(self.store)['call']

    def run_program(self, words, before=(), **options):
        return subprocess.run([*before, PROGRAM, *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False, **options)

    def assert_one_sentence(self, done, code):
        self.assertEqual((code, ''), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')

    def assert_refused(self, code, *parts, store=None, only=None, **options):
        """By every command, in one sentence with these parts."""
        for name, words in commands(store or self.store).items():
            if only and name not in only:
                continue
            with self.subTest(command=name):
                done = self.run_program(words, **options)
                self.assert_one_sentence(done, code)
                for part in parts:
                    self.assertIn(part, done.stderr)

    def assert_works(self, **options):
        for name, words in commands(self.store).items():
            with self.subTest(command=name):
                done = self.run_program(words, **options)
                self.assertEqual(0, done.returncode, done.stderr)

    def token(self):
        """Of a new grant."""
        done = self.run_program(['lock', 'job', '--locks', self.store, '--', 'sh', '-c',
                                 'echo $TRINCO_TOKEN'])
        self.assertEqual(0, done.returncode, done.stderr)
        return int(done.stdout)

    def calls(self):
        """How many the breaker has counted."""
        done = self.run_program(['breakers', 'show', 'b', '-o', 'json', '--breakers', self.store])
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)['breaker']['totals']['success']

    def was_counted(self, done):
        """Whether a call was; without its store a command runs all the same, with a sentence."""
        if done.returncode == 0 and not done.stderr:
            return True
        self.assertIn(done.returncode, (0, 69))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return False

    def assert_sound(self, file):
        with sqlite3.connect(file) as db:
            self.assertEqual([('ok',)], db.execute('PRAGMA integrity_check').fetchall())
        db.close()


class WrongFiles(Trouble):
    def test_what_is_not_a_database_is_left_as_it_is(self):
        for content in (b'hello\n', b'\0' * 5_000, os.urandom(20_000), b'SQLite format 4\0' * 400):
            self.file.write_bytes(content)
            self.assert_refused(69, 'x.db is not a database; name another file')
            self.assertEqual(content, self.file.read_bytes())
            self.assertEqual(['x.db'], [n for n in os.listdir(self.folder) if n.startswith('x.db')])

    def test_what_is_no_file(self):
        (self.folder / 'folder').mkdir()
        os.mkfifo(self.folder / 'pipe')
        for name in ('folder', 'pipe'):
            self.assert_refused(69, f'{name} is no file', store=f'local:{self.folder}/{name}')
        self.assert_refused(69, 'missing does not exist; make it',
                            store=f'local:{self.folder}/missing/x.db')

    def test_a_newer_version_is_left_as_it_is(self):
        self.assert_works()
        with sqlite3.connect(self.file) as db:
            db.execute('PRAGMA user_version = 1000')
        db.close()
        self.assert_refused(69, 'newer version of Trinco', 'update this program')
        with sqlite3.connect(self.file) as db:
            self.assertEqual([(1000,)], db.execute('PRAGMA user_version').fetchall())
        db.close()

    def test_another_programs_database_is_left_as_it_is(self):
        with sqlite3.connect(self.file) as db:
            db.execute('CREATE TABLE theirs(x)')
        db.close()
        before = self.file.read_bytes()
        self.assert_refused(69, 'is a database of another program')
        self.assertEqual(before, self.file.read_bytes())

    def test_a_file_that_was_cut_off(self):
        self.assert_works()
        for size in (4_096, 1_024, 100):
            with sqlite3.connect(self.file) as db:
                db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            db.close()
            whole = self.file.read_bytes()
            os.truncate(self.file, size)
            for name, words in commands(self.store).items():
                with self.subTest(command=name, size=size):
                    done = self.run_program(words)
                    self.assertEqual(69, done.returncode)
                    self.assertIn('is damaged; end what uses it and move it away', done.stderr)
                    self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
            for part in ('-wal', '-shm'):
                (self.folder / f'x.db{part}').unlink(missing_ok=True)
            self.file.write_bytes(whole)
        self.assert_works()


@unittest.skipUnless(os.geteuid() == 0, 'only root can run the program as another user')
class Rights(Trouble):
    """Another user's."""

    def setUp(self):
        super().setUp()
        # The program's own folder may be closed to others.
        self.program = self.folder / 'trinco'
        shutil.copy(PROGRAM, self.program)
        self.theirs = self.folder / 'theirs'
        self.theirs.mkdir()
        os.chown(self.theirs, NOBODY, NOBODY)
        self.file = self.theirs / 'x.db'
        self.store = f'local:{self.file}'
        self.tearDown = lambda: None

    def run_program(self, words, before=(), **options):
        return subprocess.run([*before, self.program, *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False, user=NOBODY, group=NOBODY,
                              extra_groups=[], **options)

    def test_a_read_only_folder(self):
        os.chown(self.theirs, 0, 0)
        self.assert_refused(77, 'Permission denied', 'write to its file and to the folder')
        self.assertEqual([], os.listdir(self.theirs))
        os.chown(self.theirs, NOBODY, NOBODY)
        self.assert_works()
        # And one that became so.
        self.theirs.chmod(0o555)
        self.assert_refused(77, 'folder', 'Permission denied')
        self.theirs.chmod(0o755)
        self.assert_works()

    def test_a_file_that_may_only_be_read_or_not_even_that(self):
        self.assert_works()
        for mode in (0o444, 0o000):
            for part in self.theirs.iterdir():
                os.chown(part, 0, 0)
                part.chmod(mode)
            self.assert_refused(77)
        for part in self.theirs.iterdir():
            os.chown(part, NOBODY, NOBODY)
            part.chmod(0o600)
        self.assert_works()
        self.assert_sound(self.file)

    def test_a_database_that_may_only_be_read(self):
        self.assert_works()
        os.chown(self.file, 0, 0)
        self.file.chmod(0o444)
        self.assert_refused(77)
        os.chown(self.file, NOBODY, NOBODY)
        self.file.chmod(0o600)
        self.assert_works()


class NoRoom(Trouble):
    def limited(self, size):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def test_a_limit_of_file_sizes_when_the_file_is_made(self):
        for size in (0, 1_000, 4_096, 30_000):
            self.assert_refused(69, '(ulimit -f)', preexec_fn=self.limited(size))
        self.assert_works()
        self.assert_sound(self.file)

    def test_a_limit_of_file_sizes_when_it_is_used(self):
        """Whatever is refused, what was answered is kept, and nothing else."""
        token = self.token()
        self.assert_works()
        counted = self.calls()
        refused = 0
        log = self.folder / 'x.db-wal'
        for extra in range(0, 16_000, 4_000):
            # Between what the log is now and a commit more.
            done = self.run_program(self.call, preexec_fn=self.limited(log.stat().st_size + extra))
            counted += self.was_counted(done)
            refused += not self.was_counted(done)
        done = self.run_program(self.lock, preexec_fn=self.limited(log.stat().st_size))
        self.assert_one_sentence(done, 69)
        self.assertIn('disk is full', done.stderr)
        self.assertGreater(refused, 0)
        self.assertEqual(counted, self.calls())
        self.assertGreater(self.token(), token)
        self.assertEqual(0, self.entries('job'), 'a refused one is still in the queue')
        self.assert_sound(self.file)


class FullDisk(Trouble):
    """On a small file system of its own, in a mount namespace of its own."""

    SIZE = 1_500_000

    def setUp(self):
        super().setUp()
        as_root = [] if os.geteuid() == 0 else ['--user', '--map-root-user']
        self.disk = self.folder / 'disk'
        self.disk.mkdir()
        self.keeper = subprocess.Popen(
            ['unshare', '--mount', *as_root, 'sh', '-c',
             f'mount -t tmpfs -o size={self.SIZE} tmpfs {self.disk} && echo mounted && cat'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.keeper.communicate)
        if self.keeper.stdout.readline() != 'mounted\n':
            self.skipTest('no right to mount a file system: ' + self.keeper.stderr.read().strip())
        into = [] if os.geteuid() == 0 else ['--user', '--preserve-credentials']
        self.inside = ['nsenter', f'--target={self.keeper.pid}', '--mount', *into]
        self.store = f'local:{self.disk}/x.db'

    def run_program(self, words, before=(), **options):
        return super().run_program(words, before=self.inside, **options)

    def shell(self, script):
        done = subprocess.run([*self.inside, 'sh', '-c', script], cwd='/', capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        return done.stdout

    def fill(self, leave=0):
        """All but so many bytes of what is free."""
        self.shell(f'rm -f {self.disk}/filler; cat /dev/zero > {self.disk}/filler 2> /dev/null')
        if leave:
            self.shell(f'truncate -s -{leave} {self.disk}/filler')

    def make_room(self):
        self.shell(f'rm -f {self.disk}/filler')

    def assert_sound_inside(self):
        copy = self.folder / 'copy.db'
        for part in ('', '-wal'):
            shutil.copy(f'/proc/{self.keeper.pid}/root{self.disk}/x.db{part}', f'{copy}{part}')
        self.assert_sound(copy)

    def test_it_is_full_when_the_file_is_made(self):
        self.fill()
        self.assert_refused(69)
        for leave in (4_096, 8_192, 16_384, 32_768, 49_152):
            self.fill(leave)
            done = self.run_program(commands(self.store)['locks'])
            if done.returncode != 0:
                self.assert_one_sentence(done, 69)
        self.make_room()
        self.assert_works()
        self.assert_sound_inside()

    def test_it_is_full_when_it_is_used(self):
        token = self.token()
        self.assert_works()
        counted = self.calls()
        refused = 0
        for leave in (0, 4_096, 12_288, 28_672, 0):
            self.fill(leave)
            done = self.run_program(self.call)
            counted += self.was_counted(done)
            refused += not self.was_counted(done)
        done = self.run_program(self.lock)
        self.assert_one_sentence(done, 69)
        self.assertIn('disk is full', done.stderr)
        self.assertGreater(refused, 0)
        self.make_room()
        self.assertEqual(counted, self.calls())
        self.assertGreater(self.token(), token)
        self.assert_works()
        self.assert_sound_inside()

    def test_a_holder_outlives_a_disk_that_was_full(self):
        """Renewals fail for a while, and the command goes on."""
        holder = subprocess.Popen([*self.inside, PROGRAM, 'lock', 'job', '--ttl', '3s', '--locks',
                                   self.store, '--', 'sh', '-c', 'echo held; cat'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(holder.kill)
        self.assertEqual('held\n', holder.stdout.readline())
        def left():
            shown = self.run_program(['locks', 'show', 'job', '-o', 'json', '--locks', self.store])
            self.assertEqual(0, shown.returncode, shown.stderr)
            return json.loads(shown.stdout)['holders'][0]['ttl_left_ms']
        self.fill()
        wait_until(lambda: left() < 1_800, 'a renewal that failed')
        self.make_room()
        wait_until(lambda: left() > 2_000, 'a renewal that succeeded')
        self.assertEqual(('', ''), holder.communicate(timeout=PATIENCE))
        self.assertEqual(0, holder.returncode)
        self.token()
        self.assert_sound_inside()


if __name__ == '__main__':
    scene.main()
