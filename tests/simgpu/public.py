#!/usr/bin/env python3
"""Runs public programs, unchanged, on simulated GPUs, and prints how each one ends and what it reports, for public.md.

  public.py --simgpu build/default/bin/sconce-simgpu --python PYTHON --snapshots FOLDER
  public.py ... --only "FSDP2|DDP"       those with this regular expression in their names

PYTHON has the torch that sconce-simgpu was built with, torchvision, lightning, jsonargparse[signatures], and scikit-learn. FOLDER has a git repository
OWNER+NAME/repo for each of REPOSITORIES. Data sets of torchvision are replaced by random ones (stand_ins). By hand.
"""
import argparse
import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

REPOSITORIES = {
    "examples": ("pytorch/examples", "77f55b9"),
    "nanoGPT": ("karpathy/nanoGPT", "3adf61e1"),
    "minGPT": ("karpathy/minGPT", "37baab7"),
    "lightning": ("Lightning-AI/pytorch-lightning", "7f0c3436cd"),
}
TORCHRUN = "{python} -m torch.distributed.run --standalone --nproc-per-node=2 "
CHARACTERS = ("--device=cuda --compile=False --eval_iters=2 --log_interval=1 --block_size=64 --batch_size=4 --n_layer=2"
              " --n_head=2 --n_embd=64 --max_iters=6 --eval_interval=5 --dropout=0.1")


@dataclasses.dataclass
class Program:
    """A command in a folder of a repository, and the preparations that it requires."""
    repository: str
    folder: str
    command: str
    before: str = ""
    limit: int = 300


# Text for the character networks of nanoGPT and minGPT, which would otherwise download their own text.
TEXT = "{python} -c \"open('input.txt', 'w').write('O God, O God! To be, or not to be, that is the question.\\n' * 3000)\""
NANOGPT_DATA = f"cd data/shakespeare_char && {TEXT} && {{python}} prepare.py"
IMAGES = ("{python} -c \"import os\nfrom PIL import Image\nfor part in ('train', 'val'):\n  for label in 'ab':\n"
          "    os.makedirs(f'images/{{part}}/{{label}}')\n    for i in range(8):\n"
          "      Image.new('RGB', (256, 256), (i * 30, 99, 7)).save(f'images/{{part}}/{{label}}/{{i}}.png')\"")

# Uses the repository's data. A snapshot may lack its larger files.
WORDS = ("cd data/wikitext-2 && head -c 60000 test.txt >words && cp words train.txt && cp words valid.txt"
         " && mv words test.txt")
FABRIC = "{python} -m lightning.fabric.cli --accelerator=cuda --devices=2 --strategy=ddp "
LIGHTNING = ("EXAMPLES=60000 {{python}} {script} --trainer.max_epochs 1 --trainer.accelerator gpu"
             " --trainer.devices {devices} --trainer.limit_train_batches 8 --trainer.limit_val_batches 4"
             " --trainer.limit_test_batches 4 --trainer.limit_predict_batches 4")

PROGRAMS = {
    "MNIST": Program("examples", "mnist", "{python} main.py --epochs 1"),
    "MNIST by an RNN": Program("examples", "mnist_rnn", "{python} main.py --epochs 1 --accel"),
    "MNIST, forward-forward": Program(
        "examples", "mnist_forward_forward", "{python} main.py --epochs 2 --train_size 200 --test_size 100"),
    "VAE": Program("examples", "vae", "{python} main.py --epochs 1", before="mkdir -p results"),
    "DCGAN": Program("examples", "dcgan", "{python} main.py --dataset fake --dry-run --accel --ngf 8 --ndf 8"),
    "siamese network": Program("examples", "siamese_network", "{python} main.py --epochs 1 --dry-run"),
    "ImageNet, one GPU": Program(
        "examples", "imagenet", "{python} main.py images --gpu 0 --epochs 1 -b 4 -j 2", before=IMAGES),
    "ImageNet, DataParallel": Program(
        "examples", "imagenet", "{python} main.py images --epochs 1 -b 4 -j 2", before=IMAGES),
    "ImageNet, DDP": Program(
        "examples", "imagenet", "{python} main.py images --multiprocessing-distributed --world-size 1 --rank 0"
        " --dist-url tcp://127.0.0.1:29517 --epochs 1 -b 4 -j 2", before=IMAGES),
    "DDP example": Program("examples", "distributed/ddp", TORCHRUN + "example.py"),
    "DDP tutorial, one GPU": Program("examples", "distributed/ddp-tutorial-series", "{python} single_gpu.py 2 1"),
    "DDP tutorial, spawn": Program("examples", "distributed/ddp-tutorial-series", "{python} multigpu.py 2 1"),
    "DDP tutorial, torchrun": Program(
        "examples", "distributed/ddp-tutorial-series", TORCHRUN + "multigpu_torchrun.py 2 1"),
    "FSDP2": Program("examples", "distributed/FSDP2", TORCHRUN + "example.py"),
    "FSDP2, prefetching": Program("examples", "distributed/FSDP2", TORCHRUN + "example.py --explicit-prefetching"),
    "FSDP2, mixed precision": Program("examples", "distributed/FSDP2", TORCHRUN + "example.py --mixed-precision"),
    "FSDP2, checkpoint and resume": Program(
        "examples", "distributed/FSDP2", TORCHRUN + "example.py --dcp-api",
        before="{simgpu} " + TORCHRUN + "example.py --dcp-api"),
    "tensor parallelism": Program(
        "examples", "distributed/tensor_parallelism", TORCHRUN + "tensor_parallel_example.py"),
    "sequence parallelism": Program(
        "examples", "distributed/tensor_parallelism", TORCHRUN + "sequence_parallel_example.py"),
    "FSDP and tensor parallelism": Program(
        "examples", "distributed/tensor_parallelism",
        TORCHRUN.replace("node=2", "node=4") + "fsdp_tp_example.py"),
    "DDP over RPC": Program("examples", "distributed/rpc/ddp_rpc", "{python} main.py"),
    "nanoGPT, float32": Program(
        "nanoGPT", "", f"{{python}} train.py config/train_shakespeare_char.py --dtype=float32 {CHARACTERS}",
        before=NANOGPT_DATA),
    "nanoGPT, bfloat16": Program(
        "nanoGPT", "", f"{{python}} train.py config/train_shakespeare_char.py --dtype=bfloat16 {CHARACTERS}",
        before=NANOGPT_DATA),
    "nanoGPT, float16": Program(
        "nanoGPT", "", f"{{python}} train.py config/train_shakespeare_char.py --dtype=float16 {CHARACTERS}",
        before=NANOGPT_DATA),
    "nanoGPT, DDP": Program(
        "nanoGPT", "", TORCHRUN + f"train.py config/train_shakespeare_char.py --dtype=float32"
        f" --gradient_accumulation_steps=2 {CHARACTERS}", before=NANOGPT_DATA),
    "minGPT, adder": Program(
        "minGPT", "projects/adder", "PYTHONPATH=../..:$PYTHONPATH {python} adder.py --trainer.max_iters=20"
        " --trainer.num_workers=0"),
    "minGPT, characters": Program(
        "minGPT", "projects/chargpt", "PYTHONPATH=../..:$PYTHONPATH {python} chargpt.py --trainer.max_iters=10"
        " --model.model_type=gpt-nano --trainer.num_workers=0 --trainer.batch_size=4", before=TEXT),
    "Fabric, MNIST": Program(
        "lightning", "examples/fabric/image_classifier",
        "CUDA_VISIBLE_DEVICES=0 {python} train_fabric.py --epochs 1 --dry-run"),
    "plain PyTorch, MNIST": Program(
        "lightning", "examples/fabric/image_classifier", "{python} train_torch.py --epochs 1 --dry-run"),
    "Fabric, MNIST, DDP": Program("lightning", "examples/fabric/image_classifier",
                                  FABRIC + "train_fabric.py --epochs 1 --dry-run"),
    "Fabric, MNIST, FSDP": Program("lightning", "examples/fabric/image_classifier",
                                   FABRIC.replace("ddp", "fsdp") + "train_fabric.py --epochs 1 --dry-run"),
    "Fabric, k-fold": Program(
        "lightning", "examples/fabric/kfold_cv",
        "CUDA_VISIBLE_DEVICES=0 {python} train_fabric.py --epochs 1 --dry-run"),
    "Lightning, bug report": Program("lightning", "examples/pytorch/bug_report", "{python} bug_report_model.py"),
    "Lightning, autoencoder": Program("lightning", "examples/pytorch/basics",
                                      LIGHTNING.format(script="autoencoder.py", devices=1)),
    "Lightning, autoencoder, DDP": Program(
        "lightning", "examples/pytorch/basics",
        LIGHTNING.format(script="autoencoder.py", devices=2) + " --trainer.strategy ddp"),
    "Lightning, classifier": Program("lightning", "examples/pytorch/basics",
                                     LIGHTNING.format(script="backbone_image_classifier.py", devices=1)),
    "Lightning, classifier, DDP": Program(
        "lightning", "examples/pytorch/basics",
        LIGHTNING.format(script="backbone_image_classifier.py", devices=2) + " --trainer.strategy ddp"),
    "words, LSTM": Program(
        "examples", "word_language_model", "{python} main.py --accel --dry-run --epochs 1 --emsize 32 --nhid 32",
        before=WORDS),
    "words, transformer": Program(
        "examples", "word_language_model",
        "{python} main.py --accel --dry-run --epochs 1 --model Transformer --emsize 32 --nhid 32", before=WORDS),
    "Hogwild": Program("examples", "mnist_hogwild", "{python} main.py --cuda --epochs 1 --dry-run"),
}


@functools.cache
def unpacked(snapshots, repository, revision):
    """Returns a folder with the files in the snapshot, which may lack the largest ones."""
    to = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, to)
    git = ["git", "-C", str(snapshots / repository.replace("/", "+") / "repo")]
    names = subprocess.run([*git, "ls-tree", "-r", "--format=%(objectmode) %(objectname) %(path)", revision],
                           check=True, capture_output=True, text=True).stdout
    for line in names.splitlines():
        mode, blob, name = line.split(" ", 2)
        if mode not in ("100644", "100755") or name.endswith((".ipynb", ".png", ".jpg", ".gif")):
            continue
        found = subprocess.run([*git, "cat-file", "blob", blob], capture_output=True)
        if found.returncode == 0:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes(found.stdout)
    return to


def text_of(line):
    """Returns a report without the parts that change from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x", line.replace("simulated GPUs: ", ""))


def run(program, folder, arguments, reports):
    simgpu = (f"{shlex.quote(arguments.simgpu)} --hide-real-gpus --gpus 4 --races report --places --report"
              f" {shlex.quote(str(reports))} --")
    python = shlex.quote(arguments.python)
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(HERE / "stand_ins"), WANDB_MODE="disabled",
                       MASTER_PORT="29518")
    # torchrun's workers inherit the GPUs.
    command = program.command.format(python=python)
    words = command.split(" ")
    start = next(i for i, word in enumerate(words) if "=" not in word or word.startswith(("'", "/")))
    command = " ".join([*words[:start], simgpu, *words[start:]])
    before = program.before.format(python=python, simgpu=simgpu)
    shell = f"({before}) >before.log 2>&1 && {command}" if before else command
    begin = time.monotonic()
    try:
        ran = subprocess.run(["bash", "-c", shell], cwd=folder / program.folder, env=environment, text=True,
                             capture_output=True, timeout=program.limit)
        return ran.returncode, ran.stdout + ran.stderr, time.monotonic() - begin
    except subprocess.TimeoutExpired as expired:
        output = "".join(part.decode(errors="replace") for part in (expired.stdout, expired.stderr) if part)
        return "no end", output, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simgpu", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True)
    parser.add_argument("--snapshots", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="regular expression in the names of programs")
    parser.add_argument("--logs", type=pathlib.Path, help="folder that keeps what the programs print")
    arguments = parser.parse_args()
    if arguments.logs:
        arguments.logs.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name, program in PROGRAMS.items():
        if not re.search(arguments.only, name):
            continue
        repository, revision = REPOSITORIES[program.repository]
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            shutil.copytree(unpacked(arguments.snapshots, repository, revision), folder, dirs_exist_ok=True)
            code, output, seconds = run(program, folder, arguments, folder / "reports.json")
            found = []
            if (folder / "reports.json").exists():
                found = json.loads((folder / "reports.json").read_text())["reports"]
            lines = sorted({text_of(report["text"]).replace(str(folder), "") for report in found})
        failures += code != 0
        if arguments.logs:
            (arguments.logs / (re.sub(r"\W+", "_", name) + ".log")).write_text(output)
        print(f"| {name} | {repository}@{revision} | {program.folder or '.'} | {code} | {len(lines)} | {seconds:.0f} s |",
              flush=True)
        for line in lines:
            print(f"    {line}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
