#!/usr/bin/env python3
"""How much `trinco lock x -- true` costs against `flock FILE true`: medians of alternating runs.

    bench/lock_vs_flock.py build/release/trinco [RUNS]

Beside each other in one run, because a machine is faster at one time than at another. Nothing else
should run meanwhile; where that cannot be had, `chrt -f 10` in front (as root) comes close.

The program is copied first, as it is when it is installed: a file as a linker writes it lies in
many small pieces in memory, each of which a process maps and gives back by itself (2.35 instead of
2.15 on one machine)."""

import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time


def time_of(command):
    """Seconds from starting the command to its end."""
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - began
    if status != 0:
        sys.exit(f'{command} ended with {os.waitstatus_to_exitcode(status)}')
    return took


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory(prefix='trinco-bench-') as folder:
        file = pathlib.Path(folder) / 'file'
        file.touch()
        program = shutil.copy(sys.argv[1], folder)
        commands = {
            'true': ['true'],
            'flock FILE true': ['flock', str(file), 'true'],
            'trinco version': [program, 'version', '-o', 'json'],
            'trinco lock x -- true': [program, 'lock', 'x', '--locks', f'local:{folder}/x.db', '--',
                                      'true'],
        }
        times = {name: [] for name in commands}
        with open(os.devnull, 'wb') as null:
            out = os.dup(1)
            os.dup2(null.fileno(), 1)
            for command in commands.values():
                time_of(command)  # files are made, pages of the programs are in memory
            for _ in range(runs):
                for name, command in commands.items():
                    times[name].append(time_of(command))
            os.dup2(out, 1)
    for name, each in times.items():
        quantiles = statistics.quantiles(each, n=10)
        print(f'{name:22} median {statistics.median(each) * 1e3:6.2f} ms   '
              f'p10 {quantiles[0] * 1e3:6.2f}   p90 {quantiles[-1] * 1e3:6.2f}')
    ratio = (statistics.median(times['trinco lock x -- true']) /
             statistics.median(times['flock FILE true']))
    print(f'trinco lock / flock    {ratio:6.2f}')


if __name__ == '__main__':
    main()
