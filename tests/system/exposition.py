"""
The text exposition format of Prometheus, version 0.0.4, read strictly: what the
format lets pass, and what a collector would put up with, is refused all the
same where rl-agent has no need of it. ValueError tells what is wrong and where.
"""

import re

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
SAMPLE = re.compile(r"([a-z_0-9]+)(?:\{(.*)\})? ([^ ]+)\Z", re.S)
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(,|\Z)')
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?\Z")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
TYPES = ("counter", "gauge", "histogram")


class Family:
    def __init__(self, name, text):
        self.name, self.help, self.type = name, text, None
        self.samples = []  # name, labels as pairs in order, value

    def names(self):
        if self.type == "histogram":
            return [self.name + s for s in ("_bucket", "_sum", "_count")]
        return [self.name]

    def label_names(self):
        """Of its samples, in order, without le; None when it has none."""
        for _, labels, _ in self.samples:
            return tuple(n for n, _ in labels if n != "le")
        return None


def unescape(text):
    return re.sub(r'\\[\\"n]', lambda m: ESCAPES[m.group()], text)


def parse_labels(text):
    labels, at = [], 0
    if text == "":
        raise ValueError("empty braces")
    while at < len(text):
        found = LABEL.match(text, at)
        if not found:
            raise ValueError("labels %r" % text)
        labels.append((found.group(1), unescape(found.group(2))))
        at = found.end()
        if found.group(3) == "," and at == len(text):
            raise ValueError("a comma at the end: %r" % text)
    if len({n for n, _ in labels}) != len(labels):
        raise ValueError("a label twice: %r" % text)
    return tuple(labels)


def parse_sample(line):
    found = SAMPLE.match(line)
    if not found:
        raise ValueError("no sample: %r" % line)
    name, labels, value = found.groups()
    if not NUMBER.match(value):
        raise ValueError("value %r" % value)
    return (name, parse_labels(labels) if labels is not None else (),
            float(value) if "." in value else int(value))


def check_histogram(family):
    """One after the other: buckets upwards, +Inf, sum, count."""
    at = 0
    while at < len(family.samples):
        owner, last, bound = family.samples[at][1][:-1], 0, -1.0
        while True:
            name, labels, value = family.samples[at]
            if name != family.name + "_bucket" or labels[:-1] != owner or \
                    labels[-1][0] != "le":
                raise ValueError("no bucket: %s%s" % (name, labels))
            le = float(labels[-1][1])
            if le <= bound or value < last or not isinstance(value, int):
                raise ValueError("not cumulative: %s%s" % (name, labels))
            bound, last, at = le, value, at + 1
            if labels[-1][1] == "+Inf":
                break
        rest = family.samples[at:at + 2]
        if [r[:2] for r in rest] != [(family.name + "_sum", owner),
                                     (family.name + "_count", owner)]:
            raise ValueError("no sum and count: %s" % (rest,))
        if rest[1][2] != last or (last == 0 and rest[0][2] != 0):
            raise ValueError("sum, count and buckets differ: %s" % (rest,))
        at += 2


def check_family(family):
    seen = set()
    for name, labels, value in family.samples:
        if (name, labels) in seen:
            raise ValueError("twice: %s%s" % (name, labels))
        seen.add((name, labels))
        if tuple(n for n, _ in labels if n != "le") != family.label_names():
            raise ValueError("other labels: %s%s" % (name, labels))
        if "le" in [n for n, _ in labels[:-1]]:
            raise ValueError("le is not last: %s%s" % (name, labels))
        if family.type != "histogram" and "le" in dict(labels):
            raise ValueError("a bucket of no histogram: %s" % name)
        if value < 0:
            raise ValueError("negative: %s" % name)
    if family.type == "histogram":
        check_histogram(family)


def parse(text):
    """The families by name, in the order of the text."""
    families, family = {}, None
    if not text.endswith("\n"):
        raise ValueError("no newline at the end")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, sep, what = line[7:].partition(" ")
            if not sep or not what or not NAME.match(name):
                raise ValueError("%r" % line)
            if family is not None and family.type is None:
                raise ValueError("no type of %s" % family.name)
            if name in families:
                raise ValueError("%s twice" % name)
            family = families[name] = Family(name, what)
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            if family is None or name != family.name or \
                    family.type is not None or kind not in TYPES:
                raise ValueError("%r" % line)
            family.type = kind
        else:
            sample = parse_sample(line)
            if family is None or family.type is None or \
                    sample[0] not in family.names():
                raise ValueError("not in its family: %r" % line)
            family.samples.append(sample)
    if family is None or family.type is None:
        raise ValueError("no family at the end")
    for one in families.values():
        check_family(one)
    return families


def value(families, name, default=None, **labels):
    """Of the one sample with all these labels, and maybe more."""
    family = families[name] if name in families else \
        families[re.sub(r"_(bucket|sum|count)\Z", "", name)]
    found = [v for n, have, v in family.samples if n == name and
             labels.items() <= dict(have).items()]
    if not found and default is not None:
        return default
    if len(found) != 1:
        raise ValueError("%d samples %s%s" % (len(found), name, labels))
    return found[0]


def total(families, name, **labels):
    """The sum of those with all these labels."""
    return sum(v for n, have, v in families[name].samples if n == name and
               labels.items() <= dict(have).items())


def series(families):
    return {(n, labels) for family in families.values()
            for n, labels, _ in family.samples}
