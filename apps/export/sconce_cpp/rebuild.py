"""Rebuilds a recorded program as a torch.export.ExportedProgram."""
import contextlib
import inspect
import keyword
import logging
import re
import warnings

import torch

from . import ProgramError
from .operators import DeviceType, Number, SizeSum, Value

# The values of dynamic sizes to try when tracing. Some operators, such as convolutions, need a large size, and others,
# such as a lookup in a table of positions, need a small one. If one row fails, the next one is tried. The sizes are
# prime numbers, because a size that equals a constant in the program, or a multiple of one, could be mistaken for it.
TRACED_SIZES = ((13, 17, 19, 23, 29, 31), (3, 5, 7, 11, 2, 13), (127, 131, 137, 139, 149, 151))


class RecordedModule(torch.nn.Module):
    """A module that executes the calls of a program. Parameters and buffers are placed in submodules according to their
    names."""

    def __init__(self, program, device):
        super().__init__()
        self._program = program
        self._device = device
        self._names = {}  # names of the weights, indexed by value
        tensors = {}
        for weight in program.weights:
            if weight.value not in tensors:
                tensor = program.tensors[weight.tensor].to(device_of(weight.device, program, device))
                tensors[weight.value] = as_parameter(tensor) if weight.kind == "parameter" else tensor
            self._names.setdefault(weight.value, weight.name)
            add_weight(self, weight, tensors[weight.value], program.path)
        # The names of forward's parameters become the names of the exported program's inputs.
        parameters = [inspect.Parameter(name_in_python(spec.name), inspect.Parameter.POSITIONAL_OR_KEYWORD)
                      for spec in program.inputs]
        self.forward = lambda *inputs: self._run(inputs)
        self.forward.__signature__ = inspect.Signature(parameters)

    def _run(self, inputs):
        values = {value: get_weight(self, name) for value, name in self._names.items()}
        sizes = {}
        for spec, tensor in zip(self._program.inputs, inputs):
            values[spec.value] = tensor
            for dim, entry in enumerate(spec.shape):
                if isinstance(entry, SizeSum):
                    sizes.setdefault(entry.name, tensor.size(dim))
        for call in self._program.calls:
            try:
                self._run_call(call, values, sizes)
            except Exception as error:
                error.place = call.place
                raise
        outputs = tuple(values[spec.value] for spec in self._program.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _run_call(self, call, values, sizes):
        def convert(argument):
            if isinstance(argument, list):
                return [convert(element) for element in argument]
            if isinstance(argument, Value):
                return values[argument.number]
            if isinstance(argument, SizeSum):
                return argument.at(sizes)
            if isinstance(argument, Number):
                return convert(argument.value)
            if isinstance(argument, DeviceType):
                return device_of(argument.name, self._program, self._device)
            return argument

        positional, keywords = [], {}
        for schema, argument in zip(call.operator._schema.arguments, call.arguments):
            if schema.kwarg_only:
                keywords[schema.name] = convert(argument)
            else:
                positional.append(convert(argument))
        # An overload does not accept a number in place of a tensor, but the operator's OpOverloadPacket does.
        has_number = any(isinstance(argument, Number) for argument in call.arguments)
        operator = call.operator.overloadpacket if has_number else call.operator
        if fills_with_random_numbers(call.operator, positional):
            operator(in_order_of_memory(positional[0]), *positional[1:], **keywords)
            results = positional[0]
        else:
            results = operator(*positional, **keywords)
        store(results if len(call.results) > 1 else [results], call.results, values)


def fills_with_random_numbers(operator, arguments):
    """Returns whether the operator fills its first argument, the only tensor, with random numbers."""
    written = operator._schema.arguments[0].alias_info if arguments else None
    return (torch.Tag.nondeterministic_seeded in operator.tags and written is not None and written.is_write
            and sum(isinstance(argument, torch.Tensor) for argument in arguments) == 1)


def in_order_of_memory(tensor):
    """Returns a view of a dense tensor whose dimensions are sorted by stride. Kernels write random numbers in this
    order, but PyTorch's functionalization writes them in the order of the dimensions."""
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def name_in_python(name):
    """Returns a name for an input in the code that PyTorch generates, in which some names are already taken."""
    used = {"self", "torch", "device", "inf", "nan", "fx_pytree", "pytree"}
    return f"{name}_" if name in used or keyword.iskeyword(name) else name


def store(results, numbers, values):
    """Stores results under the numbers of their values."""
    for result, number in zip(results, numbers):
        if isinstance(number, list):
            store(result, number, values)
        elif number is not None:
            values[number] = result


def device_of(name, program, device):
    """Returns the device to use for something that was recorded on this device type, because the program's device may
    have been replaced."""
    return device if name == program.device else torch.device(name)


def as_parameter(tensor):
    return torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point() or tensor.is_complex())


def add_weight(module, weight, tensor, path_of_program):
    """Registers a weight in the submodule specified by its name, creating the submodule if needed."""
    *path, last = weight.name.split(".")
    try:
        for part in path:
            if part not in module._modules:
                module.add_module(part, torch.nn.Module())
            module = module._modules[part]
        if isinstance(tensor, torch.nn.Parameter):
            module.register_parameter(last, tensor)
        else:
            module.register_buffer(last, tensor)
    except KeyError:  # Module already has an attribute with this name
        raise ProgramError(f"{path_of_program}: weight '{weight.name}': expected names that torch.nn.Module does not "
                           "use itself") from None


def get_weight(module, name):
    *path, last = name.split(".")
    return getattr(module.get_submodule(".".join(path)), last)


def default_device(program, device):
    """Returns the device on which to rebuild the program."""
    chosen = torch.device(program.device if device is None else device)
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ProgramError(f"{program.path}: expected a GPU, because the program was recorded on one, but PyTorch "
                           "finds none: specify another device, such as \"cpu\"")
    return chosen


def traced_inputs(program, sizes, device):
    """Returns inputs with the required shapes and types. Tracing does not read their values."""
    return tuple(torch.zeros([entry if isinstance(entry, int) else entry.at(sizes) for entry in spec.shape],
                             dtype=spec.dtype, device=device) for spec in program.inputs)


def traced_sizes(program, row):
    """Returns dynamic sizes within the program's range to use for tracing."""
    return {size.name: row[index % len(row)] + size.min - 1 for index, size in enumerate(program.sizes)}


def dynamic_shapes(program, bounds=None):
    """Returns the dynamic shapes for torch.export and torch.onnx as one dict per input. `bounds` contains the minimum
    and maximum sizes by name, if they differ from the program's."""
    dims = {}
    for size in program.sizes:
        smallest, largest = (bounds or {}).get(size.name, (None, None))
        dims[size.name] = torch.export.Dim(size.name, min=max(size.min, smallest or 0), max=largest)
    return tuple({dim: dims[entry.name] for dim, entry in enumerate(spec.shape) if isinstance(entry, SizeSum)}
                 for spec in program.inputs)


@contextlib.contextmanager
def without_messages():
    """Silences PyTorch's warnings and logs, which would include operator errors that another row of sizes may avoid."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def export_program(program, device=None):
    """Returns the program as a torch.export.ExportedProgram, on `device` if one is given."""
    chosen = default_device(program, device)
    module = RecordedModule(program, chosen).eval()
    first_error = None
    for row in TRACED_SIZES if program.sizes else TRACED_SIZES[:1]:
        try:
            with without_messages(), torch.no_grad():
                inputs = traced_inputs(program, traced_sizes(program, row), chosen)
                return export_module(module, program, inputs)
        except Exception as error:  # operators and torch.export raise many exception types
            first_error = first_error or error
    place = next((f"{error.place}: " for error in causes(first_error) if hasattr(error, "place")), "")
    raise ProgramError(f"{program.path}: {place}{first_error}") from first_error


def causes(error):
    """Yields an exception and the exceptions in its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def export_module(module, program, inputs):
    """Exports the module. If the operators accept a narrower range of sizes than the program, so does the exported
    program."""
    try:
        return torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes(program), strict=False)
    except torch._dynamo.exc.UserError as error:
        # Matches text such as "  length = Dim('length', min=7, max=64)". A size that must be constant has no Dim.
        dim = r"Dim\('\w+'(?:, min=(\d+))?(?:, max=(\d+))?\)"
        fixes = re.findall(rf"^ *(\w+) = (?:{dim}|.*)$", str(error), re.MULTILINE)
        if not fixes or not all(smallest or largest for _, smallest, largest in fixes):
            raise
        bounds = {name: tuple(int(bound) if bound else None for bound in found) for name, *found in fixes}
        return torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes(program, bounds), strict=False)
