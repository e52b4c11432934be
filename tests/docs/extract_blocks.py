#!/usr/bin/env python3
"""Writes each ```cpp block of a document to FOLDER/readme_N.cpp and prints their names as a list of
CMake. A block that did not change is not written again, so that nothing is compiled anew."""

import pathlib
import re
import sys


def main():
    document, folder = map(pathlib.Path, sys.argv[1:])
    names = []
    blocks = re.findall(r'^```cpp\n(.*?)^```$', document.read_text(), re.M | re.S)
    if not blocks:
        sys.exit(f'{document} has no ```cpp block')
    for number, block in enumerate(blocks, 1):
        names.append(f'readme_{number}')
        file = folder / f'{names[-1]}.cpp'
        if not file.exists() or file.read_text() != block:
            file.write_text(block)
    print(';'.join(names), end='')


main()
