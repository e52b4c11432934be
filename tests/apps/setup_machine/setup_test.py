#!/usr/bin/env python3
"""`trinco setup --machine`, in an image of a system in a folder; the store that it makes, used by
two users of the group; and the warning under sudo. Takes the program's path."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'lock'))
import scene
from scene import PATIENCE, PROGRAM, Scene

URL = 'local:/var/lib/trinco/local.db'
STORES = f'[breakers]\nstore = "{URL}"\n\n[locks]\nstore = "{URL}"\n'


def run(*words, **options):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE,
                          check=False, **options)


@unittest.skipUnless(os.geteuid() == 0, 'only root can set a machine up')
class Setup(Scene):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.root = self.folder / 'image'
        (self.root / 'etc').mkdir(parents=True)
        for name in ('group', 'passwd', 'login.defs'):
            shutil.copy(f'/etc/{name}', self.root / 'etc')
        group = self.root / 'etc/group'  # the machine may have the group already
        group.write_text(''.join(line for line in group.read_text().splitlines(keepends=True)
                                 if not line.startswith('trinco:')))
        (self.root / 'etc/gshadow').touch()
        self.settings = self.root / 'etc/trinco.toml'
        self.machine = self.root / 'var/lib/trinco'

    def set_up(self, *words):
        return run('setup', '--machine', '--root', str(self.root), *words)

    def state(self):
        """Everything below the image: rights, owners, contents."""
        found = {}
        for path in sorted(self.root.rglob('*')):
            s = path.lstat()
            content = path.read_bytes() if path.is_file() else b''
            found[str(path)] = (stat.filemode(s.st_mode), s.st_uid, s.st_gid, content)
        return found

    def group_id(self):
        for line in (self.root / 'etc/group').read_text().splitlines():
            if line.startswith('trinco:'):
                return int(line.split(':')[2])
        return None

    def test_from_nothing_and_a_second_time(self):
        before = self.state()
        planned = self.set_up('--dry-run')
        self.assertEqual((0, ''), (planned.returncode, planned.stderr))
        self.assertEqual(before, self.state(), 'a dry run has changed something')
        done = self.set_up()
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        expected = planned.stdout.replace('would make', 'made').replace('would write', 'wrote')
        self.assertEqual(expected, done.stdout)
        group = self.group_id()
        self.assertIsNotNone(group)
        for path, mode in ((self.machine, 'drwxrws---'), (self.machine / 'local.db', '-rw-rw----')):
            s = path.stat()
            self.assertEqual((mode, 0, group), (stat.filemode(s.st_mode), s.st_uid, s.st_gid))
        self.assertTrue(self.settings.read_text().endswith(STORES))
        self.assertEqual('-rw-r--r--', stat.filemode(self.settings.stat().st_mode))
        after = self.state()
        again = self.set_up()
        self.assertEqual(0, again.returncode)
        self.assertIn('nothing to do', again.stdout)
        self.assertEqual(after, self.state())

    def test_what_is_in_the_settings_stays(self):
        self.settings.write_text('# mine\n[breakers]\nnamespace = "prod"  # ours\n')
        self.settings.chmod(0o640)
        self.assertEqual(0, self.set_up().returncode)
        self.assertEqual(f'# mine\n[breakers]\nstore = "{URL}"\nnamespace = "prod"  # ours\n\n'
                         f'[locks]\nstore = "{URL}"\n', self.settings.read_text())
        self.assertEqual('-rw-r-----', stat.filemode(self.settings.stat().st_mode))

    def test_another_store_in_the_settings_is_left_alone(self):
        self.settings.write_text('[locks]\nstore = "etcd://a"\n')
        before = self.state()
        done = self.set_up()
        self.assertEqual((64, ''), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r'\Atrinco: \S+trinco.toml:2: locks.store is "etcd://a" '
                                      r'already; [^\n]+\n\Z')
        self.assertEqual(before, self.state(), 'it has begun all the same')

    def test_a_store_that_root_has_used_is_handed_to_the_group(self):
        self.machine.mkdir(parents=True, mode=0o700)
        self.assertEqual(0, run('lock', 'job', '--locks', f'local:{self.machine}/local.db', '--',
                                'true').returncode)
        self.assertEqual(0, self.set_up().returncode)
        for path in self.machine.iterdir():
            s = path.stat()
            self.assertEqual(('-rw-rw----', 0, self.group_id()),
                             (stat.filemode(s.st_mode), s.st_uid, s.st_gid), path)
        self.assertEqual(0, run('lock', 'job', '--locks', f'local:{self.machine}/local.db', '--',
                                'true').returncode)

    def test_links_in_the_folder_are_not_followed(self):
        self.assertEqual(0, self.set_up().returncode)
        secret = self.folder / 'secret'
        secret.write_text('x')
        secret.chmod(0o600)
        for make in (os.symlink, os.link):
            make(secret, self.machine / 'local.db-gate')
            self.assertNotEqual(0, self.set_up().returncode)
            self.assertEqual(('-rw-------', 0), (stat.filemode(secret.stat().st_mode),
                                                 secret.stat().st_gid))
            (self.machine / 'local.db-gate').unlink()
        self.assertEqual(0, self.set_up().returncode)

    def test_a_dry_run_needs_no_root(self):
        self.folder.chmod(0o755)
        program = self.folder / 'trinco'
        shutil.copy(PROGRAM, program)
        def as_nobody(*words):
            return subprocess.run([program, 'setup', '--machine', '--root', self.root, *words],
                                  capture_output=True, text=True, check=False, cwd='/',
                                  timeout=PATIENCE, user=65534, group=65534, extra_groups=[])
        planned = as_nobody('--dry-run')
        self.assertEqual((0, '', self.set_up('--dry-run').stdout),
                         (planned.returncode, planned.stderr, planned.stdout))
        self.assertEqual(77, as_nobody().returncode)
        self.assertEqual(0, self.set_up().returncode)
        planned = as_nobody('--dry-run')
        self.assertEqual((0, ''), (planned.returncode, planned.stderr))
        self.assertIn(f'would see to the files in {self.machine}, which this user may not look '
                      'into\n', planned.stdout)

    def test_two_users_of_the_group_share_locks_and_breakers(self):
        self.assertEqual(0, self.set_up().returncode)
        program = self.folder / 'trinco'
        shutil.copy(PROGRAM, program)
        store = f'local:{self.machine}/local.db'
        def as_user(user, *words, groups):
            return subprocess.run([program, *words], capture_output=True, text=True, check=False,
                                  timeout=PATIENCE, user=user, group=user, extra_groups=groups,
                                  umask=0o077)
        tokens = []
        for user in (61_001, 61_002, 61_001):
            done = as_user(user, 'lock', 'job', '--locks', store, '--', 'sh', '-c',
                           'echo $TRINCO_TOKEN', groups=[self.group_id()])
            self.assertEqual((0, ''), (done.returncode, done.stderr))
            tokens.append(int(done.stdout))
            done = as_user(user, 'call', 'b', '--breakers', store, '--', 'true',
                           groups=[self.group_id()])
            self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertEqual(sorted(set(tokens)), tokens)
        self.assertEqual(0, run('lock', 'job', '--locks', store, '--', 'true').returncode)
        # One wakes the other: a socket of another user, too, may be rung at.
        holder = subprocess.Popen([program, 'lock', 'job', '--locks', store, '--', 'sh', '-c',
                                   'echo held; cat'], user=61_001, group=61_001, text=True,
                                  extra_groups=[self.group_id()], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.assertEqual('held\n', holder.stdout.readline())
        waiter = subprocess.Popen([program, 'lock', 'job', '-v', '--locks', store, '--', 'true'],
                                  user=61_002, group=61_002, extra_groups=[self.group_id()],
                                  text=True, stderr=subprocess.PIPE)
        self.assertIn('1 ahead', waiter.stderr.readline())
        holder.communicate()
        began = scene.boot_time()
        self.assertEqual((0, 0), (holder.wait(PATIENCE), waiter.wait(PATIENCE)))
        self.assertLess(scene.boot_time() - began, 0.9, 'the waiter looked by itself, unrung')
        waiter.stderr.close()
        done = as_user(61_003, 'locks', 'ls', '--locks', store, groups=[])
        self.assertEqual((77, ''), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*Permission denied[^\n]*\n\Z')


class Others(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, 'only root becomes another user')
    def test_without_root_it_is_refused(self):
        done = run('setup', '--machine', user=65_534, group=65_534)
        self.assertEqual((77, ''), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"\Atrinco: [^\n]*needs root: 'sudo trinco setup [^\n]+\n\Z")

    @unittest.skipUnless(os.geteuid() == 0, 'only root is warned')
    def test_under_sudo_both_files_are_named(self):
        folder = pathlib.Path('/var/lib/trinco')
        was_there = folder.exists()
        environment = {'SUDO_UID': '1', 'TRINCO_LOCKS': 'local:'}
        done = run('locks', 'ls', '-o', 'name', env=environment)
        if not was_there and done.returncode == 0:
            self.addCleanup(shutil.rmtree, folder)
        self.assertEqual(0, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*/var/lib/trinco/local\.db[^\n]*'
                                      r'/\.local/state/trinco/local\.db[^\n]*\n\Z')
        self.assertEqual('', run('locks', 'ls', '-o', 'name', env={**environment, 'SUDO_UID': '0'})
                         .stderr)
        with tempfile.TemporaryDirectory(prefix='trinco-setup-') as own:
            environment['TRINCO_LOCKS'] = f'local:{own}/x.db'
            self.assertEqual('', run('locks', 'ls', '-o', 'name', env=environment).stderr)


if __name__ == '__main__':
    scene.main()
