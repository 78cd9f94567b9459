"""The metrics page as tests read it."""

import re

_SAMPLE = re.compile(r'([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)\Z')
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Page:
    """One scrape."""

    def __init__(self, page):
        self.text = page
        self.samples = {}  # (name, frozenset of label pairs) -> value
        for line in page.splitlines():
            if line and not line.startswith("#"):
                name, labels, value = _SAMPLE.match(line).groups()
                self.samples[name, frozenset(_LABEL.findall(labels or ""))] = float(value)

    def series(self, name, **labels):
        """[(labels, value)] of all series of that name that carry these labels."""
        wanted = set(labels.items())
        return [(dict(have), value) for (n, have), value in self.samples.items()
                if n == name and wanted <= have]

    def sum(self, name, **labels):
        return sum(value for _, value in self.series(name, **labels))

    def value(self, name, **labels):
        """The only such series; None when there is none."""
        found = self.series(name, **labels)
        if len(found) > 1:
            raise AssertionError(f"{len(found)} series of {name} with {labels}")
        return found[0][1] if found else None

    def names(self):
        return {name for name, _ in self.samples}
