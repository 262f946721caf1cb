"""Writes program files, like sconce::program::record, from a list of calls."""
import json
import zlib

import torch

CODES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64",
         torch.bool: "BOOL"}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def size(*terms):
    """A size that depends on dynamic sizes: size([4, "batch"], [1])."""
    return {"sum": list(terms)}


def crc32(data):
    return f"{zlib.crc32(data):08x}"


def save_tensors(path, tensors, metadata):
    """Writes a safetensors file."""
    header, parts, end = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        data = bytes_of(tensor)
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(data)]}
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def bytes_of(tensor):
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())


class ProgramWriter:
    """A program that is written one call at a time. Each method that creates a value returns a reference to it for
    later calls."""

    def __init__(self, device="cpu"):
        self.program = {"version": 1, "torch": torch.__version__.split("+")[0], "device": device, "sizes": [],
                        "inputs": [], "outputs": [], "weights": [], "crc32": {}, "example": False, "values": 0,
                        "calls": []}
        self.tensors = {}

    def value(self):
        self.program["values"] += 1
        return self.program["values"] - 1

    def size(self, name, smallest=1):
        self.program["sizes"].append({"name": name, "min": smallest})
        return size([1, name])

    def input(self, name, shape, dtype=torch.float32):
        value = self.value()
        self.program["inputs"].append({"name": name, "value": value, "dtype": name_of(dtype), "shape": shape})
        return {"value": value}

    def weight(self, name, tensor, kind="parameter", device=None):
        value = self.value()
        self.tensors[name] = tensor
        self.program["weights"].append({"name": name, "value": value, "kind": kind, "tensor": name,
                                        "device": device or self.program["device"]})
        return {"value": value}

    def tie(self, name, to):
        """Adds a second name for a weight."""
        entry = next(entry for entry in self.program["weights"] if entry["name"] == to)
        self.program["weights"].append(entry | {"name": name})

    def call(self, op, overload="", results=1, /, **arguments):
        """Adds a call with one result, with a list of this many results, or with one result that is a list ([2])."""
        def make(count):
            return [self.value() for _ in range(count)]

        numbers = [make(results[0])] if isinstance(results, list) else make(results)
        self.program["calls"].append({"op": f"aten::{op}", "overload": overload, "args": arguments,
                                      "results": numbers})
        values = [{"value": number} for number in (numbers[0] if isinstance(results, list) else numbers)]
        return values[0] if results == 1 else values

    def output(self, name, value, shape, dtype=torch.float32):
        self.program["outputs"].append({"name": name, "dtype": name_of(dtype), "shape": shape} | value)

    def example(self, inputs, outputs):
        """Adds example tensors, dicts by name."""
        self.program["example"] = True
        for of, tensors in (("inputs", inputs), ("outputs", outputs)):
            self.tensors |= {f"example.{of}.{name}": tensor for name, tensor in tensors.items()}

    def save(self, path, **changes):
        """Writes the file with other entries for the program if any are passed."""
        checksums = {name: crc32(bytes_of(tensor)) for name, tensor in self.tensors.items()}
        text = json.dumps(self.program | {"crc32": checksums} | changes)
        save_tensors(path, self.tensors, {"format": "pt", "sconce.program": text,
                                          "sconce.program.crc32": crc32(text.encode())})
        return path
