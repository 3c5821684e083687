#pragma once

#include "tests/engine/frontend/onnx_file.h"

#include <string>

namespace planloom::testing_support {

/// x [8 4 6] through two products with an operator of a file between them, and a loss.
inline std::string modelWith(const std::string &type, bool withBeta = true)
{
    OnnxFile file;
    file.input("x", {8, 4, 6})
        .weight("fc1.weight", {6, 8})
        .weight("act.scale", {8})
        .weight("fc2.weight", {8, 6});
    file.node("MatMul", {"x", "fc1.weight"}, {"a"}, "/fc1/MatMul");
    auto swish = file.node(type, {"a", "act.scale"}, {"s"}, "/act/Swish");
    swish.proto->set_domain("test.ops");
    if (withBeta)
        swish.set("beta", 1.5F);
    file.node("MatMul", {"s", "fc2.weight"}, {"l"}, "/fc2/MatMul");
    file.node("Mul", {"l", "l"}, {"q"}, "/square/Mul");
    file.node("ReduceMean", {"q"}, {"loss"}, "/loss/Mean").set("keepdims", 0);
    file.output("loss");
    auto *set = file.model.add_opset_import();
    set->set_domain("test.ops");
    set->set_version(1);
    return file.bytes();
}

} // namespace planloom::testing_support
