# SPDX-License-Identifier: Apache-2.0
"""The optimisers' rules: sequences of three steps of PyTorch's optimisers, and
ONNX's node tests of ai.onnx.preview.training, by its reference functions."""
import numpy as np
import onnx
import torch
from onnx.reference.ops.aionnx_preview_training import (
    op_adagrad, op_adam, op_momentum)

from .emit import case, random

TORCH = "pytorch " + torch.__version__.split("+")[0]
ONNX = "onnx " + onnx.__version__ + ", node test "
F32 = {"rtol": 2e-6, "atol": 1e-7, "why": "f32, rounded more than once"}
STEPS = 3


def torch_step(make, keys, var, slots, grad, step):
    """One step from the given state: the new variable and slots. |keys|: of
    the optimiser's state, in the order of the slots."""
    p = torch.tensor(np.asarray(var, np.float64), requires_grad=True)
    p.grad = torch.tensor(np.asarray(grad, np.float64))
    optimizer = make([p])
    optimizer.state[p] = {
        key: torch.tensor(np.asarray(s, np.float64))
        for key, s in zip(keys, slots)}
    optimizer.state[p]["step"] = torch.tensor(float(step - 1))
    optimizer.step()
    return [p.detach().numpy()] + [
        optimizer.state[p][key].detach().numpy() for key in keys]


def sequence(op, names, keys, make, attrs, lr, seed, has_step=False,
             scale=None, start=0.0, numbered=False):
    """Cases of |op| in f64 and f32, each going on from the one before."""
    for dtype in (np.float64, np.float32):
        rate = np.asarray(lr, dtype)
        factor = None if scale is None else np.asarray(scale, dtype)
        var = random(seed, (2, 3), dtype=dtype)
        slots = [np.full((2, 3), start, dtype) for _ in keys]
        for step in range(1, STEPS + 1):
            grad = random(seed + 10 * step, (2, 3), dtype=dtype)
            used = grad.astype(np.float64)
            if factor is not None:
                used = used * float(factor)
            new = torch_step(make(float(rate)), keys, var, slots, used, step)
            ins = {"var": var, **dict(zip(names, slots)), "grad": grad,
                   "lr": rate}
            if has_step:
                ins["step"] = np.asarray(step, np.int64)
            if factor is not None:
                ins["scale"] = factor
            more = F32 if dtype == np.float32 else {
                "rtol": 1e-12, "atol": 1e-14,
                "why": "f64, the same sum in another order"}
            outs = ["var%d" % k for k in range(len(new))] if numbered \
                else ["var"] + names
            case(op, ins, dict(zip(outs, new)), attrs=attrs,
                 source=TORCH + ", step %d of 3" % step, **more)
            var, slots = new[0].astype(dtype), [s.astype(dtype)
                                                for s in new[1:]]


def sgd():
    for i, (l2, scale) in enumerate([(0.0, None), (0.01, None), (0.1, 0.25)]):
        sequence("apply_sgd", [], [],
                 lambda lr: lambda p: torch.optim.SGD(
                     p, lr=lr, weight_decay=l2),
                 {"l2": l2}, 0.1, 100 + i, scale=scale)


def momentum():
    settings = [(0.9, False, 0.0, None), (0.5, True, 0.0, None),
                (0.9, True, 0.01, 0.5), (0.9, False, 0.1, None)]
    for i, (share, nesterov, l2, scale) in enumerate(settings):
        sequence("apply_momentum", ["accum"], ["momentum_buffer"],
                 lambda lr: lambda p: torch.optim.SGD(
                     p, lr=lr, momentum=share, nesterov=nesterov,
                     weight_decay=l2),
                 {"momentum": share, "nesterov": nesterov, "l2": l2}, 0.1,
                 110 + i, scale=scale)


def adam():
    settings = [(0.9, 0.999, 1e-8, 0.0, None), (0.8, 0.99, 1e-3, 0.01, None),
                (0.9, 0.999, 1e-8, 0.001, 0.5)]
    for i, (b1, b2, epsilon, l2, scale) in enumerate(settings):
        sequence("apply_adam", ["m", "v"], ["exp_avg", "exp_avg_sq"],
                 lambda lr: lambda p: torch.optim.Adam(
                     p, lr=lr, betas=(b1, b2), eps=epsilon, weight_decay=l2),
                 {"beta1": b1, "beta2": b2, "epsilon": epsilon, "l2": l2},
                 0.01, 120 + i, has_step=True, scale=scale)


def adagrad():
    for i, (epsilon, l2, scale) in enumerate(
            [(1e-10, 0.0, None), (1e-3, 0.01, None), (1e-10, 0.1, 0.5)]):
        sequence("apply_adagrad", ["accum"], ["sum"],
                 lambda lr: lambda p: torch.optim.Adagrad(
                     p, lr=lr, eps=epsilon, weight_decay=l2),
                 {"epsilon": epsilon, "l2": l2}, 0.1, 130 + i, scale=scale,
                 start=0.125)


def adamw():
    settings = [(0.9, 0.999, 1e-8, 0.01, None), (0.8, 0.99, 1e-3, 0.5, 0.5)]
    for i, (b1, b2, epsilon, decay, scale) in enumerate(settings):
        sequence("apply_adamw", ["m", "v"], ["exp_avg", "exp_avg_sq"],
                 lambda lr: lambda p: torch.optim.AdamW(
                     p, lr=lr, betas=(b1, b2), eps=epsilon,
                     weight_decay=decay),
                 {"beta1": b1, "beta2": b2, "epsilon": epsilon,
                  "weight_decay": decay}, 0.1, 140 + i, has_step=True,
                 scale=scale)


def rms_prop():
    """Outputs are numbered: those of slots that are not used are left out."""
    settings = [(0.9, 0.0, False, 0.0, None), (0.99, 0.5, False, 0.01, None),
                (0.9, 0.0, True, 0.0, 0.5), (0.5, 0.9, True, 0.1, None)]
    for i, (rho, share, centered, l2, scale) in enumerate(settings):
        names, keys = ["ms"], ["square_avg"]
        if share > 0:
            names, keys = names + ["mom"], keys + ["momentum_buffer"]
        if centered:
            names, keys = names + ["mg"], keys + ["grad_avg"]
        sequence("apply_rms_prop", names, keys,
                 lambda lr: lambda p: torch.optim.RMSprop(
                     p, lr=lr, alpha=rho, eps=1e-8, weight_decay=l2,
                     momentum=share, centered=centered),
                 {"rho": rho, "momentum": share, "centered": centered,
                  "l2": l2}, 0.01, 150 + i, scale=scale, numbered=True)


def shrink(z, rate, l1, l2):
    return np.sign(z) * np.maximum(np.abs(z) - rate * l1, 0) / (1 + rate * l2)


def proximal():
    """By the formula; that ours takes the rate of each weight from accum
    follows TensorFlow's ApplyProximalAdagrad."""
    for i, (l1, l2, scale) in enumerate([(0.0, 0.0, 1), (0.5, 0.0, 1),
                                         (0.25, 0.5, 1), (2.0, 0.1, 0.5)]):
        for dtype in (np.float64, np.float32):
            more = F32 if dtype == np.float32 else {}
            var = random(160 + i, (9,), dtype=dtype)
            grad = random(170 + i, (9,), dtype=dtype)
            accum = random(180 + i, (9,), 0.1, 2.0, dtype=dtype)
            lr, factor = np.asarray(0.5, dtype), np.asarray(scale, dtype)
            x, g, a = (v.astype(np.float64) for v in (var, grad, accum))
            g = g * scale
            attrs = {"l1": l1, "l2": l2}
            case("apply_proximal_sgd",
                 {"var": var, "grad": grad, "lr": lr, "scale": factor},
                 {"var": shrink(x - 0.5 * g, 0.5, l1, l2)}, attrs=attrs,
                 **more)
            a = a + g * g
            rate = 0.5 / np.sqrt(a)
            case("apply_proximal_adagrad",
                 {"var": var, "accum": accum, "grad": grad, "lr": lr,
                  "scale": factor},
                 {"var": shrink(x - rate * g, rate, l1, l2), "accum": a},
                 attrs=attrs, **more)


def averages():
    for decay in (0.999, 0.5, 0.0):
        for dtype in (np.float64, np.float32):
            a, x = (random(190 + k, (2, 3), dtype=dtype) for k in range(2))
            case("apply_ema", {"average": a, "var": x},
                 {"average": decay * a.astype(np.float64)
                  + (1 - decay) * x.astype(np.float64)},
                 attrs={"decay": decay},
                 **(F32 if dtype == np.float32 else {}))


def norms():
    for dtype in (np.float64, np.float32):
        for shapes in ([(5,)], [(2, 3), (), (4,), (0, 2)], [(1,)] * 15):
            xs = [random(200 + k, s, dtype=dtype)
                  for k, s in enumerate(shapes)]
            total = sum(float((x.astype(np.float64) ** 2).sum()) for x in xs)
            case("global_norm", {"xs": xs}, {"norm": np.sqrt(total)},
                 **(F32 if dtype == np.float32 else {}))


def onnx_case(op, names, ins, outs, attrs, test):
    case(op, ins, dict(zip(names, outs)), attrs=attrs,
         source=ONNX + test, **F32)


def onnx_momentum():
    """R 0.1, T 0: the gradient counts fully there, as it always does here."""
    f32 = np.float32
    lr = np.asarray(0.1, f32)
    two = (np.array([1.2, 2.8], f32), np.array([-0.94, -2.5], f32),
           np.array([1.7, 3.6], f32))
    one = (np.array([1.0], f32), np.array([-1.0], f32), np.array([2.0], f32))
    three = (np.array([1.0, 2.0], f32), np.array([-1.0, -3.0], f32),
             np.array([4.0, 1.0], f32))
    for (x, g, v), decay, nesterov, test in (
            (two, 0.001, False, "test_momentum"),
            (two, 0.01, True, "test_nesterov_momentum"),
            (one, 0.001, False, "test_momentum_multiple"),
            (three, 0.001, False, "test_momentum_multiple")):
        rule = op_momentum._apply_nesterov if nesterov \
            else op_momentum._apply_momentum
        onnx_case("apply_momentum", ["var", "accum"],
                  {"var": x, "accum": v, "grad": g, "lr": lr},
                  rule(lr, 0, x, g, v, decay, 0.95, 1.0),
                  {"momentum": 0.95, "nesterov": nesterov, "l2": decay}, test)


def onnx_adagrad():
    f32 = np.float32
    lr = np.asarray(0.1, f32)
    for x, g, h, test in (([1.0], [-1.0], [2.0], "test_adagrad"),
                          ([1.0, 2.0], [-1.0, -3.0], [4.0, 1.0],
                           "test_adagrad_multiple")):
        x, g, h = (np.array(a, f32) for a in (x, g, h))
        onnx_case("apply_adagrad", ["var", "accum"],
                  {"var": x, "accum": h, "grad": g, "lr": lr},
                  op_adagrad._apply_adagrad(lr, 0, x, g, h, 0.001, 1e-5, 0.1),
                  {"epsilon": 1e-5, "l2": 0.001}, test)


def onnx_adam():
    """T 0: no bias correction. Ours is none once beta^step is nothing."""
    f32 = np.float32
    lr, step = np.asarray(0.1, f32), np.asarray(100000, np.int64)
    tests = [("test_adam", [1.2, 2.8], [-0.94, -2.5], [1.7, 3.6], [0.1, 0.1],
              0.95, 0.1, 1e-7),
             ("test_adam_multiple", [1.0], [-1.0], [2.0], [0.5], 0.95, 0.85,
              1e-2),
             ("test_adam_multiple", [1.0, 2.0], [-1.0, -3.0], [4.0, 1.0],
              [1.0, 10.0], 0.95, 0.85, 1e-2)]
    for test, x, g, v, h, alpha, beta, epsilon in tests:
        x, g, v, h = (np.array(a, f32) for a in (x, g, v, h))
        onnx_case("apply_adam", ["var", "m", "v"],
                  {"var": x, "m": v, "v": h, "grad": g, "lr": lr,
                   "step": step},
                  op_adam._apply_adam(lr, 0, x, g, v, h, 0.001, 0.0, alpha,
                                      beta, epsilon),
                  {"beta1": alpha, "beta2": beta, "epsilon": epsilon,
                   "l2": 0.001}, test + ", T taken as very large")


def cases():
    sgd()
    momentum()
    adagrad()
    proximal()
    rms_prop()
    adam()
    adamw()
    averages()
    norms()
    onnx_momentum()
    onnx_adagrad()
    onnx_adam()
