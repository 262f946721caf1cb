"""Mistakes for wrong_on_purpose.py: the lesson, the language, what is wrong, and the texts that make it so."""

CPU = "torch.device('cpu')"  # some stand in a string of double quotes
WAIT, DIMENSIONS, COUNT = "a wait left out", "two dimensions exchanged", "a wrong count"


def of_clock(name, cpp, python):
    """Of a measurement: one that does not wait for its device, and one that runs eight times."""
    work, device = cpp
    call, py_device = python
    timed = f"median_seconds({call}, {py_device})" if py_device else f"median_seconds({call})"
    return [
        (name, "C++", WAIT, {f"median_seconds({work}, {device})": f"median_seconds({work})"}),
        (name, "Python", WAIT, {timed: f"median_seconds({call}, {CPU})"}),
        (name, "C++", COUNT, {f"median_seconds({work}, {device})": f"median_seconds({work}, {device}, 8)"}),
        (name, "Python", COUNT, {timed: f"median_seconds({call}, {py_device or 'None'}, 8)"}),
    ]


MISTAKES = [
    *of_clock("06_printing", ("[&] { X.cpu(); }", "device"), ("lambda: X.cpu()", "")),
    ("06_printing", "C++", DIMENSIONS, {"ones({2, 3}": "ones({3, 2}", "view({2, 3})": "view({3, 2})"}),
    ("06_printing", "Python", DIMENSIONS, {"ones(2, 3": "ones(3, 2"}),

    *of_clock("10_small_operations", ("large", "a.device()"), ("large", "")),
    ("10_small_operations", "C++", DIMENSIONS, {"a[i] + b[i]": "a.select(1, i) + b.select(1, i)"}),
    ("10_small_operations", "Python", DIMENSIONS, {"a[i] + b[i]": "a[:, i] + b[:, i]"}),
    ("10_small_operations", "C++", COUNT, {
        "rows(1000);\n    for (int i = 0; i < 1000; ++i) rows[i] = a[i] + b[i]":
        "rows(999);\n    for (int i = 0; i < 999; ++i) rows[i] = a[i] + b[i]"}),
    ("10_small_operations", "Python", COUNT, {"a[i] + b[i] for i in range(1000)": "a[i] + b[i] for i in range(999)"}),

    *of_clock("11_transfers", ("multiply", "device"), ("multiply", "device")),
    ("11_transfers", "C++", DIMENSIONS, {"{2048, 1024}": "{1024, 2048}"}),
    ("11_transfers", "Python", DIMENSIONS, {"(2048, 1024)": "(1024, 2048)"}),

    # Nothing waits here: it is a lesson on the CPU.
    ("12_cores", "C++", DIMENSIONS, {"{1000, 800}": "{800, 1000}", "y = torch::randint(2, {800, 1000}":
                                     "y = torch::randint(2, {1000, 800}"}),
    ("12_cores", "Python", DIMENSIONS, {"(1000, 800)": "(800, 1000)", "y = torch.randint(2, (800, 1000)":
                                        "y = torch.randint(2, (1000, 800)"}),
    ("12_cores", "C++", COUNT, {"median_seconds(multiply)": "median_seconds(multiply, torch::kCPU, 8)"}),
    ("12_cores", "Python", COUNT, {"median_seconds(multiply, cpu())": "median_seconds(multiply, cpu(), 8)"}),

    ("13_logging", "C++", WAIT, {"loss.item<float>()": "loss.detach()"}),
    ("13_logging", "Python", WAIT, {"loss.item()": "loss.detach()"}),
    ("13_logging", "C++", DIMENSIONS, {"net(X[i])": "net(X[i].t().contiguous().t())"}),
    ("13_logging", "Python", DIMENSIONS, {"net(X[i])": "net(X[i].t().contiguous().t())"}),
    ("13_logging", "C++", COUNT, {"i < 100; ++i": "i < 99; ++i"}),
    ("13_logging", "Python", COUNT, {"range(100)": "range(99)"}),

    *of_clock("14_exercise_1", ("on_gpu", "device"), ("on_gpu", "device")),
    ("14_exercise_1", "C++", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),
    ("14_exercise_1", "Python", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),

    ("16_exercise_3", "C++", WAIT, {"sconce::Stopwatch stopwatch(device);": "sconce::Stopwatch stopwatch;"}),
    ("16_exercise_3", "Python", WAIT, {"stopwatch = Stopwatch(device)": "stopwatch = Stopwatch()"}),
    ("16_exercise_3", "C++", DIMENSIONS, {"(A[i], B[i]).norm().item": "(A[i].t(), B[i]).norm().item"}),
    ("16_exercise_3", "Python", DIMENSIONS, {"(A[i], B[i]).norm().item": "(A[i].t(), B[i]).norm().item"}),
    ("16_exercise_3", "C++", COUNT, {"i < 1000; ++i": "i < 999; ++i"}),
    ("16_exercise_3", "Python", COUNT, {"range(1000)": "range(999)"}),

    ("17_exercise_4", "C++", WAIT, {"sconce::synchronize(y.device());": ""}),
    ("17_exercise_4", "Python", WAIT, {"synchronize(y.device)\n": "\n"}),
    ("17_exercise_4", "C++", DIMENSIONS, {"first = torch::matmul(x, x)": "first = torch::matmul(x, x.t())"}),
    ("17_exercise_4", "Python", DIMENSIONS, {"first = torch.matmul(x, x)": "first = torch.matmul(x, x.t())"}),
    ("17_exercise_4", "C++", COUNT, {"(together, device)": "(together, device, 8)"}),
    ("17_exercise_4", "Python", COUNT, {"(together, device)": "(together, device, 8)"}),

    ("19_speed_up", "C++", WAIT, {"(on_gpu, device, ": "(on_gpu, sconce::cpu(), "}),
    ("19_speed_up", "Python", WAIT, {"(on_gpu, device, ": "(on_gpu, cpu(), "}),
    ("19_speed_up", "C++", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),
    ("19_speed_up", "Python", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),
    ("19_speed_up", "C++", COUNT, {"(on_gpu, device, /*runs=*/3)": "(on_gpu, device, /*runs=*/2)"}),
    ("19_speed_up", "Python", COUNT, {"(on_gpu, device, runs=3)": "(on_gpu, device, runs=2)"}),

    ("20_asynchronous", "C++", WAIT, {"sconce::synchronize(device);\n  const double finished":
                                      "const double finished"}),
    ("20_asynchronous", "Python", WAIT, {"synchronize(device)\nfinished": "finished"}),
    ("20_asynchronous", "C++", DIMENSIONS, {"{2000, 1000}": "{1000, 2000}", "y = torch::randn({1000, 2000}":
                                            "y = torch::randn({2000, 1000}"}),
    ("20_asynchronous", "Python", DIMENSIONS, {"(2000, 1000": "(1000, 2000", "y = torch.randn(1000, 2000":
                                               "y = torch.randn(2000, 1000"}),
    ("20_asynchronous", "C++", COUNT, {"auto z = torch::matmul(x, y);":
                                       "auto z = torch::matmul(x, y);\n  z = torch::matmul(x, y);"}),
    ("20_asynchronous", "Python", COUNT, {"z = x @ y": "z = x @ y\nz = x @ y"}),

    *of_clock("21_convolution", ("work", "device"), ("lambda: layer(fresh)", "device")),
    ("21_convolution", "C++", DIMENSIONS, {"{1, 3, 224, 224}": "{3, 1, 224, 224}",
                                           "Conv2dOptions(3, 64, 3)": "Conv2dOptions(1, 64, 3)"}),
    ("21_convolution", "Python", DIMENSIONS, {"(1, 3, 224, 224)": "(3, 1, 224, 224)", "(3, 64, 3": "(1, 64, 3"}),

    *of_clock("26_training_loop", ("step", "where"), ("step", "where")),
    ("26_training_loop", "C++", DIMENSIONS, {"randn({100, 3}).to(where)": "randn({3, 100}).t().to(where)"}),
    ("26_training_loop", "Python", DIMENSIONS, {"randn(100, 3).to(where)": "randn(3, 100).t().to(where)"}),
]
