"""examples/billing on a real etcd, or, where there is none, on a local: file: one charge, whoever
is asked and whoever dies.

Started by ctest as: billing_realtime_test.py PATH_OF_THE_PROGRAM
"""

import concurrent.futures
import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

APPS = pathlib.Path(__file__).resolve().parents[1] / 'apps'
sys.path[:0] = [str(APPS), str(APPS / 'etcd')]
import at_once  # noqa: E402
import cluster  # noqa: E402

PROGRAM = ''


class Billing(unittest.TestCase):
    APART = True

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='trinco-billing-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        if cluster.find() is None:
            print('billing: there is no etcd here, so a local: file takes its place; try '
                  '`make servers`', file=sys.stderr)
            cls.store = f'local:{cls.folder}/billing.db'
            return
        server = cluster.Cluster(cls.folder / 'etcd')
        cls.addClassCleanup(server.end)
        cls.store = server.url

    def setUp(self):
        self.ledger = self.folder / (self.id().rsplit('.', 1)[-1] + '.txt')

    def words(self, invoice, cents, *more, store=None):
        return [PROGRAM, store or self.store, invoice, str(cents), str(self.ledger), *more]

    def bill(self, *words, **more):
        done = subprocess.run(self.words(*words, **more),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def charges(self):
        return [line.split()[1:] for line in self.ledger.read_text().splitlines()]

    def test_ten_services_charge_once(self):
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            all_of_them = list(pool.map(lambda _: self.bill('c-7/november', 4990), range(10)))
        self.assertEqual([['c-7/november', '4990']], self.charges())
        said = sorted(out for code, out, _ in all_of_them if code == 0)
        self.assertEqual(10, len(said), all_of_them)
        self.assertEqual(1, sum(line.startswith('charged') for line in said))
        self.assertEqual(1, len({line.split()[-1] for line in said}), 'one receipt for all')
        self.assertEqual(0, self.bill('c-7/december', 4990)[0])
        self.assertEqual(2, len(self.charges()), 'another invoice is another charge')

    def test_who_dies_after_the_charge_is_found_out(self):
        self.assertEqual(9, self.bill('c-8/november', 100, 'die')[0])
        self.assertEqual([['c-8/november', '100']], self.charges())
        code, out, err = self.bill('c-8/november', 100)
        self.assertEqual((0, ''), (code, err))
        self.assertRegex(out, r'^was charged receipt-[0-9a-f]{8}\n$')
        self.assertEqual([['c-8/november', '100']], self.charges())

    def test_the_same_invoice_with_another_amount_is_a_mistake(self):
        self.assertEqual(0, self.bill('c-9/november', 100)[0])
        code, out, err = self.bill('c-9/november', 101)
        self.assertEqual((1, ''), (code, out))
        self.assertIn('used before with other input', err)
        self.assertEqual([['c-9/november', '100']], self.charges())

    def test_who_cannot_find_out_does_not_charge(self):
        self.assertEqual(9, self.bill('c-10/november', 100, 'die')[0])
        away = self.ledger.with_suffix('.away')
        self.ledger.rename(away)
        self.ledger.mkdir()  # it cannot be read, whoever tries
        code, out, err = self.bill('c-10/november', 100)
        self.assertEqual((1, ''), (code, out))
        self.assertIn('find out whether it was done', err)
        self.ledger.rmdir()
        away.rename(self.ledger)
        self.assertEqual(0, self.bill('c-10/november', 100)[0])
        self.assertEqual([['c-10/november', '100']], self.charges())

    def test_what_failed_is_told_and_may_be_tried_again(self):
        self.ledger.mkdir()
        for _ in range(2):
            self.assertEqual((1, '', 'billing: not charged: the provider cannot be reached\n'),
                             self.bill('c-11/november', 100))
        self.ledger.rmdir()
        code, out, _ = self.bill('c-11/november', 100)
        self.assertEqual(0, code)
        self.assertRegex(out, r'^charged receipt-')
        self.assertEqual([['c-11/november', '100']], self.charges())

    def test_the_provider_is_asked_by_one_at_a_time(self):
        """Between looking and charging nobody else gets in, whom no lock of ours keeps out: one
        that was paused, say, and goes on."""
        with open(self.ledger, 'a', encoding='ascii') as asked:
            fcntl.flock(asked, fcntl.LOCK_EX)
            waits = subprocess.Popen(self.words('c-15/november', 100), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            self.addCleanup(waits.wait)
            self.addCleanup(waits.kill)
            with self.assertRaises(subprocess.TimeoutExpired):
                waits.wait(1)
            self.assertEqual([], self.charges())
        self.assertEqual(0, waits.wait(60))
        self.assertEqual([['c-15/november', '100']], self.charges())

    def test_many_charge_at_once_and_no_line_is_lost(self):
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            codes = pool.map(lambda n: self.bill(f'c-12/{n}', 100)[0], range(10))
            self.assertEqual([0] * 10, list(codes))
        self.assertEqual([[f'c-12/{n}', '100'] for n in range(10)], sorted(self.charges()))

    def test_what_is_no_way_to_bill_is_said(self):
        for cents in ('', '0', '-1', '1.5', '12x', ' 5', '007', '9' * 13):
            code, out, err = self.bill('c-13/november', cents)
            self.assertEqual((1, ''), (code, out), cents)
            self.assertIn('CENTS is a whole number', err)
        for words in ((), ('dye',), ('die', 'again')):
            self.assertEqual(1 if words else 0, self.bill('c-14/november', 5, *words)[0])
        code, out, err = self.bill('c-13/november', 100, store='memory:')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('store that services share', err)
        self.assertEqual([['c-14/november', '5']], self.charges())


if __name__ == '__main__':
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    at_once.main()
