import pathlib
import sys
import time

import torch
from torchvision import io, models
from torchvision.transforms import v2

to_input = v2.Compose([
    v2.Resize([256, 256]), v2.CenterCrop([224, 224]), lambda x: x.float() / 255,
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
weights, folder, *classes = sys.argv[1:]
files = sorted(pathlib.Path(folder).iterdir())
net = models.resnet18(num_classes=len(classes))
net.load_state_dict(torch.load(weights))
net.eval()
start = time.perf_counter()
with torch.no_grad():
    for first in range(0, len(files), 8):
        batch = [to_input(io.read_image(str(file), io.ImageReadMode.RGB)) for file in files[first:first + 8]]
        probabilities, indices = net(torch.stack(batch)).softmax(1).max(1)
        for file, p, index in zip(files[first:], probabilities, indices):
            print(f"{file.name}: {classes[index]}, {p:.3f}")
print(f"~ {len(files) / (time.perf_counter() - start):.1f} images per second")
