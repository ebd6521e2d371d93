#!/usr/bin/env python3
"""Makes experiments/profiles/v100 and experiments/profiles/l4 from the measured tables in experiments/profiles/h200.

A table's rows keep their bytes and their shares of the time; their sum becomes the warm latency on the other GPU:

V100: ResNet-152, Inception v3 and BERT base take the warm latencies of resident models at batch 8 that PipeSwitch's authors
  published of a run on a V100 (p3.2xlarge): github.com/netx-repo/PipeSwitch, log-1019.txt, figure 5, ready_model. DenseNet-201 takes its H200 latency times the mean V100/H200 ratio of ResNet-152 and Inception v3, GPT-2 its
  H200 latency times BERT base's ratio; both are marked estimated.
L4: no run was at hand. FP32 arithmetic alone would make an L4 faster than a V100 (30.3 against 15.7 TFLOPS), memory
  bandwidth alone slower (300 against 900 GB/s; NVIDIA L4 and V100 SXM2 data sheets). Layers lie between the two, so each
  latency is the V100's times the geometric mean of the two ratios. All are marked estimated.

Usage: scripts/make_profiles.py [--check]     --check writes nothing and fails if a file differs.
"""

import math
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "experiments", "profiles")
MODELS = ("resnet152", "inception_v3", "densenet201", "bert_base", "gpt2")
COLUMNS = "layer,kind,param_bytes,compute_us"
PUBLISHED_V100_MS = {"resnet152": 37.1, "inception_v3": 40.5, "bert_base": 39.3}
FP32_TFLOPS = {"V100": 15.7, "L4": 30.3}
MEMORY_GB_S = {"V100": 900.0, "L4": 300.0}
CARRIED = ("batch", "tensors", "unpickle_ms", "first_inference_ms", "swap_extra_ms")


def read_table(model):
    """The `# key: value` lines and the rows of a measured table."""
    notes, rows = {}, []
    with open(os.path.join(ROOT, "h200", model + ".csv"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("#"):
                key, _, value = line[1:].partition(":")
                notes[key.strip()] = value.strip()
            elif line and line != COLUMNS:
                layer, kind, size, time = line.split(",")
                rows.append((layer, kind, int(size), float(time)))
    return notes, rows


def v100_latency(model, h200_ms):
    """Warm latency in ms, and how it was had; the second is None for a published figure."""
    if model in PUBLISHED_V100_MS:
        return PUBLISHED_V100_MS[model], None
    base = ("resnet152", "inception_v3") if model == "densenet201" else ("bert_base",)
    ratio = sum(PUBLISHED_V100_MS[name] / h200_ms[name] for name in base) / len(base)
    how = "the H200's %s ms x %.3f, the %sV100/H200 ratio of %s" % (
        h200_ms[model], ratio, "mean " if len(base) > 1 else "", " and ".join(base))
    return h200_ms[model] * ratio, how


def l4_latency(model, h200_ms):
    compute = FP32_TFLOPS["V100"] / FP32_TFLOPS["L4"]
    memory = MEMORY_GB_S["V100"] / MEMORY_GB_S["L4"]
    v100_ms, v100_how = v100_latency(model, h200_ms)
    how = ("the V100's %.2f ms (%s) x %.3f, the geometric mean of V100/L4 in FP32 TFLOPS (15.7/30.3) and in GB/s of "
           "memory (900/300)" % (v100_ms, "itself estimated" if v100_how else "published", math.sqrt(compute * memory)))
    return v100_ms * math.sqrt(compute * memory), how


def table_text(model, gpu, latency_ms, how, notes, rows):
    total = sum(row[3] for row in rows)
    lines = ["# model: " + model, "# gpu: " + gpu]
    lines += ["# %s: %s" % (key, notes[key]) for key in CARRIED]
    lines += ["# warm_latency_ms: %.2f" % latency_ms]
    if how:
        lines += ["# estimated: true", "# source: warm latency is " + how]
    else:
        lines += ["# source: warm latency of a resident model in PipeSwitch's published run on a p3.2xlarge (github.com/netx-repo/"
                  "PipeSwitch, log-1019.txt, figure 5, ready_model)"]
    lines += ["# rows: layer times of the H200's table, scaled so that their sum is the warm latency; parameters are the same",
              "# host: unpickle_ms, first_inference_ms and swap_extra_ms are those measured on the H200's host, not this GPU's",
              "# made by: scripts/make_profiles.py", COLUMNS]
    lines += ["%s,%s,%d,%.3f" % (layer, kind, size, time / total * latency_ms * 1000) for layer, kind, size, time in rows]
    return "\n".join(lines) + "\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    tables = {model: read_table(model) for model in MODELS}
    h200_ms = {model: float(tables[model][0]["warm_latency_ms"]) for model in MODELS}
    differing = []
    for folder, gpu, latency in (("v100", "NVIDIA V100 SXM2", v100_latency), ("l4", "NVIDIA L4", l4_latency)):
        os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
        for model in MODELS:
            text = table_text(model, gpu, *latency(model, h200_ms), *tables[model])
            path = os.path.join(ROOT, folder, model + ".csv")
            if not check:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            elif not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
                differing.append(os.path.relpath(path))
    if differing:
        sys.exit("differ from what scripts/make_profiles.py makes: " + ", ".join(differing))


if __name__ == "__main__":
    main()
