"""What the diaries of belief_child say: whether two believed to hold one lock at a time."""

import collections
import glob
import os


class Span:
    """Of one grant: it was believed in at some instant up to `first`, and at one from `last` on."""

    def __init__(self):
        self.first = float('inf')
        self.last = 0
        self.files = set()


def read(folder):
    """By lock, then by token."""
    spans = collections.defaultdict(lambda: collections.defaultdict(Span))
    for path in glob.glob(os.path.join(glob.escape(folder), '*.diary')):
        with open(path, encoding='ascii') as diary:
            for line in diary:
                words = line.split()
                if len(words) != 4 or not line.endswith('\n'):
                    continue  # the last one of who was killed
                name, token, begin, end = words[0], *map(int, words[1:])
                span = spans[name][token]
                span.first = min(span.first, end)
                span.last = max(span.last, begin)
                span.files.add(os.path.basename(path))
    return spans


def overlaps(spans):
    """A sentence each."""
    found = []
    for name, by_token in sorted(spans.items()):
        latest, whose = 0, None
        for token, span in sorted(by_token.items()):
            if len(span.files) > 1:
                found.append(f'{name}: token {token} was given to {sorted(span.files)}')
            if latest > span.first:
                found.append(f'{name}: token {whose} was believed in {(latest - span.first) / 1e3}'
                             f' ms after token {token} was')
            if span.last > latest:
                latest, whose = span.last, token
    return found


def grants(spans):
    return sum(len(by_token) for by_token in spans.values())
