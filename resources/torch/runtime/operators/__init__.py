"""The operators that are not one function of torch's, and their gradients."""

from .attention import attention, attention_backward, rotary, rotary_backward
from .common import (assembled, cast, combined, derivative, derivatives, dropout, merge, placed, prelu, product, spread,
                     sum_to, value_part, weigh)
from .losses import (class_loss, class_loss_backward, class_statistics, class_statistics_backward, count_valid,
                     cross_entropy, cross_entropy_backward, nll, nll_backward)
from .movement import (depth_to_space, embedding, embedding_backward, extreme_backward, gather, gather_backward,
                       gather_elements, gather_elements_backward, gather_nd, gather_nd_backward, one_hot, padded, places, range_of,
                       running_sum, scatter_nd, scatter_nd_cleared, space_to_depth, top_k, wrapped)
from .norms import (batch_mean, batch_mean_backward, batch_normalize, batch_normalize_backward, batch_variance,
                    batch_variance_backward, instance_norm_backward, layer_norm_backward, rms_norm_backward)
from .optimizers import adamw, clip_factor, sgd, square_sum
from .products import (average_pool, conv, conv_input, conv_weight, linear_parts, lp_pool, max_pool)
from .recurrent import gru, lstm, recurrence_backward, rnn

__all__ = [
    "adamw", "assembled", "attention", "attention_backward", "average_pool", "batch_mean", "batch_mean_backward",
    "batch_normalize", "batch_normalize_backward", "batch_variance", "batch_variance_backward", "cast", "class_loss",
    "class_loss_backward", "class_statistics", "class_statistics_backward", "clip_factor", "combined", "conv", "conv_input",
    "conv_weight", "count_valid", "cross_entropy", "cross_entropy_backward", "depth_to_space", "derivative", "derivatives",
    "dropout", "embedding", "embedding_backward", "extreme_backward", "gather", "gather_backward", "gather_elements",
    "gather_elements_backward", "gather_nd", "gather_nd_backward", "gru", "instance_norm_backward", "layer_norm_backward",
    "linear_parts", "lp_pool", "lstm", "max_pool", "merge", "nll", "nll_backward", "one_hot", "padded", "placed", "places",
    "prelu", "product", "range_of", "recurrence_backward", "rms_norm_backward", "rnn", "rotary", "rotary_backward",
    "running_sum", "scatter_nd", "scatter_nd_cleared", "sgd", "space_to_depth", "spread", "square_sum", "sum_to", "top_k",
    "value_part", "weigh", "wrapped",
]
