"""Writes read_csv.txt: random CSV files and what pandas reads from them, for tests/io/csv_test.cpp.

    python3 read_csv.py                 # needs pandas
    python3 read_csv.py FILE COUNT      # COUNT files, for a check by hand:
    SCONCE_CSV_CASES=FILE build/default/bin/test-io "read_csv reads CSV files the same way as pandas"

Each line is a file: the delimiter, keep_missing, skip_bad, the target, the columns of categories, na_values, the text, and
either "refused" with parts of the message, or "read" with the rows, features, and skipped rows, the names of the features,
the bits of the values, and the target. pandas reads each file as well, and the script ends with an error if pandas accepts
a file that sconce must reject for none of the reasons in DIFFERENT.

The rules of read_csv, which are implemented here again, determine which rows are bad. All values and categories come from
pandas: numbers as float64, and categories as strings, or as exact decimals if all are numbers. The script also counts the
files in which pandas' default types merge different numbers.
"""

import io
import random
import re
import sys
import urllib.parse
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

# Tables that sconce rejects but pandas accepts, each with a part of sconce's message.
DIFFERENT = {
    "short": "fields, got",  # pandas adds missing values
    "long": "fields, got",  # pandas uses a first column without a name as the index, if the first row is longer
    "text": "expected a number, got",  # pandas reads a column of numbers and texts as objects
    "texts": "skip_bad would drop",  # in a column of numbers
    "infinite": "expected a finite number, got",
    "large": "expected a number in the range of float32",
    "missing": "expected a value",
    "target": "expected a target",
    "after": "expected a quoted field to end with its closing quote",
    "nul": "got a NUL byte",
    "twice": "unique column names, got",  # the second "a" becomes "a.1"
    "no rows": "expected rows",
}
MISSING = ["", "NA", "NaN", "nan", "null", "N/A", "None", "NULL", "#N/A", "n/a", "<NA>"]
WORDS = ["red", "Red", "blue", "grün", "a b", "x,y", 'say "hi"', "two\nlines", "two\r\nlines", "tab\there", "semi;colon",
         "a|b", " lead", "trail ", "日本", "-", "+", "e5", "1a", "1.2.3", "0x1F", "1 2", "--1", "..", "NAN", "none"]
AFTER = '"a"b'
BAD = ["short", "long", "text", "infinite", "large", "missing", "target", "after", "nul", "bytes"]
MALFORMED = {"short", "long", "after", "nul", "bytes"}
INFINITE = ["inf", "-inf", "Infinity", "+INF", "-infinity"]
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
INFINITY = re.compile(r"[ \t]*[+-]?inf(inity)?[ \t]*", re.IGNORECASE)
NOT_FLOAT32 = float(2**128 - 2**103)  # this and greater numbers round to infinity


def number(rng):
    kind = rng.randrange(10)
    if kind >= 8:  # an integer, or one with an exponent
        digits = rng.choice(["", "+", "-", "0", "-00"]) + str(rng.randint(1, 10**rng.randrange(1, 31)))
        return digits + rng.choice(["", "", f"e{rng.randint(-40, 6)}", f"E+{rng.randint(0, 6)}"])
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


def spelled(rng, value):
    """Returns an integer in one of its spellings."""
    text = rng.choice([str(value), str(value), f"{value}.0", f"{value}e0", f"{value}0e-1"])
    return text if value < 0 else rng.choice(["", "", "", "+", "0"]) + text


class File:
    """Returns a random file, and the rows that are intentionally bad."""

    def __init__(self, rng):
        self.rng = rng
        self.delimiter = rng.choice(",,,;\t|")
        self.keep_missing = rng.random() < 0.5
        self.skip_bad = rng.random() < 0.5
        self.end = rng.choice(["\n", "\n", "\r\n", "\r"])
        self.quotes = rng.choice([0, 0.3, 1])
        self.na_values = rng.choice([[], [], [], ["?"], ["-999"], ["?", "-999.0"], ["1e3"]])
        names = rng.sample(["a", "b c", "größe", "x,y", 'q"q', "price", "n\nn", "id", "Roof"], rng.randint(1, 5))
        if rng.random() < 0.05:
            names[0] = ""
        self.names = names
        self.plans = rng.choices(["numbers", "words", "codes", "mixed", "infinite"], [50, 28, 14, 6, 2], k=len(names))
        self.pools = [self.pool(plan) for plan in self.plans]
        # An option cannot specify the name "".
        self.categories = [name for name, plan in zip(names, self.plans) if plan == "codes" and name != ""]
        self.target = rng.randrange(len(names)) if len(names) > 1 and rng.random() < 0.6 else None
        if self.target is not None and names[self.target] == "":
            self.target = None
        self.defect = rng.choice(["twice", "no rows", "empty", "open"]) if rng.random() < 0.08 else None
        self.rows = [self.row() for _ in range(0 if self.defect == "no rows" else rng.randint(2, 8))]
        self.malformed = {}  # kind by row
        for row in range(2, len(self.rows)):
            if rng.random() < 0.12:
                self.plant(row, rng.choice(BAD))
        self.kinds = [self.kind(i) for i in range(len(names))]
        problems = {row: self.problem(row) for row in range(len(self.rows))}
        self.bad = {row: problem for row, problem in problems.items() if problem is not None}
        self.write()

    def pool(self, plan):
        rng = self.rng
        if plan == "codes":  # integers close to each other
            first = rng.choice([1, 2**53, 2**63, 2**64, 10**29]) * rng.choice([1, 1, -1])
            return [first + i for i in range(rng.randint(1, 4))]
        return rng.sample(WORDS, rng.randint(1, 5))

    def cell(self, plan, pool):
        rng = self.rng
        if plan == "numbers" and self.na_values and rng.random() < 0.1:
            return rng.choice(["?", "-999", "-999.00", "-9.99e2", "1000", "1.0E3"])
        if plan == "numbers":
            return number(rng)
        if plan == "codes":
            others = [rng.choice(["0.5", "1e400", "-inf"]), rng.choice(["-999", "1000", "?", "NA"]), "old"]
            return rng.choice(others) if rng.random() < 0.04 else spelled(rng, rng.choice(pool))
        if plan == "mixed":
            return number(rng) if rng.random() < 0.4 else rng.choice(pool)
        return rng.choice(INFINITE if plan == "infinite" or rng.random() < 0.02 else pool)

    def row(self):
        return [self.cell(plan, pool) for plan, pool in zip(self.plans, self.pools)]

    def plant(self, row, kind):
        rng, cells = self.rng, self.rows[row]
        column = rng.randrange(len(cells))
        numbers = [i for i, plan in enumerate(self.plans) if plan == "numbers"]
        if kind == "target" and self.target is not None:
            cells[self.target] = rng.choice(MISSING)
        elif kind == "missing" and column != self.target:
            cells[column] = rng.choice(MISSING)
        elif kind in ("text", "infinite", "large") and numbers:
            cells[rng.choice(numbers)] = {"text": rng.choice(["abc", "1,5", "1e", "0x10", "1_0", "--2"]),
                                          "infinite": rng.choice(INFINITE),
                                          "large": rng.choice(["1e39", "-1e300", "1e400"])}[kind]
        elif kind == "short" and len(cells) > 1:
            cells.pop()
        elif kind == "long":
            cells.append("1")
        elif kind in ("after", "nul", "bytes"):
            cells[column] = {"after": AFTER, "nul": "a\0b", "bytes": "a\udcffb"}[kind]
        if kind == "long" or (kind in MALFORMED and (kind != "short" or len(self.names) > 1)):
            self.malformed[row] = kind

    def is_missing(self, text):
        value = decimal(text)
        return text in MISSING or text in self.na_values or (
            value is not None and any(decimal(other) == value for other in self.na_values))

    def values(self, i):
        """Returns the values of a column that are not missing, with their rows."""
        return [(row, cells[i]) for row, cells in enumerate(self.rows)
                if row not in self.malformed and not self.is_missing(cells[i])]

    def kind(self, i):
        texts = [text for _, text in self.values(i)]
        if self.names[i] in self.categories:
            return "categories"
        if any(NUMBER.fullmatch(text) for text in texts) or all(INFINITY.fullmatch(text) for text in texts):
            return "numbers"
        return "categories"

    def problem(self, row):
        """Returns the problem with a row, and the column or nothing; or nothing."""
        if row in self.malformed:
            return self.malformed[row], None
        for i, text in enumerate(self.rows[row]):
            if self.is_missing(text):
                if i == self.target or not self.keep_missing:
                    return "target" if i == self.target else "missing", i
            elif self.kinds[i] == "numbers":
                if not NUMBER.fullmatch(text):
                    return "infinite" if INFINITY.fullmatch(text) else "text", i
                if abs(float(text)) >= NOT_FLOAT32:
                    return "large", i
        return None

    def mostly_texts(self):
        """Returns the first text, and its column, in a column of numbers with more texts than numbers; or nothing."""
        for i, kind in enumerate(self.kinds):
            rows = [row for row, text in self.values(i) if not NUMBER.fullmatch(text) and not INFINITY.fullmatch(text)]
            if kind == "numbers" and len(rows) > len(self.values(i)) - len(rows):
                return rows[0], i
        return None

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
            others = {"empty": "expected a line of column names", "open": "a quote that closes"}
            return [(DIFFERENT | others)[self.defect]], self.defect
        if not self.bad:
            return [], None
        row, (kind, column) = min(self.bad.items())
        if self.skip_bad and self.mostly_texts() is not None:
            kind = "texts"
            row, column = self.mostly_texts()
        elif self.skip_bad and len(self.bad) < len(self.rows):
            return [], None
        parts = [f"line {self.lines[row]}" + (":" if column is None else ", column ")]
        if column is not None:
            parts.append(self.names[column].replace("\n", " ") + "': expected")
        if kind in ("text", "texts"):
            numbers = [i for i, text in self.values(column) if NUMBER.fullmatch(text)]
            parts.append(f"(line {self.lines[numbers[0]]} made this column numeric; to read strings, add the column")
        return [*parts, DIFFERENT.get(kind, "expected valid UTF-8")], kind


def decimal(text):
    return Decimal(text.strip(" \t")) if NUMBER.fullmatch(text) or INFINITY.fullmatch(text) else None


def breaks(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def read(text, delimiter, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.read_csv(io.BytesIO(text), sep=delimiter, float_precision="round_trip", **options)


def expected(file, counts):
    """Returns the words of the table that pandas reads from the good rows."""
    frame = read(file.good, file.delimiter, na_values=file.na_values)
    keys, frame.columns = list(frame.columns), file.names
    texts = read(file.good, file.delimiter, na_values=file.na_values, dtype=str)
    texts.columns = file.names
    features, names, target = [], [], ["none"]
    for i, name in enumerate(file.names):
        if file.kinds[i] == "numbers":
            if not pd.api.types.is_numeric_dtype(frame[name]):
                count(counts, "a column of integers beyond 64 bits, which pandas leaves as it is")
            # This type keeps the sign of "-0".
            values = read(file.good, file.delimiter, na_values=file.na_values, dtype={keys[i]: np.float64})
            columns = pd.DataFrame({name: values[keys[i]].to_numpy().astype(np.float32)})
            if i == file.target:
                target = ["numbers", *bits(columns)]
        else:
            columns, codes = categories(texts[name], frame[name], counts)
            if i == file.target:
                target = ["categories", *map(str, codes)]
        if i != file.target:
            features.append(columns)
            names += list(columns.columns)
    table = pd.concat(features, axis=1)
    return ["read", str(len(table)), str(len(names)), str(len(file.bad)), *("=" + escape(name) for name in names),
            *bits(table), *target]


def categories(texts, values, counts):
    """Returns the columns and the codes of categories, with the column as pandas reads it by default."""
    keys = texts
    if all(decimal(text) is not None for text in texts.dropna()):
        keys = texts.map(decimal, na_action="ignore").astype(object)
        if pd.api.types.is_numeric_dtype(values):
            by_default = pd.factorize(values, sort=True)[0]
            same = np.array_equal(pd.factorize(keys, sort=True)[0], by_default)
            count(counts, f"a column of numbers as categories, {'as by pandas' if same else 'merged by its float64'}")
            if not same and not np.array_equal(pd.factorize(keys.map(float), sort=True)[0], by_default):
                sys.exit(f"pandas groups {list(texts)} neither by value nor by float64")
    codes, order = pd.factorize(keys, sort=True)
    first = [texts[keys == key].iloc[0] for key in order]
    named = pd.Series(pd.Categorical.from_codes(codes, first), name=texts.name)
    columns = pd.get_dummies(named.to_frame(), columns=[texts.name], dummy_na=True, dtype=np.float32)
    # pandas makes a column for missing values in any case.
    return columns if texts.isna().any() else columns.iloc[:, :-1], codes


def count(counts, key):
    counts[key] = counts.get(key, 0) + 1


def bits(table):
    values = table.to_numpy(np.float32)
    values = np.where(np.isnan(values), np.float32(np.nan), values).astype(np.float32)
    return [f"{bits:x}" for bits in values.view(np.uint32).flatten().tolist()]


def escape(text):
    return urllib.parse.quote(text, safe=",;|\"")


def words(texts):
    return [str(len(texts)), *("=" + escape(text) for text in texts)]


def takes(file):
    """Returns whether pandas reads the whole file as a table with these names."""
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
        outcome = ["refused", *map(escape, parts)] if parts else expected(file, counts)
        name = "" if file.target is None else file.names[file.target]
        lines.append(" ".join([escape(file.delimiter), str(int(file.keep_missing)), str(int(file.skip_bad)),
                               "=" + escape(name), *words(file.categories), *words(file.na_values),
                               escape(file.text), *outcome]))
        count(counts, (f"refused ({reason})" if parts else "read") + f", {'read' if is_taken else 'refused'} by pandas")
    path.write_text("\n".join(lines) + "\n")
    for key, number_of in sorted(counts.items()):
        print(f"{number_of:5} {key}")


if __name__ == "__main__":
    main()
