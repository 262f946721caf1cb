"""Runs Python's attention and transformer layers on the random cases of nn/transformer_random.cpp.

Run: python3 tests/reference/transformer.py results|weights OUT

Each line of the file `cases` next to OUT is a case: arguments of `dict`, all of them integers. OUT gets a dict with an
entry for each case. results: a tensor with all resulting numbers. weights: the results of the weights in NUMBER.pt,
which C++ has written, and of the script's own weights.
"""

import pathlib
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")  # about masks of two types, and stacks that use no nested tensors
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
MHA, ENCODER_LAYER, ENCODER, DECODER_LAYER, DECODER, FULL = range(6)


def make(c):
    if c["kind"] == MHA:
        return nn.MultiheadAttention(
            c["features"], c["heads"], dropout=c["dropout"] / 100, bias=c["bias"], add_bias_kv=c["bias_kv"],
            add_zero_attn=c["zero"], kdim=c["kdim"], vdim=c["vdim"], batch_first=c["batch_first"])
    of_layer = dict(
        dim_feedforward=c["feedforward"], dropout=c["dropout"] / 100, batch_first=bool(c["batch_first"]),
        activation=[nn.functional.relu, nn.functional.gelu, torch.tanh][c["activation"]],
        norm_first=bool(c["norm_first"]), bias=bool(c["bias"]), layer_norm_eps=1e-5 if c["bias"] else 1e-3)
    if c["kind"] == FULL:
        return nn.Transformer(c["features"], c["heads"], c["encoder_layers"], c["layers"], **of_layer)
    kind = nn.TransformerEncoderLayer if c["kind"] in (ENCODER_LAYER, ENCODER) else nn.TransformerDecoderLayer
    layer = kind(c["features"], c["heads"], **of_layer)
    norm = nn.LayerNorm(c["features"], bias=bool(c["bias"])) if c["norm"] else None
    if c["kind"] == ENCODER:
        return nn.TransformerEncoder(layer, c["layers"], norm)
    if c["kind"] == DECODER:
        return nn.TransformerDecoder(layer, c["layers"], norm)
    return layer


def sizes(c, length, features):
    if not c["batch"]:
        return length, features
    return (c["batch"], length, features) if c["batch_first"] else (length, c["batch"], features)


def attn_mask(c, which, length, source):
    """Returns None or a mask of bool or floats, with two or three dimensions, random or causal."""
    kind = c[which]
    if kind == 0:
        return None
    if kind in (3, 4):  # causal
        causal = torch.ones(length, source, dtype=torch.bool).triu(1)
        return causal if kind == 3 else torch.zeros(length, source).masked_fill(causal, float("-inf"))
    shape = (max(c["batch"], 1) * c["heads"], length, source) if c[which + "_3d"] else (length, source)
    if kind == 2:
        return torch.randn(shape)
    mask = torch.rand(shape) < 0.3
    mask[..., 0] = False
    return mask


def padding_mask(c, which, source):
    """Returns None or a mask of bool or floats, or a bool mask with the padding at the end."""
    kind, batch = c[which], max(c["batch"], 1)
    if kind == 0:
        return None
    if kind == 1:
        mask = torch.rand(batch, source) < 0.3
        mask[:, 0] = False
    elif kind == 2:
        mask = torch.randn(batch, source)
    else:
        mask = torch.arange(source) >= torch.randint(1, source + 1, (batch, 1))
    return mask if c["batch"] else mask[0]


def inputs_of(c):
    query = torch.randn(sizes(c, c["length"], c["features"]))
    if c["kind"] in (ENCODER_LAYER, ENCODER):
        return [query]
    if c["kind"] in (DECODER_LAYER, DECODER, FULL):
        return [query, torch.randn(sizes(c, c["source"], c["features"]))]
    if c["same"] == 2:
        return [query] * 3
    key = torch.randn(sizes(c, c["source"], c["kdim"]))
    return [query, key, key if c["same"] == 1 else torch.randn(sizes(c, c["source"], c["vdim"]))]


def forward(c, model, inputs, masks):
    mask, padding, memory_mask, memory_padding, *src_masks = masks
    hint = True if c["hint"] else None
    if c["kind"] == FULL:
        tgt, src = inputs
        return model(src, tgt, src_masks[0], mask, memory_mask, src_masks[1], padding, memory_padding,
                     True if c["src_hint"] else None, hint), None
    if c["kind"] == MHA:
        return model(*inputs, key_padding_mask=padding, attn_mask=mask, need_weights=bool(c["need_weights"]),
                     average_attn_weights=bool(c["average"]), is_causal=bool(c["hint"]))
    if c["kind"] == ENCODER_LAYER:
        return model(*inputs, mask, padding, is_causal=bool(c["hint"])), None
    if c["kind"] == ENCODER:
        return model(*inputs, mask, padding, is_causal=hint), None
    return model(*inputs, tgt_mask=mask, memory_mask=memory_mask, tgt_key_padding_mask=padding,
                 memory_key_padding_mask=memory_padding,
                 tgt_is_causal=bool(c["hint"]) if c["kind"] == DECODER_LAYER else hint), None


class Run:
    """A model with inputs and masks."""

    def __init__(self, c, seed):
        self.c, self.dtype, self.fast = c, DTYPES[c["dtype"]], c["mode"] == 2
        torch.manual_seed(seed)
        self.model = make(c)
        torch.manual_seed(c["seed"] + 1)
        inputs = inputs_of(c)
        source = inputs[-1].shape[1 if c["batch"] and c["batch_first"] else 0]
        own = source if c["kind"] == MHA else c["length"]
        masks = [attn_mask(c, "mask", c["length"], own), padding_mask(c, "padding", own)]
        masks += [attn_mask(c, "memory_mask", c["length"], source), padding_mask(c, "memory_padding", source)]
        if c["kind"] == FULL:
            masks += [attn_mask(c, "src_mask", source, source), padding_mask(c, "src_padding", source)]
        self.masks = [m.to(self.dtype) if m is not None and m.is_floating_point() else m for m in masks]
        self.begin = [p.detach().clone() for p in self.model.parameters()]
        self.model.to(self.dtype).train(c["mode"] == 0)
        self.leaves = {id(x): x.to(self.dtype).requires_grad_(not self.fast) for x in inputs}
        self.inputs = [self.leaves[id(x)] for x in inputs]

    def forward(self):
        c = self.c
        torch.manual_seed(c["seed"] + 2)
        autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=bool(c["autocast"]))
        with torch.set_grad_enabled(not self.fast), autocast:
            output, weights = forward(c, self.model, self.inputs, self.masks)
        if self.fast and c["padding"] in (1, 3) and c["kind"] in (ENCODER_LAYER, ENCODER) and c["batch"]:
            hidden = self.masks[1] if c["batch_first"] else self.masks[1].T
            output = output.masked_fill(hidden.unsqueeze(-1), 0)  # what Python's fast path leaves there
        return [output] if weights is None else [output, weights]


def joined(tensors):
    return torch.cat([x.detach().float().flatten() for x in tensors])


def results(c):
    run = Run(c, c["seed"])
    outputs = run.forward()
    found = [*run.begin, torch.rand(1)]
    if not run.fast:
        sum((x * torch.randn(x.shape).to(run.dtype)).sum() for x in outputs).backward()
        found += [x.grad for x in run.leaves.values()] + [p.grad for p in run.model.parameters()]
    return joined([*outputs, *found])


def weights(c, ours):
    """Returns the results of weights that C++ has saved, and the results of the weights of a model here, which C++
    loads."""
    run = Run(c, c["seed"] + 9)
    theirs = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    of_theirs = joined(run.forward())
    run.model.load_state_dict(torch.load(ours, weights_only=True))
    return {"state": theirs, "of_theirs": of_theirs, "of_ours": joined(run.forward())}


def main(what, out):
    found = {}
    for number, line in enumerate((out.parent / "cases").read_text().splitlines()):
        c = eval(f"dict({line})")
        found[str(number)] = results(c) if what == "results" else weights(c, out.parent / f"{number}.pt")
    torch.save(found, out)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[-1]))
