#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/onnx/onnx_metadata.h"
#include "tests/engine/frontend/onnx_file.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace planloom::testing_support {

constexpr int kNodeField = 9; // `metadata_props` in the messages of onnx.proto, IR version 10
constexpr int kValueField = 4;
constexpr int kGraphField = 16;

/// Adds an entry of `metadata_props`, also where this version of ONNX's classes does not know the field.
inline void addMetadata(
    google::protobuf::Message &message, int field, std::string_view key, const std::string &value)
{
    onnx::StringStringEntryProto entry;
    entry.set_key(std::string(key));
    entry.set_value(value);
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
        field, entry.SerializeAsString());
}

inline void describeValue(
    OnnxFile &file, const std::string &name, std::string_view key, const std::string &value)
{
    auto *info = file.graph().add_value_info();
    info->set_name(name);
    addMetadata(*info, kValueField, key, value);
}

inline void describeNode(OnnxFile::Node node, const std::string &scopes)
{
    addMetadata(*node.proto, kNodeField, kNameScopesKey, scopes);
}

inline Graph importedWhole(const OnnxFile &file, ImportOptions options = {})
{
    auto graph = importOnnxBytes(file.bytes(), {}, options);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? *std::move(graph) : Graph{};
}

inline const Tensor &tensorNamed(const Graph &graph, const std::string &name)
{
    static const Tensor kNone;
    for (const Tensor &tensor : graph.tensors) {
        if (tensor.name == name)
            return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return kNone;
}

} // namespace planloom::testing_support
