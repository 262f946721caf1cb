"""Optimizer updates, written as functions of arrays that torch.compile and JAX compile together with the rest of a
step.

`xp` is torch or jax.numpy. A state is a list of arrays.
"""


class SGD:
    def __init__(self, lr):
        self.lr = lr

    def start(self, xp, parameters):
        return []

    def scale(self, state):
        """Returns the factor by which to scale the loss before computing the gradients for the update."""
        return 1

    def __call__(self, xp, parameters, gradients, state):
        return [p - self.lr * g for p, g in zip(parameters, gradients)], []


class AdamW(SGD):
    def __init__(self, lr, weight_decay):
        self.lr, self.weight_decay = lr, weight_decay

    def start(self, xp, parameters):
        return [xp.zeros_like(p) for _ in range(2) for p in parameters] + [xp.zeros(())]

    def __call__(self, xp, parameters, gradients, state):
        count, steps = len(parameters), state[-1] + 1
        first = [0.9 * a + 0.1 * g for a, g in zip(state, gradients)]
        second = [0.999 * a + 0.001 * g * g for a, g in zip(state[count:], gradients)]
        rate, bias = self.lr / (1 - 0.9**steps), 1 - 0.999**steps
        made = [(1 - self.lr * self.weight_decay) * p - rate * a / (xp.sqrt(b / bias) + 1e-8)
                for p, a, b in zip(parameters, first, second)]
        return made, [*first, *second, steps]


class Scaled:
    """GradScaler and clip_grad_norm_ around another update, without reading values on the host."""

    def __init__(self, update, max_norm):
        self.update, self.max_norm = update, max_norm

    def start(self, xp, parameters):
        return [*self.update.start(xp, parameters), xp.full((), 65536.0), xp.zeros(())]

    def scale(self, state):
        return state[-2]

    def __call__(self, xp, parameters, gradients, state):
        *inner, scale, good = state
        gradients = [g / scale for g in gradients]
        finite = xp.all(xp.stack([xp.all(xp.isfinite(g)) for g in gradients]))
        norm = xp.sqrt(sum(xp.sum(g * g) for g in gradients))
        factor = xp.clip(self.max_norm / (norm + 1e-6), max=1)
        made, made_inner = self.update(xp, parameters, [factor * g for g in gradients], inner)
        made = [xp.where(finite, new, old) for new, old in zip(made, parameters)]
        made_inner = [xp.where(finite, new, old) for new, old in zip(made_inner, inner)]
        grows = good == 1999
        scale = xp.where(finite, xp.where(grows, 2 * scale, scale), scale / 2)
        return made, [*made_inner, scale, xp.where(finite & ~grows, good + 1, 0.0)]
