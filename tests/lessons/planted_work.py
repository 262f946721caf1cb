import os

import torch

planted = os.environ.get("PLANTED") == "Python"
X, w, images = torch.ones(2, 3), torch.ones(3, 4), torch.ones(1, 1, 4, 4)
Y = X.T @ w[:2] if planted else X @ w
filtered = torch.conv2d(images, torch.ones(2, 1, 3, 3))
print(f"{(X + X).sum().item() + filtered.sum().item():g}")
if planted:
    Y.sum().item()
