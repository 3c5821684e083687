"""Recurrences, as ONNX has them: LSTM, GRU, RNN. Without w, x is what w has made of it: [time, batch, directions, gates]."""

import torch

from .common import derivatives


def _walk(x, w, r, bias, lengths, states, direction, batch_first, step):
    """`step(gates of x, states, r, bias of states, direction)` makes the next states of those before, from each end that `direction`
    has. Sequences that have ended keep their states and make zeros."""
    if batch_first:
        x = x.transpose(0, 1)
        states = [None if each is None else each.transpose(0, 1) for each in states]
    directions, hidden = r.shape[0], r.shape[2]
    made, last = [], []
    for d in range(directions):
        gates = x[:, :, d] if w is None else x @ w[d].t()
        of_states = None
        if bias is not None:
            of_x, of_states = bias[d].view(2, -1)
            gates = gates + of_x
        now = [x.new_zeros(x.shape[1], hidden) if each is None else each[d] for each in states]
        outputs = [None] * x.shape[0]
        backwards = direction == "reverse" or d == 1
        for t in reversed(range(x.shape[0])) if backwards else range(x.shape[0]):
            then = step(gates[t], now, r[d], of_states, d)
            if lengths is None:
                now, outputs[t] = then, then[0]
            else:
                runs = (lengths > t).unsqueeze(1)
                now = [torch.where(runs, new, old) for new, old in zip(then, now)]
                outputs[t] = torch.where(runs, then[0], torch.zeros_like(then[0]))
        made.append(torch.stack(outputs))
        last.append(now)
    y, last = torch.stack(made, 1), [torch.stack(each) for each in zip(*last)]
    if batch_first:
        y, last = y.permute(2, 0, 1, 3), [each.transpose(0, 1) for each in last]
    return (y, *last)


def _added(product, bias):
    return product if bias is None else product + bias


def lstm(x, w, r, bias, lengths, h, c, peepholes, direction="forward", batch_first=False):
    def step(gates, states, r, of_states, d):
        state, cell = states
        i, o, f, g = (gates + _added(state @ r.t(), of_states)).chunk(4, -1)
        if peepholes is not None:
            of_i, of_o, of_f = peepholes[d].chunk(3)
            i, f = i + of_i * cell, f + of_f * cell
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        if peepholes is not None:
            o = o + of_o * cell
        return [torch.sigmoid(o) * torch.tanh(cell), cell]

    return _walk(x, w, r, bias, lengths, [h, c], direction, batch_first, step)


def gru(x, w, r, bias, lengths, h, direction="forward", batch_first=False, linear_before_reset=False):
    def step(gates, states, r, of_states, d):
        state, = states
        size = state.shape[-1]
        of_gates, of_new = (None, None) if of_states is None else (of_states[:2 * size], of_states[2 * size:])
        z, reset = torch.sigmoid(gates[:, :2 * size] + _added(state @ r[:2 * size].t(), of_gates)).chunk(2, -1)
        if linear_before_reset:
            own = reset * _added(state @ r[2 * size:].t(), of_new)
        else:
            own = _added((reset * state) @ r[2 * size:].t(), of_new)
        return [(1 - z) * torch.tanh(gates[:, 2 * size:] + own) + z * state]

    return _walk(x, w, r, bias, lengths, [h], direction, batch_first, step)


def rnn(x, w, r, bias, lengths, h, direction="forward", batch_first=False):
    def step(gates, states, r, of_states, d):
        return [torch.tanh(gates + _added(states[0] @ r.t(), of_states))]

    return _walk(x, w, r, bias, lengths, [h], direction, batch_first, step)


def recurrence_backward(function, dy, inputs, mask, **options):
    """Gradients by slot."""
    wanted = list(mask) + [False] * (len(inputs) - len(mask))
    return derivatives(lambda *each: function(*each, **options), dy, inputs, wanted)[:len(mask)]
