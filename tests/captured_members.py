#!/usr/bin/env python3
"""Checks that this table describes, for each public member function that changes an object, how a captured step handles
it.

Reads the public headers. Fails if a non-const member function is missing from the table, or if an entry is not in any
header.

    captured_members.py <folder include/sconce>
"""

import pathlib
import re
import sys

# How a captured step handles a call inside its function.
REPLAYED = "a replay on the CPU calls it again; a capture on a GPU refuses it by name"
STEPPED = "a replay on the CPU calls it again; a graph has its kernels"
TENSORS = "it changes tensors by operators alone, which a replay runs again"
REFUSED = "a capture refuses it by name"
SCALER = "tensors by operators, and a condition: a call without update in the same function is refused"
NUMBERS = "it sets numbers; a capture depends on them and is made again"
CALLBACK = "the Trainer calls it, outside of a capture"
READ = "it reads a tensor on the host, which a capture refuses"
HOST = "it reads or writes memory of the host, which is no part of a step"
THREADS = "its replicas are refused on the CPU by what they run"
RANKS = "a replay on the CPU has its collectives, and refuses by name what the Reducer reads on the host"
MODULE = "it builds or runs layers: operators, which a replay runs again"

TABLE = {
    "AnyBatch": TENSORS, "AnyBatches": REFUSED, "HolderBase": TENSORS, "Holder": TENSORS,
    "Optimizer": {"step": STEPPED, "step_with_amp_scaling": STEPPED, "zero_grad": STEPPED, "write_lr": STEPPED,
                  "read_lr": READ,
                  "add_param_group": REFUSED, "load_state_dict": REFUSED},
    "AmpScaling": STEPPED,
    "AveragedModelBase": REFUSED, "AveragedModel": MODULE,
    "ExponentialMovingAverage": {"update": REPLAYED, "load_state_dict": REFUSED},
    "Scheduler": REFUSED, "LRScheduler": REPLAYED, "GroupLRScheduler": REPLAYED, "SequentialLR": REPLAYED,
    "CosineAnnealingWarmRestarts": REPLAYED, "ReduceLROnPlateau": REFUSED,
    "GradScaler": {"scale": TENSORS, "unscale_": SCALER, "step": SCALER, "update": SCALER, "load_state_dict": REFUSED,
                   "set_growth_factor": NUMBERS, "set_backoff_factor": NUMBERS, "set_growth_interval": NUMBERS},
    "MixedPrecision": SCALER,
    "Metric": TENSORS, "ClassScore": TENSORS, "ConfusionMatrix": TENSORS, "CurveScore": TENSORS, "LabelScore": TENSORS,
    "MeanMetric": TENSORS, "Perplexity": TENSORS, "MeanAbsoluteError": TENSORS, "MeanAbsolutePercentageError": TENSORS,
    "MeanSquaredError": TENSORS, "R2Score": TENSORS,
    "DistributedSampler": REFUSED, "RandomSampler": REFUSED, "WeightedRandomSampler": REFUSED,
    "TransformedBatches": REFUSED, "StreamLoader": {"set_epoch": REFUSED, "load_state_dict": HOST}, "RangeStream": HOST,
    "CumulativeSizes": HOST, "Subset": HOST, "Parts": HOST, "ImageFolder": HOST,
    "Compose": HOST,
    "AtomicFile": REFUSED, "Checkpoint": {"load": REFUSED, "save": REFUSED, "lock": HOST}, "ScalarWriter": REFUSED, "SummaryWriter": REFUSED,
    "Stopwatch": REFUSED, "TerminalBar": HOST, "Profile": HOST, "StepCompiler": HOST,
    "Trainer": REFUSED, "TestSets": HOST, "Fit": CALLBACK, "Stateful": CALLBACK, "MetricValues": HOST,
    "TrainerCallback": CALLBACK, "EarlyStopping": CALLBACK, "EpochLogger": CALLBACK, "LRScheduling": CALLBACK,
    "PlateauScheduling": CALLBACK, "ModelCheckpoint": CALLBACK, "WeightAveraging": CALLBACK, "ConfusionMatrixLogger": CALLBACK,
    "LRSweep": CALLBACK, "StepTrace": CALLBACK, "StopOnSignal": CALLBACK, "TerminateOnNaN": CALLBACK, "ProgressBar": CALLBACK, "ScalarLogger": CALLBACK, "TrainingCurve": CALLBACK,
    "DataParallel": THREADS, "DistributedDataParallel": RANKS, "DistributedCore": RANKS,
    "LayerNormImpl": MODULE, "LazyModule": MODULE, "LazyLayer": MODULE, "MultiheadAttentionImpl": MODULE,
    "LazyConvTranspose1dImpl": MODULE, "LazyConvTranspose2dImpl": MODULE, "LazyConvTranspose3dImpl": MODULE,
    "TransformerImpl": MODULE, "TransformerStack": MODULE, "TransformerDecoderImpl": MODULE, "TransformerDecoderLayerImpl": MODULE,
    "TransformerEncoderImpl": MODULE, "TransformerEncoderLayerImpl": MODULE, "ResNetImpl": MODULE,
    "VisionTransformerImpl": MODULE,
}
# Options and states of parameters are values that constructors and archives read.
VALUES = re.compile(r"\w+(Options|ParamState)")

SCOPE = re.compile(r"\b(class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)[^;(){}=]*$")
TEMPLATE = re.compile(r"\btemplate\s*<[^;{}]*?>\s*(?:requires\b[^;{}]*?)?(?=(?:class|struct)\s+\w+\s*(?:final\s*)?[:{])")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")


def declarations(text):
    """Yields each declaration in a public part of a class, with the class's name."""
    text = re.sub(r"//[^\n]*|^#[^\n]*", "", text, flags=re.MULTILINE)
    text = TEMPLATE.sub("", re.sub(r'"(\\.|[^"\\])*"', '""', text))
    scopes = []  # (name of a class or None, whether the part is public)
    said = ""
    for character in text:
        in_body = bool(scopes) and scopes[-1][0] is None and scopes[-1][1] is None
        if character == "{":
            head = SCOPE.search(said)
            if in_body or not (head or re.search(r"\bnamespace\b[\w\s:]*$", said)):
                scopes.append((None, None))
                continue
            scopes.append((head.group(2), head.group(1) == "struct") if head else (None, False))
            said = ""
        elif character == "}":
            name, is_public = scopes.pop()
            in_body = bool(scopes) and scopes[-1] == (None, None)
            if (name, is_public) == (None, None) and not in_body and scopes and scopes[-1][1]:
                yield scopes[-1][0], said
            if not in_body:
                said = ""
        elif not in_body:
            said += character
            if character == ";":
                if scopes and scopes[-1][0] and scopes[-1][1]:
                    yield scopes[-1][0], said
                said = ""
            access = ACCESS.search(said)
            if access and scopes and scopes[-1][0]:
                scopes[-1] = (scopes[-1][0], access.group(1) == "public")
                said = ""


def changing_member(declaration, of):
    """Returns the name of the declared non-const member function, or None."""
    text = " ".join(re.sub(r"template\s*<[^;{]*?>\s*(?=\[|[\w~])", "", declaration).split())
    text = re.sub(r"^(\[\[\w+\]\]\s*)+", "", text)
    found = re.search(r"(?<![\w:])(~?[A-Za-z_]\w*)\s*\(", text)
    if not found or "torch::serialize::" in text or re.match(r"(using|friend|static|enum|TORCH_ARG)\b", text) or "operator" in text[:found.end()]:
        return None
    if found.group(1) in (of, "~" + of, "explicit", "requires", "decltype", "static_assert", "TORCH_ARG"):
        return None
    depth, at = 1, found.end()
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    before, after = text[:found.start()], text[at:]
    is_member = before.strip() and before.count("<") <= before.count(">") and "=" not in before and not before.rstrip().endswith((":", ","))
    return found.group(1) if is_member and not re.match(r"\s*&?\s*const\b", after) else None


def main():
    include = pathlib.Path(sys.argv[1])
    found = {}
    for header in sorted(include.rglob("*.hpp")):
        if "detail" in header.relative_to(include).parts:
            continue
        for name, declaration in declarations(header.read_text(encoding="utf-8")):
            member = changing_member(declaration, name)
            if member and not VALUES.fullmatch(name):
                found.setdefault(name, set()).add(member)
    wrong = []
    for name, members in found.items():
        known = TABLE.get(name, {})
        missing = members - set(known) if isinstance(known, dict) else set()
        wrong += [f"{name}::{member}: say in TABLE what a captured step does with it" for member in sorted(missing)]
        stale = set(known) - members if isinstance(known, dict) else set()
        wrong += [f"{name}::{member}: no header has it" for member in sorted(stale)]
    wrong += [f"{name}: no header has a class with this name that changes" for name in sorted(set(TABLE) - set(found))]
    print(*wrong, sep="\n")
    count = sum(map(len, found.values()))
    print(f"{count} member functions of {len(found)} classes")
    sys.exit(1 if wrong or count < 100 else 0)


if __name__ == "__main__":
    main()
