"""Steps of a training loop that does not record losses."""

import os

import numpy
import torch
from torch.func import functional_call, grad_and_value


WHOLE_STEP = ("compile_step", "max_autotune")


def calls_of(step):
    """Returns the loss after 3 steps, as a list, and a function that performs one more step."""
    for _ in range(2):
        step()
    return [step().item()], step


def training_steps(optimizer, compute_loss):
    def step():
        optimizer.zero_grad()
        loss = compute_loss()
        loss.backward()
        optimizer.step()
        return loss

    return calls_of(step)


def save_numbers(net, batch):
    """Saves the initial values for the JAX form of a workload."""
    arrays = [tensor.detach().numpy() for tensor in (*net.parameters(), *batch)]
    numpy.savez(os.environ["SCONCE_BENCH_NUMBERS"], *arrays)
    return [], None


def compiled_step(variant, net, losses_of, update):
    """Returns the whole step as a single function that torch.compile compiles in the variant's mode. Because
    `backward()` and the optimizer's `step()` would break the graph, torch.func computes the gradients, and updates.py
    provides the update. `losses_of(forward, *batch)` returns a tuple that starts with the loss, and the step returns
    the same tuple.
    """
    names = [name for name, _ in net.named_parameters()]
    parameters = [parameter.detach() for parameter in net.parameters()]
    state = update.start(torch, parameters)

    def scaled_loss(parameters, scale, batch):
        def forward(*inputs, **options):
            return functional_call(net, dict(zip(names, parameters)), inputs, options)

        made = losses_of(forward, *batch)
        return scale * made[0], made

    @torch.compile(mode="max-autotune" if variant == "max_autotune" else "default")
    def step(parameters, state, batch):
        gradients, (_, made) = grad_and_value(scaled_loss, has_aux=True)(parameters, update.scale(state), batch)
        new_parameters, new_state = update(torch, parameters, gradients, state)
        for old, new in zip([*parameters, *state], [*new_parameters, *new_state]):
            old.copy_(new)
        return made

    return lambda *batch: step(parameters, state, batch)


def compiled_model(variant, net):
    """Returns the network, compiled if the variant requires it. "max_autotune" uses this function if there is no
    compiled step."""
    modes = {"compile_model": "default", "max_autotune": "max-autotune"}
    return torch.compile(net, mode=modes[variant]) if variant in modes else net


def forms(variant, net, batch, losses_of, make_optimizer, update=None):
    """Applies `training_steps` in the form of a variant, with `losses_of` and `update` as in `compiled_step`. Without
    an update, only the network is compiled.
    """
    if variant == "numbers":
        return save_numbers(net, batch)
    if update and variant in WHOLE_STEP:
        step = compiled_step(variant, net, losses_of, update)
        return calls_of(lambda: step(*batch)[0])
    forward = compiled_model(variant, net)
    optimizer = make_optimizer(net.parameters(), fused=variant != "default")
    return training_steps(optimizer, lambda: losses_of(forward, *batch)[0])
