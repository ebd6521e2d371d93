#!/usr/bin/env python3
"""The naive way to serve a model that is not loaded, as frameworks do it: unpickle the whole module, move it to the GPU tensor by
tensor, then run it. Prints one line a model: name, milliseconds of torch.load, of module.to('cuda'), of the forward pass, of all
three; medians of REPEATS after one unmeasured round, so CUDA context and kernels are there, which favours the naive way.

    scripts/naive_load.py [MODEL]...        models of experiments/profiles/h200; needs torch, torchvision, transformers
"""
import io
import statistics
import sys
import time

import torch

REPEATS = 5
BATCH = 8


def build(name):
    """The module with random weights and an input, on the CPU."""
    if name in ("resnet152", "densenet201"):
        import torchvision
        return getattr(torchvision.models, name)(weights=None), torch.randn(BATCH, 3, 224, 224)
    if name == "inception_v3":
        import torchvision
        return (torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False),
                torch.randn(BATCH, 3, 299, 299))
    import transformers
    if name == "bert_base":
        module = transformers.BertModel(transformers.BertConfig())
    elif name == "gpt2":
        module = transformers.GPT2Model(transformers.GPT2Config())
    else:
        raise SystemExit(f"naive_load.py: unknown model {name}")
    return module, torch.randint(0, 30000, (BATCH, 512))


def measure(pickled, data):
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    module = torch.load(io.BytesIO(pickled), weights_only=False)
    t1 = time.perf_counter()
    module.to("cuda")
    torch.cuda.synchronize()
    t2 = time.perf_counter()
    with torch.no_grad():
        module(data)
    torch.cuda.synchronize()
    t3 = time.perf_counter()
    return t1 - t0, t2 - t1, t3 - t2, t3 - t0


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name in sys.argv[1:] or ["resnet152", "inception_v3", "densenet201", "bert_base", "gpt2"]:
        module, data = build(name)
        module.eval()
        buffer = io.BytesIO()
        torch.save(module, buffer)
        data = data.to("cuda")
        measure(buffer.getvalue(), data)
        rounds = [measure(buffer.getvalue(), data) for _ in range(REPEATS)]
        print(name, *(f"{1000 * statistics.median(column):.1f}" for column in zip(*rounds)), flush=True)


if __name__ == "__main__":
    main()
