"""The workloads that bench.py runs, each with its sides and required ratios."""

from dataclasses import dataclass

# The questions that the page about speed answers, with the titles of their sections.
QUESTIONS = {"small": "Small steps", "real": "Real models", "feeding": "Feeding", "files": "Files", "start": "Startup",
             "operators": "Operators and optimizers", "gpu": "On a GPU"}
EAGER_PYTHON = ("default", "best")
TORCH_COMPILE = ("compile_model", "compile_step", "max_autotune")
STEP_COMPILERS = (*TORCH_COMPILE, "jax_step", "jax_scan")
MODEL_COMPILERS = ("compile_model", "max_autotune")


@dataclass
class Workload:
    name: str  # FILE.NAME, followed for a whole process by a colon and the quantity that is measured
    title: str
    floors: dict  # the required ratio, or None, for each side: Python's "default" and "best", and "libtorch"
    question: str = "operators"  # a key in QUESTIONS
    forms: tuple = ()  # other forms in sconce: "captured" (FILE.NAME_captured) and "compiled" (FILE.NAME_compiled)
    compilers: tuple = ()  # the compiled forms of the Python side, which run only with --with or --all
    libtorch: str = ""  # the same workload in plain LibTorch, if sconce adds something to LibTorch
    limit: str = ""  # the workload in limits.cpp that represents the limit for the same work
    measure: str = "calls"  # or "start" or "memory" of a whole process until its check, or "rate" of an example
    starts: int = 1  # number of processes; large allocations are placed randomly, which affects their speed
    gpu: bool = False  # whether the workload is measured on a GPU
    needs: str = ""  # an additional Python package
    files: bool = False  # whether the twin's variant "files" writes the files of both sides
    data: str = ""  # the folder of a dataset that is not included in sconce
    size: int = 0  # number of rows, parameters, or similar
    grows: str = ""  # the row of the growth table that contains this size
    most: float = float("inf")  # the ratio of the kernels alone; a larger ratio is a measurement error
    lower_end: float = 0  # the required lower end of the interval
    tolerance: float = 1e-6  # for comparing the values computed by the sides
    compiled_tolerance: float = 1e-5  # the same for compiled forms, which round in different places

    @property
    def twin(self):
        """Returns the name of the Python function."""
        return self.name.partition(":")[0]


EAGER = {"default": None, "best": None}
BOTH_FORMS = ("captured", "compiled")
TUNED = {"default": None, "best": None, "compile": None, "max_autotune": None}  # "best" is Python with a CUDA graph
STEP, OPTIMIZER = "SimpleNN step, by number of rows", "AdamW, one parameter, by number of elements"
FEEDING, DDP = "epoch of batches, by number of images", "DDP step, by number of ranks"


def step(name, title, floors, **more):
    """A training step of a small network, in every form on both sides."""
    return Workload(name, title, floors, "small", forms=BOTH_FORMS, compilers=STEP_COMPILERS, **more)


def real(name, title, floors=None, **more):
    """A workload of a size that people train in practice."""
    return Workload(name, title, floors or EAGER, "real", **more)


SMALL = [
    step("steps.sgd", "SimpleNN step, SGD", {"libtorch": 0.98, "default": 2.3, "best": 2.0},
         libtorch="steps.sgd_libtorch", size=4, grows=STEP),
    step("steps.sgd", "SimpleNN step, SGD, 4,096 rows", EAGER, size=4096, grows=STEP),
    Workload("steps.sgd", "SimpleNN step, SGD, 262,144 rows", EAGER, "small", size=262_144, grows=STEP),
    step("steps.adam", "SimpleNN step, Adam", {"libtorch": 0.98, "default": 3.0, "best": 2.2},
         libtorch="steps.adam_libtorch", size=4),
    step("steps.adam", "SimpleNN step, Adam, 4,096 rows", EAGER, size=4096),
    step("steps.amp", "bf16 step, scaler and clipping, 64 units", {"default": 1.8, "best": 2.0}, size=64, tolerance=1e-5,
         compiled_tolerance=1e-2),
    Workload("steps.amp", "bf16 step, scaler and clipping, 1024 units", EAGER, "small", size=1024, tolerance=1e-5),
    step("steps.layers", "training step, 50 linear layers of 64 units", EAGER, size=50),
    step("steps.table", "training step on tabular data, 5 columns, 64 rows", EAGER, size=64),
    Workload("agents.cart_pole", "cart-pole agent step", {"default": None}, "small", measure="rate"),
]

REAL = [
    real("gpt.gpt2", "GPT-2 small step, two blocks, 128 tokens", forms=BOTH_FORMS, compilers=STEP_COMPILERS, size=128,
         tolerance=1e-5, compiled_tolerance=1e-4),
    real("conv.resnet50", "ResNet-50 step, 2 images of 224 x 224", forms=BOTH_FORMS, compilers=MODEL_COMPILERS, size=2,
         tolerance=1e-4, compiled_tolerance=1e-1, needs="torchvision"),
    real("recurrent.lstm", "LSTM language model step, 8 x 35 tokens", forms=("captured",),
         compilers=("compile_model",), size=35, tolerance=1e-5),
    real("recommend.two_towers", "recommender step, 1 M sparse rows, 512 pairs", size=1_000_000, tolerance=1e-5),
    real("gpt.block", "GPT block step, d = 256, 8 x 128 tokens", forms=BOTH_FORMS, compilers=STEP_COMPILERS, size=8),
    real("conv.resnet", "ResNet-18 step, 8 images of 96 x 96", forms=BOTH_FORMS, compilers=MODEL_COMPILERS, size=8,
         tolerance=1e-5, compiled_tolerance=2e-2),
    real("conv.cnn", "CNN step, NCHW, 16 images", forms=("captured",), size=16, tolerance=1e-5),
    real("conv.cnn_nhwc", "CNN step, NHWC, 16 images", forms=("captured",), size=16, tolerance=1e-5),
    real("epochs.mlp", "MLP epoch, 6,144 images", {"default": 1.45, "best": 1.08}, forms=BOTH_FORMS,
         compilers=STEP_COMPILERS, size=6144),
    real("epochs.lenet", "LeNet epoch, 6,144 images", {"default": 1.0, "best": 1.0}, forms=BOTH_FORMS,
         compilers=STEP_COMPILERS, size=6144, lower_end=0.97),
    real("ddp.step", "DDP step, two ranks", {"default": 1.1, "best": 1.1}, size=2, grows=DDP),
    real("ddp.step", "DDP step, a group of one", {"libtorch": None, "default": 1.1, "best": 1.1}, libtorch="ddp.bare",
         size=1, grows=DDP),
    real("ddp.step", "DDP step, four ranks", size=4, grows=DDP),
    real("data_parallel.step", "training step of two CPU replicas, against one module", {"libtorch": None},
         libtorch="data_parallel.bare", size=256),
    real("data_parallel.losses", "training step of two CPU replicas that compute their own losses, against one module",
         {"libtorch": None}, libtorch="data_parallel.bare", size=256),
    real("serving.mlp", "exported MLP, one row, against the network", {"libtorch": 0.95},
         libtorch="serving.mlp_network"),
    real("serving.resnet18", "exported ResNet-18, one image, against the network", {"libtorch": 0.95},
         libtorch="serving.resnet18_network", tolerance=1e-5),
]

FEEDING_AND_FILES = [
    Workload("feeding.batches", "60,000 images in batches of 256", EAGER, "feeding", size=60_000, grows=FEEDING),
    Workload("feeding.batches", "600 images in batches of 256", EAGER, "feeding", size=600, grows=FEEDING),
    Workload("feeding.batches", "600,000 images in batches of 256", EAGER, "feeding", size=600_000, grows=FEEDING),
    Workload("feeding.floats", "60,000 float images in batches of 256", EAGER, "feeding", size=60_000),
    Workload("feeding.pictures", "1,024 JPEG files in batches of 32, by two workers", {"default": 1.0, "best": 1.0},
             "feeding", size=1024, lower_end=1.0, tolerance=1e-3, needs="torchvision", files=True),
    Workload("files.load", "loading a safetensors file of 256 MiB", {"default": None}, "files", size=16, tolerance=1e-5,
             starts=5),
    Workload("files.save", "saving a safetensors file of 256 MiB", {"default": None}, "files", size=16, tolerance=1e-5,
             starts=5),
]

START = [
    Workload("steps.sgd:start", "process start to first training step", {"default": 6, "best": 6}, "start",
             measure="start", size=4),
    Workload("steps.sgd:memory", "peak memory of that process", {"default": 1 / 0.65, "best": 1 / 0.65}, "start",
             measure="memory", size=4),
    Workload("race.accuracy:start", "process start to 0.87 on Fashion-MNIST", {"default": 1.3, "best": 1.0}, "start",
             measure="start", data="/usr/share/datasets/fashion-mnist"),
]

OPERATORS = [
    Workload("ops.add", "add, 4 x 4", {"default": 2.0}),
    Workload("ops.mul", "mul, 4 x 4", {"default": 2.0}),
    Workload("ops.relu", "relu, 4 x 4", {"default": 2.0}),
    Workload("ops.product", "4 x 4 matmul", {"default": 1.7}, size=4),
    *[Workload("ops.product", f"{size} x {size} matmul", {"default": 0.97}, size=size, most=1.03,
               limit="limits.product", starts=5) for size in (512, 1024, 2048)],
    Workload("ops.product_into", "2048 x 2048 matmul into a tensor", {"default": 0.97}, size=2048, most=1.03, starts=5),
    Workload("ops.copy", "copy of 25 M elements", {"default": None}, size=25_000_000, limit="limits.copy", starts=5),
    Workload("ops.norms_read", "1,000 matmuls, each norm read immediately", {"default": None}),
    Workload("ops.norms_kept", "1,000 matmuls, norms read at the end", {"default": None}),
    Workload("ops.norms_written", "1,000 matmuls, norms written to a tensor", {"default": None}),
    Workload("ops.norms_batched", "1,000 matmuls and norms in one call", {"default": None}),
    Workload("optimizers.adamw_small", "AdamW, 1,000 parameters of 64 elements",
             {"libtorch": 30, "default": None, "best": 8}, size=1000, libtorch="optimizers.adamw_small_libtorch"),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 25 M elements", {"default": None, "best": 0.98},
             size=25_000_000, limit="limits.adamw", starts=5, grows=OPTIMIZER),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 1,000 elements", EAGER, size=1000, grows=OPTIMIZER),
    Workload("optimizers.adamw_large", "AdamW, one parameter of 100,000 elements", EAGER, size=100_000, grows=OPTIMIZER),
    Workload("optimizers.clip_small", "clipping of 1,000 gradients of 64 elements", {"default": None, "best": 1.2},
             size=1000),
    Workload("conv.layer", "3 x 3 convolution, NCHW, 16 images", {"default": None}, size=16),
    Workload("conv.layer_nhwc", "3 x 3 convolution, NHWC, 16 images", {"default": None}, size=16),
]


def on_gpu(name, title, floors, size, **more):
    return Workload(name, f"GPU: {title}", floors, "gpu", gpu=True, size=size, **more)


CAPTURED = {"forms": ("captured",)}

GPU = [
    on_gpu("gpu.product", "8192 x 8192 matmul, fp32", {"default": 0.97}, 8192, most=1.03),
    on_gpu("gpu.product_tf32", "8192 x 8192 matmul, TF32", {"default": 0.97}, 8192, most=1.03, tolerance=1e-3),
    on_gpu("gpu.product_bf16", "8192 x 8192 matmul, bf16", {"default": 0.97}, 8192, most=1.03, tolerance=1e-2),
    on_gpu("gpu.two_products", "4096 x 4096 matmul on each of two devices", {"default": None}, 4096, tolerance=1e-5),
    on_gpu("gpu.to_device", "256 MiB to the device", {"default": None}, 2**26),
    on_gpu("gpu.to_host", "256 MiB to the host", {"default": None}, 2**26),
    on_gpu("gpu_steps.sgd", "SimpleNN step", {"default": 6, "best": 0.95, "compile": None}, 4, tolerance=1e-4, **CAPTURED),
    *[on_gpu(f"gpu_steps.{net}_{precision}", f"{title}, {words}", TUNED if precision == "bf16" else EAGER, size,
             tolerance=tolerance, **CAPTURED)
      for net, title, size in [("gpt", "GPT step, 6 blocks of 384, 16 x 256 tokens", 256),
                               ("resnet", "ResNet-18 step, 128 images of 96 x 96", 128)]
      for precision, words, tolerance in [("fp32", "fp32", 1e-4), ("tf32", "TF32", 1e-2), ("bf16", "bf16", 2e-2)]],
    on_gpu("gpu_steps.gpt2_bf16", "GPT-2 small step, 8 x 1024 tokens, bf16", TUNED, 1024, tolerance=2e-2, **CAPTURED),
    on_gpu("gpu_steps.resnet50_bf16", "ResNet-50 step, 128 images of 224 x 224, bf16", TUNED, 128, tolerance=2e-2,
           needs="torchvision", **CAPTURED),
    on_gpu("gpu.fed_epoch", "MLP epoch fed from the CPU, against data on the GPU", {"libtorch": 0.97, "default": None},
           61_440, libtorch="gpu.held_epoch", tolerance=1e-5),
]

WORKLOADS = [*SMALL, *REAL, *FEEDING_AND_FILES, *START, *OPERATORS, *GPU]
