"""The workloads that bench.py runs, each with its sides and the required ratios."""

from dataclasses import dataclass


@dataclass
class Workload:
    # FILE.NAME; for a whole process, followed by a colon and its measure. NAME_captured runs as a CapturedStep,
    # NAME_compiled as one that is compiled.
    name: str
    title: str
    floors: dict  # the required ratio, or None, by side: Python's "default" and "best", and "libtorch"
    compilers: tuple = ()  # of --with, for which the Python side has the compiled forms
    libtorch: str = ""  # the workload with plain LibTorch, if sconce adds to it
    limit: str = ""  # the workload of limits.cpp with the least time for the same work
    measure: str = "calls"  # or "start" or "memory" of a whole process up to its check
    starts: int = 1  # number of processes: the location of large memory changes its speed, and is random
    gpu: bool = False  # whether this is a measurement on a GPU
    needs: str = ""  # a further package of Python
    files: bool = False  # whether the twin's variant "files" writes the files of both sides
    data: str = ""  # the folder of a dataset that is not part of sconce
    size: int = 0  # number of rows, parameters or the like
    grows: str = ""  # the row of the growth table that contains this size
    most: float = float("inf")  # the ratio of the kernels alone; a larger one is a measurement error
    lower_end: float = 0  # the required lower end of the interval
    tolerance: float = 1e-6  # for the comparison of the sides' numbers
    compiled_tolerance: float = 1e-5  # the same for compiled forms, which round elsewhere

    @property
    def twin(self):
        """The name of the Python function."""
        return self.name.partition(":")[0].removesuffix("_captured").removesuffix("_compiled")


EAGER = {"default": None, "best": None}
TUNED = {"default": None, "best": None, "compile": None, "max_autotune": None}  # "best" is Python's CUDA graph
BOTH = ("compile", "jax")
STEP, OPTIMIZER = "SimpleNN step, by rows", "AdamW of one parameter, by numbers"
FEEDING, DDP = "epoch of batches, by pictures", "DDP step, by ranks"

WORKLOADS = [
    Workload("steps.sgd:start", "process start to first training step",
             {"default": 6, "best": 6}, measure="start", size=4),
    Workload("steps.sgd:memory", "peak memory of that process",
             {"default": 1 / 0.65, "best": 1 / 0.65}, measure="memory", size=4),
    Workload("ops.add", "add, 4 x 4", {"default": 2.0}),
    Workload("ops.mul", "mul, 4 x 4", {"default": 2.0}),
    Workload("ops.relu", "relu, 4 x 4", {"default": 2.0}),
    Workload("ops.product", "product of 4 x 4", {"default": 1.7}, size=4),
    Workload("ops.product", "product of 512 x 512", {"default": 0.97}, size=512, most=1.03,
             limit="limits.product", starts=5),
    Workload("ops.product", "product of 1024 x 1024", {"default": 0.97}, size=1024, most=1.03,
             limit="limits.product", starts=5),
    Workload("ops.product", "product of 2048 x 2048", {"default": 0.97}, size=2048, most=1.03,
             limit="limits.product", starts=5),
    Workload("ops.product_into", "product of 2048 x 2048 into a tensor", {"default": 0.97},
             size=2048, most=1.03, starts=5),
    Workload("ops.copy", "copy of 25 M numbers", {"default": None}, size=25_000_000,
             limit="limits.copy", starts=5),
    Workload("ops.norms_read", "1,000 products, norms read at once", {"default": None}),
    Workload("ops.norms_kept", "1,000 products, norms read at the end", {"default": None}),
    Workload("ops.norms_written", "1,000 products, norms written to a tensor", {"default": None}),
    Workload("ops.norms_batched", "1,000 products and norms in one call", {"default": None}),
    Workload("steps.sgd", "SimpleNN step, SGD", {"libtorch": 0.98, "default": 2.3, "best": 2.0},
             libtorch="steps.sgd_libtorch", size=4, grows=STEP, compilers=BOTH),
    Workload("steps.sgd_captured", "SimpleNN step, SGD, captured", EAGER, size=4, compilers=BOTH),
    Workload("steps.sgd_compiled", "SimpleNN step, SGD, compiled", EAGER, size=4, compilers=BOTH),
    Workload("steps.sgd", "SimpleNN step, SGD, 4,096 rows", EAGER, size=4096, grows=STEP, compilers=BOTH),
    Workload("steps.sgd_captured", "SimpleNN step, SGD, 4,096 rows, captured", EAGER, size=4096, compilers=BOTH),
    Workload("steps.sgd_compiled", "SimpleNN step, SGD, 4,096 rows, compiled", EAGER, size=4096, compilers=BOTH),
    Workload("steps.sgd", "SimpleNN step, SGD, 262,144 rows", {"default": None, "best": None},
             size=262_144, grows=STEP),
    Workload("steps.adam", "SimpleNN step, Adam", {"libtorch": 0.98, "default": 3.0, "best": 2.2},
             libtorch="steps.adam_libtorch", size=4, compilers=BOTH),
    Workload("steps.adam_captured", "SimpleNN step, Adam, captured", EAGER, size=4, compilers=BOTH),
    Workload("steps.adam_compiled", "SimpleNN step, Adam, compiled", EAGER, size=4, compilers=BOTH),
    Workload("steps.adam", "SimpleNN step, Adam, 4,096 rows", EAGER, size=4096, compilers=BOTH),
    Workload("steps.adam_captured", "SimpleNN step, Adam, 4,096 rows, captured", EAGER, size=4096, compilers=BOTH),
    Workload("steps.adam_compiled", "SimpleNN step, Adam, 4,096 rows, compiled", EAGER, size=4096, compilers=BOTH),
    Workload("steps.amp", "bf16 step, scaler and clipping, 64 units",
             {"default": 1.8, "best": 2.0}, size=64, tolerance=1e-5, compilers=BOTH, compiled_tolerance=1e-2),
    Workload("steps.amp_captured", "bf16 step, scaler and clipping, 64 units, captured", EAGER, size=64,
             tolerance=1e-5, compilers=BOTH, compiled_tolerance=1e-2),
    Workload("steps.amp_compiled", "bf16 step, scaler and clipping, 64 units, compiled", EAGER, size=64,
             tolerance=1e-5, compilers=BOTH, compiled_tolerance=1e-2),
    Workload("steps.amp", "bf16 step, scaler and clipping, 1024 units", EAGER, size=1024, tolerance=1e-5),
    Workload("steps.layers", "step of 50 linear layers of 64", EAGER, size=50, compilers=BOTH),
    Workload("steps.layers_captured", "step of 50 linear layers of 64, captured", EAGER, size=50, compilers=BOTH),
    Workload("steps.layers_compiled", "step of 50 linear layers of 64, compiled", EAGER, size=50, compilers=BOTH),
    Workload("gpt.block", "step of a GPT block, d = 256, 8 x 128 tokens", EAGER, size=8, compilers=BOTH),
    Workload("gpt.block_captured", "step of a GPT block, d = 256, 8 x 128 tokens, captured", EAGER, size=8,
             compilers=BOTH),
    Workload("gpt.block_compiled", "step of a GPT block, d = 256, 8 x 128 tokens, compiled", EAGER, size=8,
             compilers=BOTH),
    Workload("optimizers.adamw_small", "AdamW, 1,000 parameters of 64",
             {"libtorch": 30, "default": None, "best": 8}, size=1000,
             libtorch="optimizers.adamw_small_libtorch"),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 25 M",
             {"default": None, "best": 0.98}, size=25_000_000, limit="limits.adamw",
             starts=5, grows=OPTIMIZER),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 1,000",
             {"default": None, "best": None}, size=1000, grows=OPTIMIZER),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 100,000",
             {"default": None, "best": None}, size=100_000, grows=OPTIMIZER),
    Workload("optimizers.clip_small", "clipping of 1,000 gradients of 64",
             {"default": None, "best": 1.2}, size=1000),
    Workload("epochs.mlp", "MLP epoch, 6,144 pictures", {"default": 1.45, "best": 1.08}, size=6144, compilers=BOTH),
    Workload("epochs.mlp_captured", "MLP epoch, 6,144 pictures, captured", EAGER, size=6144, compilers=BOTH),
    Workload("epochs.mlp_compiled", "MLP epoch, 6,144 pictures, compiled", EAGER, size=6144, compilers=BOTH),
    Workload("epochs.lenet", "LeNet epoch, 6,144 pictures", {"default": 1.0, "best": 1.0},
             size=6144, lower_end=0.97, compilers=BOTH),
    Workload("epochs.lenet_captured", "LeNet epoch, 6,144 pictures, captured", EAGER, size=6144, compilers=BOTH),
    Workload("epochs.lenet_compiled", "LeNet epoch, 6,144 pictures, compiled", EAGER, size=6144, compilers=BOTH),
    Workload("feeding.batches", "60,000 pictures in batches of 256",
             {"default": None, "best": None}, size=60_000, grows=FEEDING),
    Workload("feeding.batches", "600 pictures in batches of 256",
             {"default": None, "best": None}, size=600, grows=FEEDING),
    Workload("feeding.batches", "600,000 pictures in batches of 256",
             {"default": None, "best": None}, size=600_000, grows=FEEDING),
    Workload("feeding.floats", "60,000 pictures of floats in batches of 256",
             {"default": None, "best": None}, size=60_000),
    Workload("feeding.pictures", "1,024 JPEG files in batches of 32, by two workers",
             {"default": 1.0, "best": 1.0}, size=1024, lower_end=1.0, tolerance=1e-3, needs="torchvision", files=True),
    Workload("files.load", "loading a safetensors file of 256 MiB",
             {"default": None}, size=16, tolerance=1e-5, starts=5),
    Workload("files.save", "saving a safetensors file of 256 MiB",
             {"default": None}, size=16, tolerance=1e-5, starts=5),
    Workload("conv.layer", "3 x 3 convolution, NCHW, 16 pictures", {"default": None}, size=16),
    Workload("conv.layer_nhwc", "3 x 3 convolution, NHWC, 16 pictures", {"default": None}, size=16),
    Workload("conv.cnn", "CNN step, NCHW, 16 pictures", {"default": None, "best": None}, size=16,
             tolerance=1e-5),
    Workload("conv.cnn_captured", "CNN step, NCHW, 16 pictures, captured", EAGER, size=16, tolerance=1e-5),
    Workload("conv.cnn_nhwc", "CNN step, NHWC, 16 pictures", {"default": None, "best": None},
             size=16, tolerance=1e-5),
    Workload("conv.cnn_nhwc_captured", "CNN step, NHWC, 16 pictures, captured", EAGER, size=16, tolerance=1e-5),
    Workload("conv.resnet", "ResNet-18 step, 8 pictures of 96 x 96", {"default": None, "best": None}, size=8,
             tolerance=1e-5),
    Workload("conv.resnet_captured", "ResNet-18 step, 8 pictures of 96 x 96, captured", EAGER, size=8, tolerance=1e-5),
    Workload("conv.resnet_compiled", "ResNet-18 step, 8 pictures of 96 x 96, compiled", EAGER, size=8, tolerance=1e-5),
    Workload("ddp.step", "DDP step, two ranks", {"default": 1.1, "best": 1.1}, size=2, grows=DDP),
    Workload("ddp.step", "DDP step, a group of one", {"libtorch": None, "default": 1.1, "best": 1.1},
             libtorch="ddp.bare", size=1, grows=DDP),
    Workload("ddp.step", "DDP step, four ranks", {"default": None, "best": None}, size=4,
             grows=DDP),
    Workload("data_parallel.step", "step of two replicas on the CPU, against the module alone",
             {"libtorch": None}, libtorch="data_parallel.bare", size=256),
    Workload("serving.mlp", "one row of an MLP by its program, against the network",
             {"libtorch": 0.95}, libtorch="serving.mlp_network"),
    Workload("serving.resnet18", "one picture by ResNet-18's program, against the network",
             {"libtorch": 0.95}, libtorch="serving.resnet18_network", tolerance=1e-5),
    Workload("race.accuracy:start", "process start to 0.87 on Fashion-MNIST",
             {"default": 1.3, "best": 1.0}, measure="start", data="/usr/share/datasets/fashion-mnist"),
    Workload("gpu.product", "GPU: product of 8192 x 8192, fp32", {"default": 0.97}, gpu=True,
             size=8192, most=1.03),
    Workload("gpu.product_tf32", "GPU: product of 8192 x 8192, TF32", {"default": 0.97}, gpu=True,
             size=8192, most=1.03, tolerance=1e-3),
    Workload("gpu.product_bf16", "GPU: product of 8192 x 8192, bf16", {"default": 0.97}, gpu=True,
             size=8192, most=1.03, tolerance=1e-2),
    Workload("gpu.two_products", "GPU: a product of 4096 x 4096 on each of two devices",
             {"default": None}, gpu=True, size=4096, tolerance=1e-5),
    Workload("gpu.to_device", "GPU: 256 MiB to the device", {"default": None}, gpu=True,
             size=2**26),
    Workload("gpu.to_host", "GPU: 256 MiB to the host", {"default": None}, gpu=True, size=2**26),
    Workload("gpu_steps.sgd_captured", "GPU: SimpleNN step, captured",
             {"default": 6, "best": 0.95, "compile": None}, gpu=True, size=4, tolerance=1e-4),
    *[Workload(f"gpu_steps.{net}_{precision}_captured", f"GPU: {title}, {words}, captured",
               TUNED if precision == "bf16" else EAGER, gpu=True, size=size, tolerance=tolerance)
      for net, title, size in [("gpt", "step of a GPT, 6 blocks of 384, 16 x 256 tokens", 256),
                               ("resnet", "ResNet-18 step, 128 pictures of 96 x 96", 128)]
      for precision, words, tolerance in [("fp32", "fp32", 1e-4), ("tf32", "TF32", 1e-2), ("bf16", "bf16", 2e-2)]],
    Workload("gpu_steps.gpt2_bf16_captured", "GPU: step of GPT-2 small, 8 x 1024 tokens, bf16, captured", TUNED, gpu=True,
             size=1024, tolerance=2e-2),
    Workload("gpu_steps.resnet50_bf16_captured", "GPU: ResNet-50 step, 128 pictures of 224 x 224, bf16, captured", TUNED,
             gpu=True, size=128, tolerance=2e-2, needs="torchvision"),
    Workload("gpu.fed_epoch", "GPU: MLP epoch fed from the CPU, against data on the GPU",
             {"libtorch": 0.97, "default": None}, libtorch="gpu.held_epoch", gpu=True,
             size=61_440, tolerance=1e-5),
]
