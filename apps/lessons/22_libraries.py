import torch


def has_operator(library, operation):
    names = torch._C._dispatch_get_all_op_names()
    return any(library in name and operation in name for name in names)


for operation in ["convolution", "convolution_relu", "batch_norm", "rnn", "pool", "matmul",
                  "linalg"]:
    print(f"cudnn {operation}: {'yes' if has_operator('cudnn', operation) else 'no'}")
