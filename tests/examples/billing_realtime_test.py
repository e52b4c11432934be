"""examples/billing on a real etcd, or, where there is none, on a local: file: one charge, whoever
is asked and whoever dies.

Started by ctest as: billing_realtime_test.py PATH_OF_THE_PROGRAM
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import etcd_server

PROGRAM = ''


class Billing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='trinco-billing-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        program = etcd_server.find()
        if program is None:
            print('billing: there is no etcd here, so a local: file takes its place; try '
                  '`make servers`', file=sys.stderr)
            cls.store = f'local:{cls.folder}/billing.db'
            return
        server = etcd_server.Etcd(cls.folder / 'etcd', program)
        cls.addClassCleanup(server.stop)
        cls.store = server.url

    def setUp(self):
        self.ledger = self.folder / (self.id().rsplit('.', 1)[-1] + '.txt')

    def bill(self, invoice, cents, *more):
        done = subprocess.run([PROGRAM, self.store, invoice, str(cents), str(self.ledger), *more],
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


if __name__ == '__main__':
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
