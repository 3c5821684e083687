#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/batch_flow.h"
#include "engine/graph/dimensions/batch_input.h"
#include "engine/graph/graph.h"
#include "engine/graph/operators/mask.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// How a pTensor relates to the mini-batch when the step runs in micro-batches.
enum class BatchRole : std::uint8_t {
    Split, ///< Micro-batch i holds slice i of one dimension.
    Same, ///< Does not depend on the batch: equal in every micro-batch.
    Summand, ///< Each micro-batch makes one summand (the loss, weight gradients).
    Local, ///< Complete, but with a value of its own in every micro-batch (batch-norm statistics).
    Step, ///< Needed whole by what follows: computed once per step from the whole batch (counts of labels).
};

/// Which dimension of the model is the batch, found by following the inputs' (`batchInputOf`) through the
/// annotations. Independent of the number of micro-batches; positions are by tensor and operator index.
struct BatchInfo {
    std::int64_t size = 0; ///< Samples in a mini-batch; 0 if the model has no batch dimension.
    std::vector<BatchRole> tensorRole{};
    std::vector<std::int32_t> tensorDimension{}; ///< The dimension that is cut; -1 unless Split.
    std::vector<std::int32_t> operatorDimension{}; ///< Identifier of the annotation; -1 where none.
    /// Operators that run once per step, on the whole batch, before the first micro-batch (forward) or after
    /// the last (optimizer).
    std::vector<bool> oncePerStep{};
    /// Largest number of micro-batches possible; 1 if micro-batching would change the result.
    std::int64_t mostMicroBatches = 1;
    bool wholeBatches = false; ///< Every micro-batch is a whole batch of the model (`wholeBatchInfo`).
    std::string limitedBy{}; ///< The operator and reason behind `mostMicroBatches` where it is below `size`.
    /// Where micro-batches would change the result: the operators that need the whole batch. Those before and
    /// behind them have an `operatorDimension` all the same, along which partitions may cut.
    std::vector<BatchObstacle> obstacles{};
};

/// O(operators + tensors) per pass; one or two passes for most models. Works on forward graphs and on graphs
/// with their training step.
///
/// What depends on inputs alone but needs all of them (counts of labels) runs once per step. What is made
/// whole but used in slices (an Expand to the batch) is made in slices. An input that is as long as the batch
/// by chance (positions) is left uncut if the step only holds together without it and what is made of it is
/// no more work than one sample: pictures that a text picks from are samples. Where micro-batches would
/// change the result, `mostMicroBatches` is 1 and every role Same but that of the weights' gradients;
/// operators that can work on parts of the batch still have an `operatorDimension`, and `obstacles` has those
/// that cannot. Statistics of batch normalisation are Local, over the samples of one micro-batch, as in every
/// training framework.
BatchInfo analyseBatch(const Graph &graph);

/// Micro-batches that are whole batches of the model (gradient accumulation): nothing is cut, every
/// micro-batch feeds the inputs anew, what depends on them is Local, and the loss and its gradients are means
/// over the micro-batches: each micro-batch's backward pass begins with 1 / their number.
BatchInfo wholeBatchInfo(const Graph &graph);

/// Ranges per identifier that micro-batch `microBatch` of `microBatches` gives an operator: the outer ranges
/// of `partBox`. Empty (the whole operator) for operators without a batch identifier.
std::vector<Range> microBatchRanges(const BatchInfo &batch, const Graph &graph, OperatorId op,
    std::int32_t microBatch, std::int32_t microBatches);

} // namespace planloom
