"""The proofs of the fleet's breaker on real servers.

    redis_fleet.py FLEET_CHILD SERVER_FLEET [--check NAME ...] [--seconds N] [--seed N]
                   [--plant WHAT] [--together N]

Each check is a file check_NAME.py, whose head says what it proves. It gets so many seconds
(TRINCO_FLEET_SECONDS; a few unless said) and a seed (TRINCO_FLEET_SEED), which decides what is done
to whom; what the machine makes of it differs from run to run. A planted mistake must be found: the
exit code is then 0 when some verdict has failed, or every one where the check wants that
(PLANT_FOUND); `all` plants each of PLANTS. 77: there is no redis-server. So many checks run
together, each in a process of its own.
"""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'torture')]

# pylint: disable=wrong-import-position
import check_articles
import check_clock
import check_failover
import check_faults
import check_herd
import check_keys
import check_one_bad
import check_probes
import check_sums
import check_traffic
import check_waited
import servers

# In an order in which the longest do not come last.
CHECKS = {'faults': check_faults, 'traffic': check_traffic, 'keys': check_keys,
          'sums': check_sums, 'one_bad': check_one_bad, 'failover': check_failover,
          'probes': check_probes, 'clock': check_clock, 'herd': check_herd, 'waited': check_waited,
          'articles': check_articles}
# Mistakes that the checks must find, and the checks in which they are made.
PLANTS = [('one_bad', 'quorum'), ('clock', 'end_only'), ('failover', 'nobody_takes_over'),
          ('failover', 'nobody_remembers'), ('traffic', 'budget'), ('herd', 'limits'),
          ('faults', 'trip'), ('keys', 'persist'), ('keys', 'remembered'), ('waited', 'no_outage'),
          ('sums', 'careless'), ('probes', 'apart')]


def run(name, options):
    began = time.monotonic()
    try:
        verdicts = CHECKS[name].check(options.child, options.seconds, options.seed, options.plant)
        if options.plant:  # who has seen too little has found nothing
            failed = getattr(CHECKS[name], 'PLANT_FOUND', any)(v.violations for v in verdicts)
        else:
            failed = any(v.failed() for v in verdicts)
        for one in verdicts:
            print(one.text())
    except AssertionError as error:
        print('%s: FAILED: %s' % (name, error))
        failed = not options.plant  # nothing was found, it only did not go as it should
    print('%s: %s after %.1f s; seed %d' % (name, 'FAILED' if failed else 'holds',
                                            time.monotonic() - began, options.seed), flush=True)
    return failed


def run_together(options, runs):
    """Each of these (check, words), in processes of their own; 0 when all hold."""
    def one(run_of):
        check, words = run_of
        done = subprocess.run(
            [sys.executable, '-B', os.path.abspath(__file__), options.child, options.server_fleet,
             '--check', check, '--seconds', str(options.seconds), '--seed', str(options.seed)]
            + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, end='', flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(options.together) as pool:
        return max(pool.map(one, runs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('child')
    parser.add_argument('server_fleet')
    parser.add_argument('--check', nargs='+', default=list(CHECKS), choices=CHECKS)
    parser.add_argument('--seconds', type=float,
                        default=float(os.environ.get('TRINCO_FLEET_SECONDS', '4')))
    parser.add_argument('--seed', type=int, default=int(
        os.environ.get('TRINCO_FLEET_SEED', str(random.SystemRandom().randrange(1 << 32)))))
    parser.add_argument('--plant')
    parser.add_argument('--together', type=int, default=1)
    options = parser.parse_args()
    servers.FLEETS = options.server_fleet
    if servers.find() is None:
        print('there is no redis-server; `make servers` fetches one')
        return 77
    if options.plant == 'all':
        return run_together(options, [(check, ['--plant', mistake]) for check, mistake in PLANTS
                                      if check in options.check])
    if options.together > 1 and len(options.check) > 1:
        return run_together(options, [(check, []) for check in options.check])
    failed = [name for name in options.check if run(name, options)]
    if options.plant:
        print('the planted mistake was %s' % ('found' if failed else 'NOT FOUND'))
        return 0 if failed else 1
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
