#pragma once

#include "tests/engine/base/zip_for_tests.h"

#include <string>
#include <vector>

namespace planloom::testing_support {

/// A program of y = relu(x w) in the JSON of torch.export, [2 3] by [3 2], and its weight.
inline std::string linearProgram()
{
    const auto meta = [](const char *rows, const char *columns, const char *trained) {
        return std::string(R"({"dtype": 7, "sizes": [)") + rows + ", " + columns + R"(], "requires_grad": )"
            + trained + R"(, "strides": [{"as_int": )"
            + (std::string(columns).find('2') != std::string::npos ? "2" : "3")
            + R"(}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7})";
    };
    const std::string two = R"({"as_int": 2})";
    const std::string three = R"({"as_int": 3})";
    return R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}],
"outputs": [{"as_tensor": {"name": "y"}}],
"nodes": [{"target": "torch.ops.aten.mm.default", "inputs": [
{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
{"name": "mat2", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
"outputs": [{"as_tensor": {"name": "mm"}}],
"metadata": {"nn_module_stack": "L__self__,,M;L__self__fc,fc,Linear"}, "name": "mm"},
{"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "mm"}}}],
"outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}, "name": "relu"}],
"tensor_values": {"p_w": )"
        + meta(three.c_str(), two.c_str(), "true") + R"(, "x": )" + meta(two.c_str(), three.c_str(), "false")
        + R"(, "mm": )" + meta(two.c_str(), two.c_str(), "false") + R"(, "y": )"
        + meta(two.c_str(), two.c_str(), "false") + R"(},
"sym_int_values": {}, "sym_bool_values": {}},
"signature": {"input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.w"}},
{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
"output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]}, "module_call_graph": []},
"opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 14}})";
}

/// The list that says where the weight lies.
inline std::string linearWeights()
{
    return R"({"config": {"fc.w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta":
{"dtype": 7, "sizes": [{"as_int": 3}, {"as_int": 2}], "requires_grad": true,
"strides": [{"as_int": 2}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}}}})";
}

/// The entries of an archive as torch.export.save writes them.
inline std::vector<ZipMember> linearMembers()
{
    return {{"m/data/weights/weight_0", std::string(24, '\0')},
        {"m/data/weights/model_weights_config.json", linearWeights()},
        {"m/models/model.json", linearProgram()}, {"m/archive_format", "pt2"}, {"m/byteorder", "little"}};
}

} // namespace planloom::testing_support
