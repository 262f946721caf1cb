"""Writes read_csv.txt: random CSV files and what pandas reads from them, for tests/io/csv_test.cpp.

    python3 read_csv.py                 # needs pandas
    python3 read_csv.py FILE COUNT      # COUNT files, for a check by hand:
    SCONCE_CSV_CASES=FILE build/default/bin/test-io "CSV files are read as pandas reads them"

Each line is a file: the delimiter, keep_missing, skip_bad, the target, the text, and either "refused" with
parts of the message, or "read" with the rows, features and skipped rows, the names of the features, the
bits of the values, and the target. pandas reads each file as well, and the script ends with an error if it takes
one that sconce must refuse for none of the reasons in DIFFERENT.
"""

import io
import random
import sys
import urllib.parse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

# What sconce refuses and pandas takes, with a part of sconce's message.
DIFFERENT = {
    "short": "fields, got",  # pandas adds missing values
    "long": "fields, got",  # pandas takes a first column without a name for the index, if the first row is longer
    "text": "expected a number, got",  # a column of numbers and texts is one of objects
    "infinite": "expected a number, got",
    "large": "expected a number that float32 has",
    "missing": "expected a value",
    "target": "expected a target",
    "after": "expected a field to end with its quote",
    "nul": "got a NUL byte",
    "twice": "once, got",  # the second "a" becomes "a.1"
    "no rows": "expected rows",
}
MISSING = ["", "NA", "NaN", "nan", "null", "N/A", "None", "NULL", "#N/A", "n/a", "<NA>"]
WORDS = ["red", "Red", "blue", "grün", "a b", "x,y", 'say "hi"', "two\nlines", "two\r\nlines", "tab\there", "semi;colon",
         "a|b", " lead", "trail ", "日本", "-", "+", "e5", "1a", "1.2.3", "0x1F", "1 2", "--1", "..", "NAN", "none"]
AFTER = '"a"b'
BAD = ["short", "long", "text", "infinite", "large", "missing", "target", "after", "nul", "bytes"]


def number(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return str(rng.randint(-10**rng.randrange(1, 18), 10**rng.randrange(1, 18)))
    if kind == 1:
        return f"{rng.uniform(-1, 1) * 10.0**rng.randint(-44, 37):.{rng.randrange(20)}e}"
    if kind == 2:
        return rng.choice(["0", "-0", "+5", ".5", "5.", "-.25", "1e5", "1E-3", "+1.5e+2", "007", "1e-400", "-0.0",
                           "3.4028235e38", "1e-45", "7e-46", "16777217", "0.1", "123456789.125", " 4", "4 "])
    if kind == 3:  # between two float32 values
        value = np.float32(rng.uniform(-100, 100))
        return repr((float(value) + float(np.nextafter(value, np.float32(200)))) / 2)
    return repr(round(rng.uniform(-1000, 1000), rng.randrange(8)))


class File:
    """A random file, with the rows that are bad on purpose."""

    def __init__(self, rng):
        self.rng = rng
        self.delimiter = rng.choice(",,,;\t|")
        self.keep_missing = rng.random() < 0.5
        self.skip_bad = rng.random() < 0.5
        self.end = rng.choice(["\n", "\n", "\r\n", "\r"])
        self.quotes = rng.choice([0, 0.3, 1])
        names = rng.sample(["a", "b c", "größe", "x,y", 'q"q', "price", "n\nn", "id", "Roof"], rng.randint(1, 5))
        if rng.random() < 0.05:
            names[0] = ""
        self.names = names
        self.is_text = [rng.random() < 0.35 for _ in names]
        self.words = [rng.sample(WORDS, rng.randint(1, 5)) for _ in names]
        self.target = rng.randrange(len(names)) if len(names) > 1 and rng.random() < 0.6 else None
        if self.target is not None and names[self.target] == "":
            self.target = None  # no option names this column
        self.defect = rng.choice(["twice", "no rows", "empty", "open"]) if rng.random() < 0.08 else None
        self.rows = [self.row() for _ in range(0 if self.defect == "no rows" else rng.randint(2, 8))]
        self.bad = {}  # kind by row; the first two are good, so that they tell the kinds of the columns
        for row in range(2, len(self.rows)):
            if rng.random() < 0.12:
                self.plant(row, rng.choice(BAD))
        self.write()

    def row(self):
        return [self.rng.choice(words) if is_text else number(self.rng) for words, is_text in zip(self.words, self.is_text)]

    def plant(self, row, kind):
        rng, cells = self.rng, self.rows[row]
        column = rng.randrange(len(cells))
        numbers = [i for i, is_text in enumerate(self.is_text) if not is_text]
        if kind == "target" and self.target is not None:
            cells[self.target] = rng.choice(MISSING)
        elif kind == "missing" and column != self.target:
            cells[column] = rng.choice(MISSING)
            if self.keep_missing:
                return  # a good row
        elif kind in ("text", "infinite", "large") and numbers:
            cells[rng.choice(numbers)] = {"text": rng.choice(["abc", "1,5", "1e", "0x10", "1_0", "--2"]),
                                          "infinite": rng.choice(["inf", "-inf", "Infinity"]),
                                          "large": rng.choice(["1e39", "-1e300", "1e400"])}[kind]
        elif kind == "short" and len(cells) > 1:
            cells.pop()
        elif kind == "long":
            cells.append("1")
        elif kind in ("after", "nul", "bytes"):
            cells[column] = {"after": AFTER, "nul": "a\0b", "bytes": "a\udcffb"}[kind]
        else:
            return
        self.bad[row] = kind

    def record(self, cells):
        texts = []
        for cell in cells:
            special = any(c in cell for c in (self.delimiter, '"', "\n", "\r"))
            quoted = cell != AFTER and (special or self.rng.random() < self.quotes)
            texts.append('"' + cell.replace('"', '""') + '"' if quoted else cell)
        line = self.delimiter.join(texts)
        if line.strip(" \t") == "":  # would be a blank line
            line = '""' if len(cells) == 1 else line
        return line

    def write(self):
        rng = self.rng
        names = self.names + [self.names[0]] if self.defect == "twice" else self.names
        parts = ["\ufeff"] if rng.random() < 0.1 else []
        parts += [self.record(names), self.end]
        good = list(parts)
        self.lines = {}
        for i, cells in enumerate(self.rows):
            if rng.random() < 0.1:
                parts.append(rng.choice(["", "  "]) + self.end)
            self.lines[i] = 1 + breaks("".join(parts))
            cells = cells + ["1"] if self.defect == "twice" else cells
            line = self.record(cells) + self.end
            parts.append(line)
            if i not in self.bad:
                good.append(line)
        if self.defect == "open":
            parts.append('"1' + self.delimiter)
        if self.defect == "empty":
            parts = ["\n"]
        if rng.random() < 0.3 and self.defect is None:
            parts[-1] = parts[-1].removesuffix(self.end)
        self.text = "".join(parts).encode(errors="surrogateescape")
        self.good = "".join(good).encode()

    def refused(self):
        """Returns parts of the message of sconce's error, and the reason; or nothing."""
        if self.defect is not None:
            others = {"empty": "expected a line of names", "open": "a quote that closes"}
            return [(DIFFERENT | others)[self.defect]], self.defect
        if not self.bad or self.skip_bad:
            return [], None
        row, kind = min(self.bad.items())
        return [f"line {self.lines[row]}", DIFFERENT.get(kind, "expected UTF-8")], kind


def breaks(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def read(text, delimiter, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.read_csv(io.BytesIO(text), sep=delimiter, float_precision="round_trip", **options)


def expected(file):
    """Returns the words of a table that pandas reads from the good rows."""
    frame = read(file.good, file.delimiter)
    keys, frame.columns = list(frame.columns), file.names
    texts = read(file.good, file.delimiter, dtype=str)
    texts.columns = file.names
    features, names, target = [], [], ["none"]
    for i, name in enumerate(file.names):
        if pd.api.types.is_numeric_dtype(frame[name]):
            # With this type the sign of "-0" stays.
            values = read(file.good, file.delimiter, dtype={keys[i]: np.float64})
            columns = pd.DataFrame({name: values[keys[i]].to_numpy().astype(np.float32)})
            if i == file.target:
                target = ["numbers", *bits(columns)]
        else:
            codes, categories = pd.factorize(texts[name], sort=True)
            columns = pd.get_dummies(texts[[name]], columns=[name], dummy_na=True, dtype=np.float32)
            if not texts[name].isna().any():
                columns = columns.iloc[:, :-1]  # pandas makes one for missing values in any case
            if i == file.target:
                target = ["categories", *map(str, codes)]
        if i != file.target:
            features.append(columns)
            names += list(columns.columns)
    table = pd.concat(features, axis=1)
    return ["read", str(len(table)), str(len(names)), str(len(file.bad)), *("=" + escape(name) for name in names),
            *bits(table), *target]


def bits(table):
    values = table.to_numpy(np.float32)
    values = np.where(np.isnan(values), np.float32(np.nan), values).astype(np.float32)
    return [f"{bits:x}" for bits in values.view(np.uint32).flatten().tolist()]


def escape(text):
    return urllib.parse.quote(text, safe=",;|\"")


def takes(file):
    """Returns whether pandas reads the whole file as a table of the names."""
    try:
        return list(read(file.text, file.delimiter).index[:1]) in ([], [0])
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        return False


def main():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".txt")
    lines, counts = [], {}
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 80):
        file = File(random.Random(seed))
        parts, reason = file.refused()
        is_taken = takes(file)
        if parts and is_taken and reason not in DIFFERENT:
            sys.exit(f"seed {seed}: pandas takes what is refused as {reason}: {file.text}")
        outcome = ["refused", *map(escape, parts)] if parts else expected(file)
        name = "" if file.target is None else file.names[file.target]
        lines.append(" ".join([escape(file.delimiter), str(int(file.keep_missing)), str(int(file.skip_bad)),
                               "=" + escape(name), escape(file.text), *outcome]))
        key = (f"refused ({reason})" if parts else "read") + f", {'read' if is_taken else 'refused'} by pandas"
        counts[key] = counts.get(key, 0) + 1
    path.write_text("\n".join(lines) + "\n")
    for key, count in sorted(counts.items()):
        print(f"{count:5} {key}")


if __name__ == "__main__":
    main()
