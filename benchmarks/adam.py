"""What the fused optimiser saves: one step of Adam over as many weights as `default` trains, three ways in turns.

python benchmarks/adam.py
"""

import time

import torch

WEIGHTS, ROUNDS = 9_600_000, 30
WAYS: dict[str, dict[str, bool]] = {
    "one by one": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def main() -> None:
    torch.set_num_threads(1)
    steps = {}
    for name, options in WAYS.items():
        weights = [torch.nn.Parameter(torch.randn(WEIGHTS // 24)) for _ in range(24)]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        steps[name] = torch.optim.AdamW(weights, lr=1e-3, betas=(0.9, 0.98), **options)
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, optimiser in steps.items():
            start = time.process_time()
            optimiser.step()
            seconds[name].append(time.process_time() - start)
    for name, rounds in seconds.items():
        print(f"{name}: {1000 * sorted(rounds)[ROUNDS // 2]:.1f} ms per step")


if __name__ == "__main__":
    main()
