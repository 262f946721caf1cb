"""Reads a program file, which is a safetensors file that contains the program as JSON in its metadata. Checks
everything that can be checked without running an operator."""
import collections
import dataclasses
import json
import math
import os
import re
import zlib

import torch

from . import ProgramError
from .operators import DTYPES, DTYPES_BY_NAME, SizeSum, find_operator, parse_arguments, parse_size

VERSION = 1
MAX_HEADER_BYTES = 100_000_000  # the limit set by safetensors

# Because Python code is generated from these names, no other characters are allowed.
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WEIGHT_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")


@dataclasses.dataclass
class Size:
    """A dynamic size of an input."""
    name: str
    min: int


@dataclasses.dataclass
class Spec:
    """An input or output. Each entry in the shape is an integer or an `operators.SizeSum`."""
    name: str
    value: int
    dtype: torch.dtype
    shape: list


@dataclasses.dataclass
class Weight:
    """A parameter, buffer, or constant with its C++ name. Tied weights share a value and a tensor."""
    name: str
    value: int
    kind: str
    tensor: str
    device: str


@dataclasses.dataclass
class Call:
    """One call of an operator. `arguments` lists the arguments in schema order. For each result in the schema,
    `results` contains a value's number, None, or a list of these."""
    operator: torch._ops.OpOverload
    arguments: list
    results: list
    place: str


@dataclasses.dataclass
class Program:
    path: str
    torch: str
    device: str
    sizes: list
    inputs: list
    outputs: list
    weights: list
    calls: list
    tensors: dict
    has_example: bool

    def example(self, of):
        """Returns the example tensors for the inputs or outputs, in order."""
        return [self.tensors[f"example.{of}.{spec.name}"] for spec in getattr(self, of)]


class Reader:
    """The state shared by the checks of one file: the path, the program's device, and typed access to JSON entries."""

    def __init__(self, path):
        self.path = path
        self.device = "cpu"  # the program's

    def fail(self, message):
        raise ProgramError(f"{self.path}: {message}")

    def check(self, condition, message):
        if not condition:
            self.fail(message)

    def field(self, entry, key, kinds, place):
        """Returns the value of `key`, which must have one of the types in `kinds`."""
        self.check(isinstance(entry, dict), f"{place}: expected an object, got {describe(entry)}")
        where = f"{place}.{key}" if place else key
        self.check(key in entry, f"{where}: expected {KINDS[kinds]}, got nothing")
        value = entry[key]
        is_bool = isinstance(value, bool)
        self.check(isinstance(value, kinds) and is_bool == (kinds is bool),
                   f"{where}: expected {KINDS[kinds]}, got {describe(value)}")
        return value


KINDS = {str: "a string", int: "an integer", bool: "true or false", list: "an array", dict: "an object"}


def describe(value):
    """Returns a short description of a JSON value for error messages."""
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def without_duplicates(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        name, _ = collections.Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {name!r} occurs twice")
    return result


def parse_json(text):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, object_pairs_hook=without_duplicates, parse_constant=refuse)
    except RecursionError:
        raise ValueError("arrays and objects are nested too deeply") from None


def read_program(path):
    """Reads and checks a program file.

    Raises `ProgramError` if the file is not a program of this version or is corrupted, and `OSError` if the system
    cannot read it.
    """
    reader = Reader(os.fspath(path))
    with open(path, "rb") as file:
        header, data_start, data_size = read_header(reader, file)
        program = read_text(reader, header)
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        checksums = reader.field(program, "crc32", dict, "")
        tensors = read_tensors(reader, file, entries, checksums, data_start, data_size)
    return check_program(reader, program, tensors)


def read_header(reader, file):
    """Returns the header, the offset of the tensor data, and its size in bytes."""
    size = os.fstat(file.fileno()).st_size
    reader.check(size >= 8, f"expected a safetensors file of at least 8 bytes, found {size}")
    length = int.from_bytes(file.read(8), "little")
    reader.check(length <= min(size - 8, MAX_HEADER_BYTES),
                 f"expected a safetensors file, got a header of {length} bytes in a file of {size}")
    try:
        header = parse_json(file.read(length).decode("utf-8"))
    except ValueError as error:
        reader.fail(f"expected a header in JSON: {error}")
    reader.check(isinstance(header, dict), "expected a header that is an object")
    return header, 8 + length, size - 8 - length


def read_text(reader, header):
    """Returns the program's JSON after verifying its CRC-32 and its version."""
    metadata = header.get("__metadata__", {})
    text = metadata.get("sconce.program") if isinstance(metadata, dict) else None
    reader.check(isinstance(text, str),
                 "expected a program written by sconce::program::record, got a file without 'sconce.program'")
    expected, found = metadata.get("sconce.program.crc32"), f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
    reader.check(expected == found,
                 f"the program is damaged: expected the CRC-32 {describe(expected)}, got \"{found}\"")
    try:
        program = parse_json(text)
    except ValueError as error:
        reader.fail(f"expected a program in JSON: {error}")
    version = reader.field(program, "version", int, "")
    reader.check(version == VERSION, f"expected a program of version {VERSION}, got version {version}")
    return program


def check_entry(reader, name, entry, data_size):
    """Returns the type, shape, and byte range of a tensor."""
    where = f"tensor '{name}'"
    code = reader.field(entry, "dtype", str, where)
    reader.check(code in DTYPES, f"{where}: expected a type of PyTorch, got '{code}'")
    shape = reader.field(entry, "shape", list, where)
    offsets = reader.field(entry, "data_offsets", list, where)
    numbers = [*shape, *offsets]
    reader.check(len(offsets) == 2 and all(type(number) is int and 0 <= number < 2**48 for number in numbers),
                 f"{where}: expected a shape and two offsets, got {describe(shape)} and {describe(offsets)}")
    begin, end = offsets
    reader.check(begin <= end <= data_size, f"{where}: expected bytes {begin} to {end}, found {data_size}")
    size = math.prod(shape) * DTYPES[code].itemsize
    reader.check(end - begin == size, f"{where}: expected {size} bytes, got {end - begin}")
    return DTYPES[code], shape, begin, end


def read_tensors(reader, file, entries, checksums, data_start, data_size):
    """Returns the tensors by name after verifying their CRC-32s."""
    for name in sorted(entries.keys() ^ checksums.keys()):
        reader.fail(f"'{name}': expected a tensor and its CRC-32 in the program, got only one of them")
    ranges = {name: check_entry(reader, name, entry, data_size) for name, entry in entries.items()}
    total = sum(end - begin for _, _, begin, end in ranges.values())
    reader.check(total == data_size, f"expected {total} bytes of tensors, found {data_size}")
    tensors = {}
    for name, (dtype, shape, begin, end) in ranges.items():
        data = bytearray(end - begin)
        file.seek(data_start + begin)
        reader.check(file.readinto(data) == len(data), f"tensor '{name}': expected {len(data)} bytes, found fewer")
        found = f"{zlib.crc32(data):08x}"
        reader.check(found == checksums[name], f"tensor '{name}' is damaged: expected the CRC-32 "
                                               f"{describe(checksums[name])}, got \"{found}\"")
        tensors[name] = torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)
    return tensors


def check_program(reader, text, tensors):
    """Returns the Program that the JSON describes."""
    device = reader.field(text, "device", str, "")
    reader.check(device in ("cpu", "cuda"), f"device: expected \"cpu\" or \"cuda\", got {describe(device)}")
    reader.device = device
    sizes = [check_size(reader, entry, f"sizes[{index}]")
             for index, entry in enumerate(reader.field(text, "sizes", list, ""))]
    names = {size.name for size in sizes}
    reader.check(len(names) == len(sizes), "sizes: expected different names")
    inputs, outputs = (check_specs(reader, text, of, names) for of in ("inputs", "outputs"))
    weights = [check_weight(reader, entry, f"weights[{index}]", tensors)
               for index, entry in enumerate(reader.field(text, "weights", list, ""))]
    values = Values(reader, reader.field(text, "values", int, ""))
    for spec in inputs:
        values.define(spec.value, f"input '{spec.name}'")
    check_weight_values(reader, weights, values)
    calls = [check_call(reader, entry, f"calls[{index}]", values, names)
             for index, entry in enumerate(reader.field(text, "calls", list, ""))]
    for spec in outputs:
        values.use(spec.value, f"output '{spec.name}'")
    check_sizes_of_inputs(reader, inputs, sizes)
    program = Program(reader.path, reader.field(text, "torch", str, ""), device, sizes, inputs, outputs, weights, calls,
                      tensors, reader.field(text, "example", bool, ""))
    if program.has_example:
        check_example(reader, program)
    return program


class Values:
    """Checks that each value is defined once and before it is used."""

    def __init__(self, reader, count):
        self.reader = reader
        self.count = count
        self.defined = set()

    def define(self, value, place):
        self.reader.check(type(value) is int and 0 <= value < self.count,
                          f"{place}: expected a value from 0 to {self.count - 1}, got {describe(value)}")
        self.reader.check(value not in self.defined, f"{place}: expected a new value, got {value} again")
        self.defined.add(value)

    def use(self, value, place):
        self.reader.check(value in self.defined, f"{place}: value {value} is used before it is defined")


def check_size(reader, entry, place):
    name = reader.field(entry, "name", str, place)
    reader.check(IDENTIFIER.fullmatch(name), f"{place}.name: expected letters, digits and _, got {describe(name)}")
    smallest = reader.field(entry, "min", int, place)
    reader.check(1 <= smallest < 2**31, f"{place}.min: expected a size from 1, got {smallest}")
    return Size(name, smallest)


def check_specs(reader, text, of, sizes):
    """Returns the Specs of the inputs or outputs."""
    specs = []
    for index, entry in enumerate(reader.field(text, of, list, "")):
        place = f"{of}[{index}]"
        name = reader.field(entry, "name", str, place)
        reader.check(IDENTIFIER.fullmatch(name), f"{place}.name: expected letters, digits and _, got {describe(name)}")
        dtype = reader.field(entry, "dtype", str, place)
        reader.check(dtype in DTYPES_BY_NAME, f"{place}.dtype: expected a type of PyTorch, got {describe(dtype)}")
        shape = [parse_size(reader, entry, sizes, f"{place}.shape")
                 for entry in reader.field(entry, "shape", list, place)]
        pure = all(isinstance(entry, int) or entry.name is not None for entry in shape)
        reader.check(of == "outputs" or pure, f"{place}.shape: expected integers and size names, got sums")
        specs.append(Spec(name, reader.field(entry, "value", int, place), DTYPES_BY_NAME[dtype], shape))
    reader.check(len({spec.name for spec in specs}) == len(specs), f"{of}: expected different names")
    return specs


def check_weight(reader, entry, place, tensors):
    name = reader.field(entry, "name", str, place)
    reader.check(WEIGHT_NAME.fullmatch(name),
                 f"{place}.name: expected letters, digits and _ between dots, got {describe(name)}")
    tensor = reader.field(entry, "tensor", str, place)
    reader.check(tensor in tensors, f"{place}.tensor: expected a tensor of the file, got {describe(tensor)}")
    kind = reader.field(entry, "kind", str, place)
    reader.check(kind in ("parameter", "buffer", "constant"),
                 f"{place}.kind: expected \"parameter\", \"buffer\" or \"constant\", got {describe(kind)}")
    device = reader.field(entry, "device", str, place)
    reader.check(device in ("cpu", reader.device),
                 f"{place}.device: expected the program's device or \"cpu\", got {describe(device)}")
    return Weight(name, reader.field(entry, "value", int, place), kind, tensor, device)


def check_weight_values(reader, weights, values):
    """Checks that all weights have different names, and that only tied weights share a value."""
    reader.check(len({weight.name for weight in weights}) == len(weights), "weights: expected different names")
    tensor_of = {}
    for weight in weights:
        place = f"weight '{weight.name}'"
        if weight.value not in tensor_of:
            values.define(weight.value, place)
        tensor = tensor_of.setdefault(weight.value, weight.tensor)
        reader.check(tensor == weight.tensor,
                     f"{place}: expected the tensor '{tensor}', as the weight with the same value, got '{weight.tensor}'")


def check_call(reader, entry, place, values, sizes):
    name = reader.field(entry, "op", str, place)
    operator = find_operator(reader, name, reader.field(entry, "overload", str, place), place)
    place = f"{place} {name}"
    arguments = parse_arguments(reader, operator, reader.field(entry, "args", dict, place), values, sizes, place)
    results = reader.field(entry, "results", list, place)
    expected = operator._schema.returns
    reader.check(len(results) == len(expected),
                 f"{place}: expected {len(expected)} results, got {describe(results)}")
    for index, (result, schema) in enumerate(zip(results, expected)):
        define_result(reader, result, str(schema.type), values, f"{place}: result {index}")
    return Call(operator, arguments, results, place)


def define_result(reader, result, kind, values, place):
    is_list = kind == "List[Tensor]"
    expected = {"Tensor": "a value or null", "List[Tensor]": "an array of values"}.get(kind, "null")
    reader.check(result is None or kind in ("Tensor", "List[Tensor]") and isinstance(result, list) == is_list,
                 f"{place}: expected {expected}, got {describe(result)}")
    for value in result if is_list and result is not None else [result]:
        if value is not None:
            values.define(value, place)


def check_sizes_of_inputs(reader, inputs, sizes):
    """Checks that each dynamic size is a dimension of at least one input."""
    found = {entry.name for spec in inputs for entry in spec.shape if not isinstance(entry, int)}
    for size in sizes:
        reader.check(size.name in found, f"size '{size.name}': expected an input with this size, found none")


def check_example(reader, program):
    """Checks that the file contains an example of each input and output, and that their shapes are consistent."""
    known = {}
    for of in ("inputs", "outputs"):
        for spec in getattr(program, of):
            place = f"example.{of}.{spec.name}"
            reader.check(place in program.tensors, f"{place}: expected a tensor, found none")
            tensor = program.tensors[place]
            if of == "inputs":
                for entry, size in zip(spec.shape, tensor.shape):
                    if not isinstance(entry, int) and entry.name is not None:
                        known.setdefault(entry.name, size)
            expected = [entry if isinstance(entry, int) else entry.at(known) for entry in spec.shape]
            reader.check(tensor.dtype == spec.dtype and list(tensor.shape) == expected,
                         f"{place}: expected {spec.dtype} {expected}, got {tensor.dtype} {list(tensor.shape)}")
