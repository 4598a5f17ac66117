# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradient, from PyTorch's own and its differentiation."""
import math

import numpy as np
import torch

from .activations import TORCH
from .emit import case, random

CLOSE = {"rtol": 1e-5, "atol": 1e-5, "why": "f32 sums in another order"}
FORMS = [  # batch, q heads, kv heads, queries, keys, width, causal, scale
    (1, 2, 2, 3, 3, 4, False, None), (2, 2, 1, 3, 5, 3, False, 0.7),
    (1, 2, 2, 4, 4, 2, True, None), (1, 4, 2, 2, 3, 3, True, 1.3)]


def tensor(a):
    return torch.tensor(a.astype(np.float64), requires_grad=True)


def scores(ins, heads, kv, causal, scale):
    """[batch, heads, queries, keys], for lse."""
    q, k = tensor(ins["q"]), tensor(ins["k"])
    k = k.repeat_interleave(heads // kv, 1)
    s = q @ k.mT * (scale or 1 / math.sqrt(q.shape[-1]))
    if "mask" in ins:
        s = s + torch.tensor(ins["mask"].astype(np.float64))
    if causal:
        seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
        s = s.masked_fill(~seen, -math.inf)
    return s


def cases():
    for i, (b, h, g, n, m, d, causal, scale) in enumerate(FORMS):
        for dtype in (np.float32, np.float64):
            ins = {"q": random(i, (b, h, n, d), dtype=dtype),
                   "k": random(i + 10, (b, g, m, d), dtype=dtype),
                   "v": random(i + 20, (b, g, m, d), dtype=dtype)}
            mask = None
            if not causal:
                ins["mask"] = random(i + 30, (n, m), dtype=dtype)
                mask = torch.tensor(ins["mask"].astype(np.float64))
            t = {name: tensor(ins[name]) for name in "qkv"}
            y = torch.nn.functional.scaled_dot_product_attention(
                t["q"], t["k"], t["v"], attn_mask=mask, is_causal=causal,
                scale=scale, enable_gqa=True)
            lse = scores(ins, h, g, causal, scale).logsumexp(-1)
            attrs = {"is_causal": causal}
            if scale:
                attrs["scale"] = scale
            outs = {"y": y.detach().numpy(), "lse": lse.detach().numpy()}
            case("attention", ins, outs, attrs, TORCH, **CLOSE)
            dy = random(i + 40, y.shape, dtype=dtype)
            y.backward(torch.tensor(dy.astype(np.float64)))
            back = {name: ins[name] for name in "qkv"}
            back.update({"dy": dy, "y": outs["y"].astype(dtype),
                         "lse": outs["lse"].astype(dtype)})
            if "mask" in ins:
                back["mask"] = ins["mask"]
            grads = {"d" + name: t[name].grad.numpy() for name in "qkv"}
            case("attention_grad", back, grads, attrs, TORCH, **CLOSE)
