#pragma once

#include "engine/graph/operators/catalogue.h"
#include "engine/hardware/nccl_model.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What all timings of kernels have.
struct Timing {
    DataType format = DataType::BFloat16;
    double seconds = 0;
    std::string where{}; ///< Its place in its file: "/matmul/17".
};

/// A product of a matrix of m x k and one of k x n. What is computed in 8 bits is rounded to them first, of
/// the first factor alone.
struct ProductTiming : Timing {
    MatrixProduct product{};
};

/// Causal attention, forward, with nothing before its sequence.
struct AttentionTiming : Timing {
    double batch = 1;
    double sequence = 1;
    double heads = 1;
    double keyHeads = 1;
    double width = 128;
};

/// The gated feed-forward of experts with as many tokens each: `chosen` of `experts` for each of `tokens`, on
/// one of `parts` devices that share the experts out.
struct GroupedTiming : Timing {
    double tokens = 1;
    double hidden = 1;
    double width = 1; ///< Of one expert's layer, as far as it is on the device.
    double chosen = 1;
    double experts = 1;
    double parts = 1;
};

/// Bytes as `collectiveSeconds` takes them.
struct CollectiveTiming : Timing {
    CollectiveKind kind = CollectiveKind::AllReduce;
    GroupShape shape{};
    Bytes bytes{};
};

/// Times of kernels that were measured on one kind of device.
struct KernelTimings {
    std::string device{}; ///< As the file calls it; empty where it does not.
    std::string source{}; ///< Of products, attention and experts.
    std::string collectiveSource{};
    std::vector<ProductTiming> products{};
    std::vector<AttentionTiming> attentions{};
    std::vector<GroupedTiming> experts{};
    std::vector<CollectiveTiming> collectives{};
    std::map<std::string, std::int32_t> unknown{}; ///< Rows by formats that Planloom does not have.
};

/// Reads `{"source": ..., "matmul_columns": [...], "matmul": [[...], ...], ...}`: rows of the sections
/// matmul, attention, moe and collective in the order of their columns, times in microseconds.
///
/// @param device  of which rows count; empty: the only one that the file has
/// @return InvalidInput with the JSON pointer of what is wrong: no number, none above 0, a shape that is no
/// shape, times of one shape that are more than twice as long as others; of several devices without
/// `device`, those there are
Result<KernelTimings> kernelTimings(std::string_view json, std::string_view device = {});

/// The devices that such a file has rows of, sorted; none where its rows name none.
Result<std::vector<std::string>> timedDevices(std::string_view json);

/// Adds what nccl-tests (all_reduce_perf ...) printed: tables of several runs one after the other. Their own
/// lines say which collective and which ranks; the file's name may say the collective, too. Times are those
/// out of place.
///
/// @param file  its name, for errors and for the kind of collective
/// @return InvalidInput with the line of what is wrong, then nothing was added: a table without ranks, wrong
/// sums, a bus bandwidth that does not follow from its time
Result<void> addNcclTests(KernelTimings &timings, std::string_view text, const std::string &file);

} // namespace planloom
