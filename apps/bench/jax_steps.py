"""The workloads that have a JAX form. They run in a separate environment without torch, so the parameters and batches
are read from a file. The variant "jax_step" compiles one step, and "jax_scan" compiles a loop of steps.
"""

import os

# Use the same number of threads as the other sides. XLA reads these variables when it starts.
THREADS = os.environ["OMP_NUM_THREADS"]
os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": THREADS,
               "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if THREADS != '1' else 'false'}"}

import jax  # noqa: E402
import numpy  # noqa: E402
from jax import lax, nn  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import updates  # noqa: E402


def read_numbers(batch_size):
    """Returns the parameters and the tensors of a batch, which are stored last in the file."""
    with numpy.load(os.environ["SCONCE_BENCH_NUMBERS"]) as file:
        arrays = [jnp.asarray(file[name]) for name in file.files]
    return arrays[:-batch_size], arrays[-batch_size:]


def make_step(losses_of, update):
    """Returns a step that maps (parameters, state) and a batch to the new (parameters, state) and the result of
    `losses_of`."""
    def step(carry, batch):
        parameters, state = carry

        def scaled_loss(parameters):
            made = losses_of(parameters, *batch)
            return update.scale(state) * made[0], made

        (_, made), gradients = jax.value_and_grad(scaled_loss, has_aux=True)(parameters)
        return update(jnp, parameters, gradients, state), made

    return step


def forms(variant, losses_of, update, batch_size=2, scanned=100):
    """Works like `forms` in training_steps.py. Each call of "jax_scan" performs `scanned` steps."""
    parameters, batch = read_numbers(batch_size)
    carry = parameters, update.start(jnp, parameters)
    step = make_step(losses_of, update)
    if variant == "jax_scan":
        compiled = jax.jit(lambda carry, batch: lax.scan(lambda carry, _: step(carry, batch), carry, length=scanned),
                           donate_argnums=0)
    else:
        compiled = jax.jit(step, donate_argnums=0)

    def call():
        nonlocal carry
        carry, made = compiled(carry, batch)
        return made[0]

    losses = []
    while len(losses) < 3:
        losses += jnp.atleast_1d(call()).tolist()
    return [losses[2]], call, lambda: jax.block_until_ready(carry), scanned if variant == "jax_scan" else 1


def epoch(variant, forward, size):
    """An epoch in shuffled batches of 256. The compiled code selects the rows of each batch. Each call is one epoch."""
    parameters, (data, target) = read_numbers(2)

    def losses_of(parameters, x, y):
        output = forward(parameters, x)
        return cross_entropy(output, y), (output.argmax(1) == y).sum()

    check = [float(losses_of(parameters, data[:256], target[:256])[0])]
    step, carry = make_step(losses_of, updates.SGD(0.01)), (parameters, [])

    def of_rows(data, target):
        return lambda carry, rows: step(carry, (data[rows], target[rows]))

    one = jax.jit(lambda carry, data, target, rows: of_rows(data, target)(carry, rows), donate_argnums=0)
    loop = jax.jit(lambda carry, data, target, batches: lax.scan(of_rows(data, target), carry, batches),
                   donate_argnums=0)

    def call():
        nonlocal carry
        batches = numpy.random.permutation(size).reshape(-1, 256)
        if variant == "jax_scan":
            carry, (losses, correct) = loop(carry, data, target, batches)
            return float(losses.mean()), float(correct.sum()) / size
        loss_sum = correct = 0
        for rows in batches:
            carry, made = one(carry, data, target, rows)
            loss_sum, correct = loss_sum + made[0], correct + made[1]
        return float(loss_sum) / len(batches), float(correct) / size

    return check, call


def cross_entropy(output, y):
    return -jnp.take_along_axis(nn.log_softmax(output.astype(jnp.float32)), y[:, None], 1).mean()


def linear(x, w, b, dtype=jnp.float32):
    return x.astype(dtype) @ w.astype(dtype).T + b.astype(dtype)


def simple_nn(variant, update):
    def losses_of(parameters, x, y):
        w1, b1, w2, b2 = parameters
        return (cross_entropy(linear(nn.relu(linear(x, w1, b1)), w2, b2), y),)

    return forms(variant, losses_of, update)


def steps_sgd(variant, size):
    return simple_nn(variant, updates.SGD(0.01))


def steps_adam(variant, size):
    return simple_nn(variant, updates.AdamW(0.01, weight_decay=0))


def steps_amp(variant, size):
    def losses_of(parameters, x, y):
        w1, b1, w2, b2 = parameters
        hidden = nn.relu(linear(x, w1, b1, jnp.bfloat16))
        return (cross_entropy(linear(hidden, w2, b2, jnp.bfloat16), y),)

    return forms(variant, losses_of, updates.Scaled(updates.AdamW(1e-3, weight_decay=0.01), max_norm=1.0))


def steps_layers(variant, size):
    def losses_of(parameters, x):
        for w, b in zip(parameters[::2], parameters[1::2]):
            x = linear(x, w, b)
        return (jnp.square(x).mean(),)

    return forms(variant, losses_of, updates.SGD(0.01), batch_size=1)


def epochs_mlp(variant, size):
    def forward(parameters, x):
        w1, b1, w2, b2 = parameters
        return linear(nn.relu(linear(x.reshape(len(x), -1), w1, b1)), w2, b2)

    return epoch(variant, forward, size)


def epochs_lenet(variant, size):
    def conv(x, w, b, padding):
        return lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2) + b[:, None, None]

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def forward(parameters, x):
        w1, b1, w2, b2, *rest = parameters
        x = pool(nn.relu(conv(pool(nn.relu(conv(x, w1, b1, 2))), w2, b2, 0)))
        w3, b3, w4, b4, w5, b5 = rest
        x = nn.relu(linear(x.reshape(len(x), -1), w3, b3))
        return linear(nn.relu(linear(x, w4, b4)), w5, b5)

    return epoch(variant, forward, size)


def layer_norm(x, w, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * w + b


def gpt_layer(x, parameters, heads):
    """A GPT block: causal attention and an MLP, each preceded by a norm and wrapped in a shortcut connection."""
    w_in, b_in, w_out, b_out, w1, b1, w2, b2, *norms = parameters
    of_heads = (*x.shape[:2], heads, -1)
    q, k, v = (part.reshape(of_heads)
               for part in jnp.split(linear(layer_norm(x, *norms[:2]), w_in, b_in), 3, axis=-1))
    attended = nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    x = x + linear(attended, w_out, b_out)
    return x + linear(nn.gelu(linear(layer_norm(x, *norms[2:]), w1, b1), approximate=False), w2, b2)


def gpt_block(variant, size):
    def losses_of(parameters, x):
        return (jnp.square(gpt_layer(x, parameters, heads=4)).mean(),)

    return forms(variant, losses_of, updates.AdamW(1e-3, weight_decay=0.01), batch_size=1, scanned=10)


def gpt_gpt2(variant, size):
    def losses_of(parameters, x, y):
        tokens, places, *blocks, norm_w, norm_b = parameters
        h = tokens[x] + places
        for first in range(0, len(blocks), 12):
            h = gpt_layer(h, blocks[first:first + 12], heads=12)
        h = layer_norm(h, norm_w, norm_b).reshape(-1, h.shape[-1])
        return (cross_entropy(h @ tokens.T, y),)

    return forms(variant, losses_of, updates.AdamW(1e-3, weight_decay=0.01), scanned=3)


def steps_table(variant, size):
    def losses_of(parameters, x, y):
        w1, b1, w2, b2 = parameters
        return (jnp.square(linear(nn.relu(linear(x, w1, b1)), w2, b2) - y).mean(),)

    return forms(variant, losses_of, updates.AdamW(0.01, weight_decay=0.01))
