"""Defines the mistakes for wrong_on_purpose.py: the lesson, the language, the kind of mistake, and the text changes
that cause it."""

WAIT, DIMENSIONS, COUNT = "a wait left out", "two dimensions exchanged", "a wrong count"
AFTER = {"        work()\n        synchronize()\n": "        work()\n"}  # the clock of a twin

SIDE_NOTES, SUMMARY = "d2l_gpus/3_side_notes", "d2l_gpus/5_summary"
ONE, THREE, FOUR = (f"d2l_gpus/exercise_{number}" for number in (1, 3, 4))
ASYNC, SPEED_UP, CUDNN = (f"gpu_acceleration_notebook/{name}" for name in ("2_additional_considerations", "4_speed_up", "5_cudnn"))
LOOP = "gpu_acceleration_guide/6_examples"

MISTAKES = [
    (SIDE_NOTES, "C++", WAIT, {"median_seconds(work, device)": "median_seconds(work)"}),
    (SIDE_NOTES, "Python", WAIT, AFTER),
    (SIDE_NOTES, "C++", DIMENSIONS, {"matmul(x_gpu, x_gpu.t())": "matmul(x_gpu.t(), x_gpu)"}),
    (SIDE_NOTES, "Python", DIMENSIONS, {"matmul(x_gpu, x_gpu.t())": "matmul(x_gpu.t(), x_gpu)"}),
    (SIDE_NOTES, "C++", COUNT, {"i < 1000; ++i) a[i].to": "i < 999; ++i) a[i].to"}),
    (SIDE_NOTES, "Python", COUNT, {"for i in range(1000):\n        a[i].to": "for i in range(999):\n        a[i].to"}),

    (SUMMARY, "C++", WAIT, {"loss.item<float>()": "loss.detach()"}),
    (SUMMARY, "Python", WAIT, {"loss.item()": "loss.detach()"}),
    (SUMMARY, "C++", DIMENSIONS, {"net(X[i])": "net(X[i].t().contiguous().t())"}),
    (SUMMARY, "Python", DIMENSIONS, {"net(X[i])": "net(X[i].t().contiguous().t())"}),
    (SUMMARY, "C++", COUNT, {"i < 100; ++i": "i < 99; ++i"}),
    (SUMMARY, "Python", COUNT, {"range(100)": "range(99)"}),

    (ONE, "C++", WAIT, {"median_seconds(on_gpu, device)": "median_seconds(on_gpu)"}),
    (ONE, "Python", WAIT, {"median_seconds(on_gpu, device)": "median_seconds(on_gpu)"}),
    (ONE, "C++", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),
    (ONE, "Python", DIMENSIONS, {"(x_gpu, y_gpu)": "(x_gpu.t(), y_gpu)"}),
    (ONE, "C++", COUNT, {"median_seconds(on_gpu, device)": "median_seconds(on_gpu, device, 8)"}),
    (ONE, "Python", COUNT, {"median_seconds(on_gpu, device)": "median_seconds(on_gpu, device, 8)"}),

    (THREE, "C++", WAIT, {"median_seconds(one_by_one, device, 3)": "median_seconds(one_by_one, torch::kCPU, 3)"}),
    (THREE, "Python", WAIT, {"median_seconds(one_by_one, device, 3)": "median_seconds(one_by_one, torch.device('cpu'), 3)"}),
    (THREE, "C++", DIMENSIONS, {"(A[i], B[i]).norm().item": "(A[i].t(), B[i]).norm().item"}),
    (THREE, "Python", DIMENSIONS, {"(A[i], B[i]).norm().item": "(A[i].t(), B[i]).norm().item"}),
    (THREE, "C++", COUNT, {"i < 1000; ++i": "i < 999; ++i"}),
    (THREE, "Python", COUNT, {"range(1000)": "range(999)"}),

    (FOUR, "C++", WAIT, {"sconce::synchronize(other);  // the clock": "// the clock"}),
    (FOUR, "Python", WAIT, {"            synchronize(other)\n        return first": "        return first"}),
    (FOUR, "C++", DIMENSIONS, {"first = torch::matmul(x, x);\n      c10": "first = torch::matmul(x, x.t());\n      c10"}),
    (FOUR, "Python", DIMENSIONS, {"first = torch.matmul(x, x)": "first = torch.matmul(x, x.t())"}),
    (FOUR, "C++", COUNT, {"median_seconds(at_once, device)": "median_seconds(at_once, device, 8)"}),
    (FOUR, "Python", COUNT, {"median_seconds(at_once, device)": "median_seconds(at_once, device, 8)"}),

    (ASYNC, "C++", WAIT, {"sconce::synchronize(device);\n  const double finished": "const double finished"}),
    (ASYNC, "Python", WAIT, {"synchronize(device)\nfinished": "finished"}),
    (ASYNC, "C++", DIMENSIONS, {"++i) z = torch::matmul(x, y)": "++i) z = torch::matmul(x.t(), y)"}),
    (ASYNC, "Python", DIMENSIONS, {"    z = torch.matmul(x, y)": "    z = torch.matmul(x.t(), y)"}),
    (ASYNC, "C++", COUNT, {"i < 10; ++i": "i < 9; ++i"}),
    (ASYNC, "Python", COUNT, {"range(10)": "range(9)"}),

    (SPEED_UP, "C++", WAIT, {"sconce::synchronize(device);\n  const double finished": "const double finished"}),
    (SPEED_UP, "Python", WAIT, {"synchronize(device)\nfinished": "finished"}),
    (SPEED_UP, "C++", DIMENSIONS, {"z_gpu = torch::matmul(x_gpu, y_gpu);\n  const double": "z_gpu = torch::matmul(x_gpu.t(), y_gpu);\n  const double"}),
    (SPEED_UP, "Python", DIMENSIONS, {"z_gpu = torch.matmul(x_gpu, y_gpu)\nreturned": "z_gpu = torch.matmul(x_gpu.t(), y_gpu)\nreturned"}),
    (SPEED_UP, "C++", COUNT, {"/*runs=*/3": "/*runs=*/2"}),
    (SPEED_UP, "Python", COUNT, {"runs=3": "runs=2"}),

    (CUDNN, "C++", WAIT, {"conv_layer(fresh); }, device)": "conv_layer(fresh); })"}),
    (CUDNN, "Python", WAIT, {"    work()\n    synchronize()\n": "    work()\n"}),
    (CUDNN, "C++", DIMENSIONS, {"{1, 3, 224, 224}": "{3, 1, 224, 224}", "{1, 3, 224, benchmark": "{3, 1, 224, benchmark",
                                "/*in_channels=*/3": "1"}),
    (CUDNN, "Python", DIMENSIONS, {"(1, 3, 224, 224)": "(3, 1, 224, 224)", "(1, 3, 224, 226": "(3, 1, 224, 226",
                                   "in_channels=3": "in_channels=1"}),
    (CUDNN, "C++", COUNT, {"conv_layer(fresh); }, device)": "conv_layer(fresh); }, device, 8)"}),
    (CUDNN, "Python", COUNT, {"range(9)": "range(8)"}),

    (LOOP, "C++", DIMENSIONS, {"randn({100, 3}).to(device)": "randn({3, 100}).t().to(device)"}),
    (LOOP, "Python", DIMENSIONS, {"randn(100, 3).to(device)": "randn(3, 100).t().to(device)"}),
    (LOOP, "C++", COUNT, {"num_epochs = 5": "num_epochs = 4"}),
    (LOOP, "Python", COUNT, {"num_epochs = 5": "num_epochs = 4"}),
]
