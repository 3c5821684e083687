#include "engine/frontend/onnx/onnx_attributes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <type_traits>
#include <variant>

namespace planloom {

namespace {

/// The attributes of one operator, separated by ";". Behind a name may stand the operator sets that have it
/// ("@14.." or "@..10"), and behind "=" the values that are carried out; those behind "!" are refused.
struct Entry {
    const char *type;
    const char *attributes;
};

#define PLANLOOM_WINDOW                                                                                      \
    "auto_pad = NOTSET VALID SAME_UPPER SAME_LOWER; dilations; kernel_shape; pads; strides; "
#define PLANLOOM_REDUCTION "axes; keepdims = 0 1; noop_with_empty_axes = 0 1"
#define PLANLOOM_EXTREME "axis; keepdims = 0 1; select_last_index = 0 1"
#define PLANLOOM_LOSS "ignore_index; reduction = none sum mean"
#define PLANLOOM_SERIES "output_datatype = 1 10 11 ! 2 3 4 5 6 7 12 13 16; periodic = 0 1"
#define PLANLOOM_RECURRENT                                                                                   \
    "activation_alpha; activation_beta; activations = Affine Elu HardSigmoid LeakyRelu Relu ScaledTanh "     \
    "Sigmoid Softplus Softsign Tanh ThresholdedRelu; clip; direction = forward reverse bidirectional; "      \
    "hidden_size; layout = 0 1; "

// The order is that of the alphabet, as in resources/operators.txt, which a test makes from this.
constexpr Entry kEntries[] = {
    {"AffineGrid", "align_corners = 0 1"},
    {"ArgMax", PLANLOOM_EXTREME},
    {"ArgMin", PLANLOOM_EXTREME},
    {"Attention",
        "is_causal = 0 1; kv_num_heads; left_window_size; q_num_heads; qk_matmul_output_mode = 0 1 2 3; "
        "right_window_size; scale; softcap; softmax_precision = 1 11 ! 10 16"},
    {"AveragePool", PLANLOOM_WINDOW "ceil_mode = 0 1; count_include_pad = 0 1"},
    {"BatchNormalization", "epsilon; momentum; spatial = 0 1; training_mode @14.. = 0 1"},
    {"BitShift", "direction = LEFT RIGHT"},
    {"BlackmanWindow", PLANLOOM_SERIES},
    // How the numbers of 8 bits and less are made, which are refused as `to`.
    {"Cast",
        "round_mode = up down nearest; saturate = 0 1; "
        "to = 1 2 3 5 6 7 9 10 11 16 ! 4 8 12 13 14 15 17 18 19 20 21 22 23 24 25 26"},
    {"CastLike", "round_mode = up down nearest; saturate = 0 1"},
    {"Celu", "alpha"},
    {"CenterCropPad", "axes"},
    {"Clip", "max; min"},
    {"Col2Im", "dilations; pads; strides"},
    {"Compress", "axis"},
    {"Concat", "axis"},
    {"ConcatFromSequence", "axis; new_axis = 0 1"},
    {"Constant",
        "value; value_float; value_floats; value_int; value_ints; ! sparse_value; ! value_string; "
        "! value_strings"},
    {"ConstantOfShape", "value"},
    {"Conv", PLANLOOM_WINDOW "group"},
    {"ConvTranspose", PLANLOOM_WINDOW "group; output_padding; output_shape"},
    {"CumSum", "exclusive = 0 1; reverse = 0 1"},
    {"DepthToSpace", "blocksize; mode = DCR CRD"},
    {"DequantizeLinear", "axis; block_size; output_dtype = 0 1 10 16"},
    {"Dropout", "ratio @..11; seed"},
    {"Einsum", "equation"},
    {"Elu", "alpha"},
    {"EyeLike", "dtype = 1 6 7 9 10 11 ! 2 3 4 5 12 13 16; k"},
    {"Flatten", "axis"},
    {"GRU", PLANLOOM_RECURRENT "linear_before_reset = 0 1"},
    {"Gather", "axis"},
    {"GatherElements", "axis"},
    {"GatherND", "batch_dims"},
    {"Gelu", "approximate = none tanh"},
    {"Gemm", "alpha; beta; transA = 0 1; transB = 0 1"},
    {"GlobalLpPool", "p"},
    {"GridSample",
        "align_corners = 0 1; mode = linear nearest cubic bilinear bicubic; "
        "padding_mode = zeros border reflection"},
    {"GroupNormalization", "epsilon; num_groups; stash_type = 1 ! 10 11 16"},
    {"HammingWindow", PLANLOOM_SERIES},
    {"HannWindow", PLANLOOM_SERIES},
    {"HardSigmoid", "alpha; beta"},
    {"Hardmax", "axis"},
    {"If", "else_branch; then_branch"},
    {"InstanceNormalization", "epsilon"},
    {"IsInf", "detect_negative = 0 1; detect_positive = 0 1"},
    {"LRN", "alpha; beta; bias; size"},
    {"LSTM", PLANLOOM_RECURRENT "input_forget = 0 1"},
    {"LayerNormalization", "axis; epsilon; stash_type = 1 ! 10 11 16"},
    {"LeakyRelu", "alpha"},
    {"LogSoftmax", "axis"},
    {"Loop", "body"},
    {"LpNormalization", "axis; p = 1 2"},
    {"LpPool", PLANLOOM_WINDOW "ceil_mode = 0 1; p"},
    {"MaxPool", PLANLOOM_WINDOW "ceil_mode = 0 1; storage_order = 0 1"},
    {"MeanVarianceNormalization", "axes"},
    {"Mod", "fmod = 0 1"},
    {"NegativeLogLikelihoodLoss", PLANLOOM_LOSS},
    {"OneHot", "axis"},
    {"Pad", "mode = constant reflect edge wrap; pads; value @..10"},
    {"QuantizeLinear",
        "axis; block_size; output_dtype = 0 2 3 5 ! 4 17 18 19 20 21 22 23; precision = 0 1 10 16; "
        "saturate = 0 1"},
    {"RMSNormalization", "axis; epsilon; stash_type = 1 ! 10 11 16"},
    {"RNN", PLANLOOM_RECURRENT},
    {"ReduceL1", PLANLOOM_REDUCTION},
    {"ReduceL2", PLANLOOM_REDUCTION},
    {"ReduceLogSum", PLANLOOM_REDUCTION},
    {"ReduceLogSumExp", PLANLOOM_REDUCTION},
    {"ReduceMax", PLANLOOM_REDUCTION},
    {"ReduceMean", PLANLOOM_REDUCTION},
    {"ReduceMin", PLANLOOM_REDUCTION},
    {"ReduceProd", PLANLOOM_REDUCTION},
    {"ReduceSum", PLANLOOM_REDUCTION},
    {"ReduceSumSquare", PLANLOOM_REDUCTION},
    {"Reshape", "allowzero = 0 1"},
    {"Resize",
        "antialias = 0 1; axes; coordinate_transformation_mode = half_pixel half_pixel_symmetric "
        "pytorch_half_pixel align_corners asymmetric tf_crop_and_resize tf_half_pixel_for_nn; cubic_coeff_a; "
        "exclude_outside = 0 1; extrapolation_value; keep_aspect_ratio_policy = stretch not_larger "
        "not_smaller; mode = nearest linear cubic; nearest_mode = round_prefer_floor round_prefer_ceil floor "
        "ceil"},
    {"ReverseSequence", "batch_axis; time_axis"},
    {"RotaryEmbedding", "interleaved = 0 1; num_heads; rotary_embedding_dim"},
    {"Scan",
        "body; ! directions; num_scan_inputs; scan_input_axes; scan_input_directions = 0 1; "
        "scan_output_axes; scan_output_directions = 0 1"},
    {"Scatter", "axis"},
    {"ScatterElements", "axis; reduction = none add mul max min"},
    {"ScatterND", "reduction = none add mul max min"},
    {"Selu", "alpha; gamma"},
    {"SequenceEmpty", "dtype"},
    {"Shape", "end; start"},
    {"Shrink", "bias; lambd"},
    {"Slice", "axes; ends; starts"},
    {"Softmax", "axis"},
    {"SoftmaxCrossEntropyLoss", PLANLOOM_LOSS},
    {"SpaceToDepth", "blocksize"},
    {"Split", "axis; num_outputs; split"},
    {"SplitToSequence", "axis; keepdims = 0 1"},
    {"Squeeze", "axes"},
    {"Swish", "alpha"},
    {"TensorScatter", "axis; mode = linear circular"},
    {"ThresholdedRelu", "alpha"},
    {"TopK", "axis; k @..9; largest = 0 1; sorted = 0 1"},
    {"Transpose", "perm"},
    {"Trilu", "upper = 0 1"},
    {"Unsqueeze", "axes"},
    {"Upsample", "mode = nearest linear bilinear trilinear; scales"},
    {"com.microsoft.FusedMatMul", "alpha; transA = 0 1; transB = 0 1; transBatchA = 0 1; transBatchB = 0 1"},
    {"com.microsoft.GroupQueryAttention",
        "do_rotary = 0 1; k_quant_type = NONE; kv_cache_bit_width = 0; kv_num_heads; local_window_size; "
        "num_heads; qk_output = 0; rotary_interleaved = 0 1; scale; smooth_softmax = -1 0; softcap; "
        "v_quant_type = NONE"},
    {"com.microsoft.MultiHeadAttention", "mask_filter_value; num_heads; scale; unidirectional = 0 1"},
    {"com.microsoft.QuickGelu", "alpha"},
    {"com.microsoft.RotaryEmbedding",
        "interleaved = 0 1; is_packed_batching = 0; num_heads; rotary_embedding_dim; scale = 1"},
    {"com.microsoft.SimplifiedLayerNormalization", "axis; epsilon; stash_type = 1"},
    {"com.microsoft.SkipLayerNormalization", "epsilon"},
    {"com.microsoft.SkipSimplifiedLayerNormalization", "epsilon"},
};

OnnxAttributeRule parsedRule(const std::string &text)
{
    OnnxAttributeRule rule;
    std::istringstream words(text);
    bool refuses = false;
    for (std::string word; words >> word;) {
        if (word == "!") {
            refuses = true;
            rule.isRefused = rule.name.empty();
        } else if (rule.name.empty()) {
            rule.name = word;
        } else if (word.front() == '@') {
            const std::size_t dots = word.find("..");
            if (dots > 1)
                rule.since = std::atoll(word.c_str() + 1);
            if (dots + 2 < word.size())
                rule.until = std::atoll(word.c_str() + dots + 2);
        } else if (word != "=") {
            (refuses ? rule.refused : rule.taken).push_back(word);
        }
    }
    return rule;
}

using Rules = std::map<std::string, std::vector<OnnxAttributeRule>, std::less<>>;

Rules parsedRules()
{
    Rules rules;
    for (const Entry &entry : kEntries) {
        std::istringstream parts(entry.attributes);
        std::vector<OnnxAttributeRule> &own = rules[entry.type];
        for (std::string part; std::getline(parts, part, ';');) {
            if (part.find_first_not_of(' ') != std::string::npos)
                own.push_back(parsedRule(part));
        }
        std::sort(own.begin(), own.end(),
            [](const auto &left, const auto &right) { return left.name < right.name; });
    }
    return rules;
}

/// "a, b or c"
std::string listed(const std::vector<std::string> &names)
{
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i)
        list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    return list;
}

/// The values of an attribute as the table writes them; nothing of kinds that are never enumerated.
std::vector<std::string> valuesOf(const OnnxAttribute &attribute)
{
    std::vector<std::string> values;
    const auto add = [&values](const auto &value) {
        using Value = std::decay_t<decltype(value)>;
        std::ostringstream text;
        if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>)
            text << value;
        values.push_back(text.str());
    };
    std::visit(
        [&](const auto &value) {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>)
                add(value);
            else if constexpr (std::is_same_v<Value,
                                   std::vector<
                                       std::string>> || std::is_same_v<Value, std::vector<std::int64_t>>)
                std::for_each(value.begin(), value.end(), add);
        },
        attribute);
    return values;
}

} // namespace

const std::vector<OnnxAttributeRule> &onnxAttributeRules(std::string_view type)
{
    static const Rules kRules = parsedRules();
    static const std::vector<OnnxAttributeRule> kNone;
    const auto found = kRules.find(type);
    return found == kRules.end() ? kNone : found->second;
}

std::string attributeProblem(const OnnxNode &node, std::int64_t opset)
{
    const std::string type = node.domain.empty() ? node.type : node.domain + "." + node.type;
    const std::vector<OnnxAttributeRule> &rules = onnxAttributeRules(type);
    for (const auto &[name, attribute] : node.attributes) {
        const auto rule = std::find_if(
            rules.begin(), rules.end(), [&key = name](const auto &known) { return known.name == key; });
        const std::string has = "it has the attribute '" + name + "'";
        if (rule == rules.end()) {
            std::vector<std::string> names;
            for (const OnnxAttributeRule &known : rules) {
                if (!known.isRefused)
                    names.push_back(known.name);
            }
            return has + ", where "
                + (names.empty() ? std::string("none is known of this operator")
                                 : listed(names) + " was expected");
        }
        if (rule->isRefused)
            return has + ", which Planloom does not carry out";
        if (node.domain.empty() && (opset < rule->since || opset > rule->until))
            return has + ", which operator set " + std::to_string(opset) + " has not: "
                + (opset < rule->since ? "it begins with set " + std::to_string(rule->since)
                                       : "it ends with set " + std::to_string(rule->until));
        if (rule->taken.empty())
            continue;
        for (const std::string &value : valuesOf(attribute)) {
            if (std::find(rule->taken.begin(), rule->taken.end(), value) == rule->taken.end())
                return "attribute '" + name + "' is '" + value + "', where " + listed(rule->taken)
                    + " was expected";
        }
    }
    return {};
}

} // namespace planloom
