# SPDX-License-Identifier: Apache-2.0
"""Losses with dense labels or weights, and top-k, from PyTorch."""
import numpy as np
import torch
import torch.nn.functional as F

from .emit import case, random

TORCH = "pytorch " + torch.__version__.split("+")[0]
F32 = {"rtol": 2e-6, "atol": 1e-6, "why": "f32, a difference of like numbers"}


def tensor(a):
    return torch.tensor(a.astype(np.float64))


def close(dtype):
    return F32 if dtype == np.float32 else {}


def both():
    return (np.float32, np.float64)


def shares(seed, shape, dtype):
    """Probabilities of three binary digits, so that they add to exactly 1."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(8, [1 / shape[-1]] * shape[-1], shape[:-1])
    return np.asarray(counts / 8, dtype)


def dense():
    for i, shape in enumerate([(3, 5), (2, 2, 3), (4, 1), (17,), (0, 4)]):
        for dtype in both():
            x = random(300 + i, shape, -4, 4, dtype)
            z = shares(310 + i, shape, dtype)
            flat = (-1, shape[-1])
            loss = F.cross_entropy(
                tensor(x).reshape(flat), tensor(z).reshape(flat),
                reduction="none").reshape(shape[:-1])
            case("softmax_xent", {"logits": x, "labels": z},
                 {"loss": loss.numpy()}, source=TORCH, **close(dtype))
            dy = random(320 + i, shape[:-1], dtype=dtype)
            v = tensor(x).requires_grad_(True)
            out = F.cross_entropy(v.reshape(flat), tensor(z).reshape(flat),
                                  reduction="none").reshape(shape[:-1])
            out.backward(tensor(dy))
            case("softmax_xent_grad", {"logits": x, "labels": z, "dy": dy},
                 {"dlogits": v.grad.numpy()}, source=TORCH, **close(dtype))


def binary():
    for i, shape in enumerate([(7,), (3, 4), (), (0,)]):
        for dtype in both():
            x = random(330 + i, shape, -6, 6, dtype)
            z = random(340 + i, shape, 0, 1, dtype)
            loss = F.binary_cross_entropy_with_logits(
                tensor(x), tensor(z), reduction="none")
            case("sigmoid_xent", {"logits": x, "labels": z},
                 {"loss": loss.numpy()}, source=TORCH, **close(dtype))


def distances():
    for i, shape in enumerate([(7,), (3, 4), ()]):
        for delta, reduction in ((1.0, "mean"), (0.5, "sum"), (2.0, "none")):
            for dtype in both():
                a, b = (random(350 + 2 * i + k, shape, -2, 2, dtype)
                        for k in range(2))
                y = F.huber_loss(tensor(a), tensor(b), reduction=reduction,
                                 delta=delta)
                case("huber", {"a": a, "b": b}, {"y": y.numpy()},
                     attrs={"delta": delta, "reduction": reduction},
                     source=TORCH, **close(dtype))


def weighted():
    for i, (shape, of_sample, of_class) in enumerate(
            [((4, 5), True, False), ((4, 5), False, True),
             ((2, 3, 4), True, True)]):
        for dtype in both():
            x = random(370 + i, shape, -3, 3, dtype)
            labels = random(380 + i, shape[:-1], 0, shape[-1] - 1, np.int64)
            ins = {"logits": x, "labels": labels}
            kinds = {"reduction": "none"}
            if of_class:
                ins["class_weight"] = random(390 + i, shape[-1:], 0.1, 2,
                                             dtype)
                kinds["weight"] = tensor(ins["class_weight"])
            loss = F.cross_entropy(
                tensor(x).reshape(-1, shape[-1]),
                torch.tensor(labels.ravel()), **kinds).numpy()
            loss = loss.reshape(shape[:-1])
            if of_sample:
                ins["weight"] = random(400 + i, shape[:-1], 0.1, 2, dtype)
                loss = loss * ins["weight"].astype(np.float64)
            case("sparse_softmax_xent", ins, {"loss": loss}, source=TORCH,
                 **close(dtype))


def top_k():
    for i, (shape, k) in enumerate([((6, 9), 1), ((6, 9), 3), ((6, 9), 9),
                                    ((2, 3, 5), 2), ((4, 40), 5)]):
        for dtype in both():
            x = random(410 + i, shape, -3, 3, dtype)
            labels = random(420 + i, shape[:-1], 0, shape[-1] - 1, np.int32)
            best = torch.topk(tensor(x), k).indices.numpy()
            hit = (best == labels[..., None]).any(-1)
            case("in_top_k", {"predictions": x, "targets": labels},
                 {"y": hit}, attrs={"k": k}, source=TORCH)


def cases():
    dense()
    binary()
    distances()
    weighted()
    top_k()
