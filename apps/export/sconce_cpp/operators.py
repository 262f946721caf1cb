"""The operators that a program may call. The arguments of each call are checked against the operator's schema."""
import dataclasses
import functools
import math
import re

import torch

# The aten operators that open files, print, or assign unchecked memory or sizes to a tensor. The C++ reader rejects the
# same operators.
REFUSED = re.compile("from_file|_print|_reshape_alias|_resize_output_|resize_|resize_as_|resize_as_sparse_|set_|set_data|"
                     "shallow_copy_data_|sparse_resize_|sparse_resize_and_clear_|_sparse_.*_tensor_unsafe")
DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "U16": torch.uint16,
    "I32": torch.int32, "U32": torch.uint32, "I64": torch.int64, "U64": torch.uint64, "F16": torch.float16,
    "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz, "F8_E8M0": torch.float8_e8m0fnu,
}
DTYPES_BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in (*DTYPES.values(), torch.complex128)}
LAYOUTS = {"strided": torch.strided}
MEMORY_FORMATS = {name: getattr(torch, name)
                  for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")}
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclasses.dataclass(frozen=True)
class SizeSum:
    """A size that depends on dynamic sizes, as a sum of products of coefficients and names."""
    terms: tuple

    @property
    def name(self):
        """Returns the dynamic size that equals this sum, or None."""
        coefficient, names = self.terms[0]
        return names[0] if len(self.terms) == len(names) == coefficient == 1 else None

    def at(self, sizes):
        """Returns the value of the sum, given a dict of dynamic sizes."""
        return sum(math.prod((sizes[name] for name in names), start=coefficient) for coefficient, names in self.terms)


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor argument, given by the number of its value."""
    number: int


@dataclasses.dataclass(frozen=True)
class Number:
    """A Python number passed in place of a tensor."""
    value: object


@dataclasses.dataclass(frozen=True)
class DeviceType:
    """A device argument, given by the device type."""
    name: str


@functools.cache
def dispatched_operators():
    """Returns the names of the operators registered with the dispatcher. torch.ops also contains TorchScript
    functions."""
    return frozenset(torch._C._dispatch_get_all_op_names())


def find_operator(reader, name, overload, place):
    """Returns the overload in torch.ops with this name. Raises an error if a program may not call it."""
    namespace, separator, short = name.partition("::")
    reader.check(separator and namespace == "aten",
                 f"{place}: expected an operator from the aten namespace, got '{name}'")
    reader.check(not REFUSED.fullmatch(short),
                 f"{place}: {name} is rejected, because it opens files, prints, or replaces memory")
    full = f"{name}.{overload}" if overload else name
    reader.check(full in dispatched_operators(),
                 f"{place}: expected an operator of PyTorch {torch.__version__}, got '{full}'")
    return getattr(getattr(torch.ops.aten, short), overload or "default")


def parse_arguments(reader, operator, given, values, sizes, place):
    """Returns the arguments in schema order, filling in the schema's default for each missing argument."""
    expected = operator._schema.arguments
    names = [argument.name for argument in expected]
    for name in given:
        reader.check(name in names,
                     f"{place}: argument '{name}': expected one of {', '.join(names)}, got an unknown name")
    arguments = []
    for argument in expected:
        where = f"{place}: argument '{argument.name}'"
        kind = str(argument.real_type)
        if argument.name in given:
            parser = ArgumentParser(reader, values, sizes, where)
            arguments.append(parser.parse(given[argument.name], kind))
        else:
            can_be_none = argument.has_default_value() or kind == "Tensor" or kind.startswith("Optional[")
            reader.check(can_be_none, f"{where}: expected {kind}, got nothing")
            arguments.append(argument.default_value)  # None means that there is no default
    return arguments


def parse_size(reader, entry, sizes, place):
    """Returns an integer, or the SizeSum described by JSON such as {"sum": [[4, "batch"], [1]]}."""
    if type(entry) is int and -2**63 <= entry < 2**63:
        return entry
    terms = entry.get("sum") if isinstance(entry, dict) and len(entry) == 1 else None
    reader.check(isinstance(terms, list) and terms, f"{place}: expected a size, got {entry!r:.80}")
    parsed = []
    for term in terms:
        reader.check(isinstance(term, list) and term and type(term[0]) is int and abs(term[0]) < 2**63,
                     f"{place}: expected a coefficient followed by size names, got {term!r:.80}")
        for name in term[1:]:
            reader.check(isinstance(name, str) and name in sizes,
                         f"{place}: expected the name of a dynamic size, got {name!r:.80}")
        parsed.append((term[0], tuple(term[1:])))
    return SizeSum(tuple(parsed))


class ArgumentParser:
    """Converts an argument from JSON to the type in the schema."""

    def __init__(self, reader, values, sizes, place):
        self.reader = reader
        self.values = values
        self.sizes = sizes
        self.place = place

    def parse(self, entry, kind):
        if entry is None and (kind == "Tensor" or kind.startswith("Optional[")):
            return None  # means an undefined tensor
        if kind.startswith("Optional["):
            return self.parse(entry, kind[len("Optional["):-1])
        if kind.startswith("List["):
            self.check(isinstance(entry, list), kind, entry)
            return [self.parse(element, kind[len("List["):-1]) for element in entry]
        parse = {"Tensor": self.tensor, "number": self.number, "int": self.integer, "float": self.floating,
                 "bool": self.simple, "str": self.simple, "ScalarType": self.named, "Layout": self.named,
                 "MemoryFormat": self.named, "Device": self.device}.get(kind)
        if parse is None:
            self.reader.fail(f"{self.place}: arguments of type {kind} are not supported")
        return parse(entry, kind)

    def check(self, condition, kind, entry):
        self.reader.check(condition, f"{self.place}: expected {kind}, got {entry!r:.80}")

    def only(self, entry, key):
        """Returns the value of an object whose only key is `key`, or None otherwise."""
        return entry.get(key) if isinstance(entry, dict) and len(entry) == 1 else None

    def tensor(self, entry, kind):
        if isinstance(entry, dict) and entry.keys() == {"number"}:
            return Number(self.number(entry["number"], "number"))
        value = self.only(entry, "value")
        self.check(type(value) is int, kind, entry)
        self.values.use(value, self.place)
        return Value(value)

    def number(self, entry, kind):
        if isinstance(entry, bool):
            return entry
        if self.only(entry, "float") is not None:
            return self.floating(entry, kind)
        parts = self.only(entry, "complex")
        if parts is not None:
            self.check(isinstance(parts, list) and len(parts) == 2, kind, entry)
            return complex(*(self.floating({"float": part}, kind) for part in parts))
        return self.integer(entry, kind)

    def integer(self, entry, kind):
        is_size = type(entry) is int or self.only(entry, "sum") is not None
        self.check(is_size, kind, entry)
        return parse_size(self.reader, entry, self.sizes, self.place)

    def floating(self, entry, kind):
        value = self.only(entry, "float")
        self.check(type(value) in (int, float) or isinstance(value, str) and value in NOT_FINITE, kind, entry)
        return NOT_FINITE[value] if isinstance(value, str) else float(value)

    def simple(self, entry, kind):
        self.check(isinstance(entry, {"bool": bool, "str": str}[kind]), kind, entry)
        return entry

    def named(self, entry, kind):
        key, table = {"ScalarType": ("dtype", DTYPES_BY_NAME), "Layout": ("layout", LAYOUTS),
                      "MemoryFormat": ("memory_format", MEMORY_FORMATS)}[kind]
        name = self.only(entry, key)
        self.check(isinstance(name, str) and name in table, kind, entry)
        return table[name]

    def device(self, entry, kind):
        name = self.only(entry, "device")
        self.check(name in ("cpu", self.reader.device), f"the program's {kind} or \"cpu\"", entry)
        return DeviceType(name)
