#!/usr/bin/env python3
"""What deserialization costs in PyTorch: unpickling a whole module, and unpickling it without its parameters. For experiment 6;
scripts/paper/measure_06.sh calls it. Prints CSV: model,pickle_bytes,unpickle_ms,stripped_bytes,unpickle_stripped_ms; medians of
REPEATS after one unmeasured round, from memory, so that no disk counts. --save FOLDER also writes each model's parameters as
FOLDER/MODEL.safetensors, for `distmind-real model pack`.

    scripts/paper/unpickle.py [--save FOLDER]        needs torch, torchvision, transformers; with --save, safetensors
"""
import pathlib
import pickle
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from naive_load import build  # noqa: E402 (the same modules as the naive load's)

REPEATS = 9
MODELS = ["resnet152", "inception_v3", "densenet201", "bert_base", "gpt2"]


def unpickle_ms(pickled):
    took = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        pickle.loads(pickled)
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took[1:])


def save(module, path):
    from safetensors.torch import save_file
    save_file({name: value.detach().clone().contiguous() for name, value in module.named_parameters()}, path)


def main():
    folder = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--save"] else None
    print("model,pickle_bytes,unpickle_ms,stripped_bytes,unpickle_stripped_ms")
    for name in MODELS:
        module, _ = build(name)
        module.eval()
        if folder:
            save(module, folder / f"{name}.safetensors")
        whole = pickle.dumps(module)
        whole_ms = unpickle_ms(whole)
        for parameter in module.parameters():
            parameter.data = torch.zeros(1)
        stripped = pickle.dumps(module)
        print(f"{name},{len(whole)},{whole_ms:.3f},{len(stripped)},{unpickle_ms(stripped):.3f}", flush=True)


if __name__ == "__main__":
    main()
