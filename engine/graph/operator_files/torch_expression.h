#pragma once

#include "engine/base/result.h"

#include <functional>
#include <string>
#include <string_view>

namespace planloom {

/// What an operator file says an operator is in PyTorch: a Python expression that an exported program will
/// run.
///
///     x * torch.sigmoid(beta * x) * scale
///     F.gelu(x, approximate='tanh')
///     torch.ops.my_ops.swish(x, beta)
///     torch.aminmax(x, dim=-1)            several outputs: a tuple
///
/// Files are strangers', so an expression computes and does nothing else: it is made of values by name,
/// numbers, `+ - * / // % ** @ & | ~`, comparisons, tuples, lists and subscripts; calls of `torch.f`,
/// `torch.special.f`, `torch.linalg.f`, `torch.fft.f`, `F.f` (torch.nn.functional), `torch.ops.library.f`,
/// and of methods of what these make. No name begins with an underscore; texts are values of few named
/// arguments (approximate, reduction, ..); what reads or writes files, or loads code, is not called, nor what
/// writes in place.
///
/// @param name  what stands for a value of the operator; nothing if it has no such value
/// @return the expression with its values' names replaced; InvalidInput saying what was found and expected,
/// with "position:N" as
///   `where`
Result<std::string> torchExpression(
    std::string_view text, const std::function<std::string(const std::string &)> &name);

} // namespace planloom
