"""Writes scikit-learn's unscaled diabetes data to diabetes.csv next to this script.

Run it in a Python environment with scikit-learn: python3 apps/train/diabetes/make_diabetes.py
"""

import pathlib

from sklearn.datasets import load_diabetes

data = load_diabetes(scaled=False)
lines = [",".join([*data.feature_names, "progression"])]
for row, target in zip(data.data, data.target):
    lines.append(",".join(f"{value:.6g}" for value in [*row, target]))
pathlib.Path(__file__).with_name("diabetes.csv").write_text("\n".join(lines) + "\n")
