"""Continues in Python the run that tests/training/checkpoint_test.cpp saved.

Run: python3 tests/reference/checkpoint.py answer FOLDER/answer

Makes four steps from FOLDER/best.pt, compares the model with FOLDER/after, which C++ wrote after the same four
steps, and writes a line to FOLDER/answer. Continues with each LibTorch optimizer in FOLDER/libtorchs for three
steps, compares the result too, and writes FOLDER/python.pt: the state after these steps, and the weight after
three more. Exits with 77 if Python has no safetensors.
"""

import copy
import pathlib
import sys

import torch

try:
    from safetensors.torch import load_file
except ImportError:
    print("needs the Python package safetensors", file=sys.stderr)
    sys.exit(77)

torch.set_num_threads(1)
answer = pathlib.Path(sys.argv[2])
saved = torch.load(answer.parent / "best.pt", weights_only=True)
after = load_file(answer.parent / "after")
x = after.pop("x")

net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5),
                          torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
scaler = torch.amp.GradScaler("cpu")
average = torch.optim.swa_utils.AveragedModel(
    net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
net.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
scheduler.load_state_dict(saved["scheduler"])
scaler.load_state_dict(saved["scaler"])
average.load_state_dict(saved["ema"])
net.eval()
for _ in range(4):
    optimizer.zero_grad()
    scaler.scale(net(x).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
equal = all(torch.equal(value, after[name]) for name, value in net.state_dict().items())


def closure():
    optimizer.zero_grad()
    loss = linear(x).square().mean()
    loss.backward()
    return loss


def three_steps():
    for _ in range(3):
        optimizer.step(closure)


saved_libtorchs = torch.load(next((answer.parent / "libtorchs").glob("checkpoint-*.pt")), weights_only=True)
pythons = {}
for name in ["Adagrad", "Adam", "AdamW", "LBFGS", "RMSprop", "SGD"]:
    linear = torch.nn.Linear(4, 2)
    optimizer = getattr(torch.optim, name)(linear.parameters())
    keys = set(optimizer.state_dict()["param_groups"][0])
    linear.load_state_dict(saved_libtorchs[f"{name} model"])
    optimizer.load_state_dict(saved_libtorchs[name])
    if not keys <= set(saved_libtorchs[name]["param_groups"][0]):
        raise KeyError(f"{name}: expected the options {keys}, got {saved_libtorchs[name]['param_groups'][0]}")
    three_steps()
    torch.testing.assert_close(linear.weight.detach(), after[name])
    pythons[f"{name} model"] = {key: value.clone() for key, value in linear.state_dict().items()}
    pythons[name] = copy.deepcopy(optimizer.state_dict())
    three_steps()
    pythons[f"{name} next"] = linear.weight.detach()
torch.save(pythons, answer.parent / "python.pt")
answer.write_text(f"epoch {saved['epoch']} batch {saved['batch']} best {saved['best']['metric']} "
                  f"equal {equal}\n", encoding="utf-8")
