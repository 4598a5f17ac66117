# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, from PyTorch's own and their differentiation."""
import numpy as np
import torch

from .activations import TORCH
from .emit import case, random

CLOSE = {"rtol": 1e-5, "atol": 1e-5, "why": "f32 sums in another order"}
SIZES = [  # batch, steps, inputs, units
    (2, 3, 4, 3), (1, 1, 1, 1), (3, 2, 1, 5), (1, 5, 3, 2)]


def tensor(a):
    return torch.tensor(a.astype(np.float64), requires_grad=True)


def weights(i, sizes, gates, dtype):
    b, t, d, u = sizes
    return {"x": random(i, (b, t, d), dtype=dtype),
            "w": random(i + 10, (d, gates * u), -1, 1, dtype),
            "r": random(i + 20, (u, gates * u), -1, 1, dtype),
            "bias": random(i + 30, (gates * u,), -1, 1, dtype)}


def layer(kind, ins, units, **more):
    """PyTorch's layer with our weights, and those as its parameters."""
    x = ins["x"]
    made = kind(x.shape[2], units, batch_first=True, dtype=torch.float64,
                **more)
    with torch.no_grad():
        made.weight_ih_l0.copy_(tensor(ins["w"]).T)
        made.weight_hh_l0.copy_(tensor(ins["r"]).T)
        made.bias_ih_l0.copy_(tensor(ins["bias"]))
        made.bias_hh_l0.zero_()
    return made


def lstm():
    for i, sizes in enumerate(SIZES):
        b, t, d, u = sizes
        for dtype in (np.float32, np.float64):
            for reverse in (False, True):
                ins = weights(i, sizes, 4, dtype)
                ins["h0"] = random(i + 40, (b, u), -1, 1, dtype)
                ins["c0"] = random(i + 50, (b, u), dtype=dtype)
                made = layer(torch.nn.LSTM, ins, u)
                x = ins["x"][:, ::-1].copy() if reverse else ins["x"]
                y, (h, c) = made(tensor(x), (tensor(ins["h0"])[None],
                                             tensor(ins["c0"])[None]))
                y = y.detach().numpy()
                outs = {"y": y[:, ::-1].copy() if reverse else y,
                        "h": h[0].detach().numpy(),
                        "c": c[0].detach().numpy()}
                case("lstm", ins, outs, {"reverse": reverse}, TORCH, **CLOSE)


def lstm_grad():
    """dz is the gradient of a projection that is added to x w."""
    for i, (b, t, _, u) in enumerate(SIZES):
        for dtype in (np.float32, np.float64):
            for reverse in (False, True):
                z = tensor(random(i, (b, t, 4 * u), dtype=dtype))
                r = random(i + 1, (u, 4 * u), -1, 1, dtype)
                h0 = tensor(random(i + 2, (b, u), -1, 1, dtype))
                c0 = tensor(random(i + 3, (b, u), -1, 1, dtype))
                grads = {"dy": random(i + 4, (b, t, u), dtype=dtype),
                         "dh": random(i + 5, (b, u), dtype=dtype),
                         "dc": random(i + 6, (b, u), dtype=dtype)}
                h, c, ys, gates, cells = h0, c0, [None] * t, [None] * t, [None] * t
                for k in reversed(range(t)) if reverse else range(t):
                    a = (z[:, k] + h @ torch.tensor(r.astype(np.float64)))
                    s, g = torch.sigmoid(a), torch.tanh(a[:, 2*u:3*u])
                    c = s[:, u:2*u] * c + s[:, :u] * g
                    h = s[:, 3*u:] * torch.tanh(c)
                    ys[k], cells[k] = h, c
                    gates[k] = torch.cat([s[:, :2*u], g, s[:, 3*u:]], 1)
                y = torch.stack(ys, 1)
                loss = sum((v * torch.tensor(grads[k].astype(np.float64))).sum()
                           for v, k in ((y, "dy"), (h, "dh"), (c, "dc")))
                loss.backward()
                ins = {"r": r}
                for name, v in (("gates", torch.stack(gates, 1)),
                                ("cells", torch.stack(cells, 1)), ("c0", c0)):
                    ins[name] = v.detach().numpy().astype(dtype)
                ins.update(grads)
                outs = {"dz": z.grad.numpy(), "dh0": h0.grad.numpy(),
                        "dc0": c0.grad.numpy()}
                case("lstm_grad", ins, outs, {"reverse": reverse}, TORCH,
                     **CLOSE)


def simple():
    """gru and rnn: y and h of one state."""
    kinds = (("gru", 3, torch.nn.GRU, {}),
             ("rnn", 1, torch.nn.RNN, {"nonlinearity": "tanh"}),
             ("rnn", 1, torch.nn.RNN, {"nonlinearity": "relu"}))
    for i, (op, gates, kind, more) in enumerate(kinds):
        for k, sizes in enumerate(SIZES):
            for dtype in (np.float32, np.float64):
                reverse = k % 2 == 1
                b, t, d, u = sizes
                ins = weights(i + k, sizes, gates, dtype)
                if op == "gru":
                    ins["rbias"] = random(i + 60, (gates * u,), -1, 1, dtype)
                ins["h0"] = random(i + 40, (b, u), -1, 1, dtype)
                made = layer(kind, ins, u, **more)
                if op == "gru":
                    with torch.no_grad():
                        made.bias_hh_l0.copy_(tensor(ins["rbias"]))
                x = ins["x"][:, ::-1].copy() if reverse else ins["x"]
                y, h = made(tensor(x), tensor(ins["h0"])[None])
                y = y.detach().numpy()
                outs = {"y": y[:, ::-1].copy() if reverse else y,
                        "h": h[0].detach().numpy()}
                attrs = {"reverse": reverse}
                if more:
                    attrs["act"] = more["nonlinearity"]
                case(op, ins, outs, attrs, TORCH, **CLOSE)


def steps_grad(op, i, sizes, dtype, act=None):
    """Differentiates the steps of a gru or rnn: z and q are leaves."""
    b, t, _, u = sizes
    gates, reverse = (3 if op == "gru" else 1), i % 2 == 1
    r = random(i + 1, (u, gates * u), -1, 1, dtype)
    z = tensor(random(i, (b, t, gates * u), dtype=dtype))
    moved = torch.zeros_like(z, requires_grad=True)  # its gradient is dq
    h0 = tensor(random(i + 2, (b, u), -1, 1, dtype))
    dy, dh = random(i + 3, (b, t, u), dtype=dtype), random(i + 4, (b, u),
                                                           dtype=dtype)
    h, ys, kept, inner = h0, [None] * t, [None] * t, [None] * t
    for k in reversed(range(t)) if reverse else range(t):
        q = h @ torch.tensor(r.astype(np.float64)) + moved[:, k]
        if op == "gru":
            s = torch.sigmoid(z[:, k, :2*u] + q[:, :2*u])
            inner[k] = q[:, 2*u:]
            n = torch.tanh(z[:, k, 2*u:] + s[:, :u] * inner[k])
            h = (1 - s[:, u:]) * n + s[:, u:] * h
            kept[k] = torch.cat([s, n], 1)
        else:
            h = act(z[:, k] + q)
        ys[k] = h
    y = torch.stack(ys, 1)
    ((y * torch.tensor(dy.astype(np.float64))).sum() +
     (h * torch.tensor(dh.astype(np.float64))).sum()).backward()
    ins = {"r": r}
    values = [("gates", kept), ("inner", inner)] if op == "gru" else []
    for name, v in values + [("y", ys)]:
        ins[name] = torch.stack(v, 1).detach().numpy().astype(dtype)
    if op == "gru":
        ins["h0"] = h0.detach().numpy().astype(dtype)
    ins.update({"dy": dy, "dh": dh})
    outs = {"dz": z.grad.numpy()}
    if op == "gru":
        outs["dq"] = moved.grad.numpy()
    outs["dh0"] = h0.grad.numpy()
    attrs = {"reverse": reverse}
    if act is not None:
        attrs["act"] = act.__name__
    case(op + "_grad", ins, outs, attrs, TORCH, **CLOSE)


def simple_grads():
    for i, sizes in enumerate(SIZES):
        for dtype in (np.float32, np.float64):
            steps_grad("gru", i, sizes, dtype)
            for act in (torch.tanh, torch.relu):
                steps_grad("rnn", i, sizes, dtype, act)


def cases():
    lstm()
    lstm_grad()
    simple()
    simple_grads()
