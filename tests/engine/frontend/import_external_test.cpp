// Weights beside the model file.

#include "engine/frontend/onnx/import_onnx.h"

#include "tests/engine/frontend/onnx_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace planloom {
namespace {

using testing_support::OnnxFile;

/// The tensor "w" of the model that `ExternalWeights::import` makes.
const Tensor &weightOf(const Graph &graph)
{
    for (const Tensor &tensor : graph.tensors) {
        if (tensor.name == "w")
            return tensor;
    }
    ADD_FAILURE() << "no weight";
    return graph.tensors.front();
}

class ExternalWeights : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder = std::filesystem::temp_directory_path()
            / ("planloom_import_" + std::to_string(::getpid())
                + testing::UnitTest::GetInstance()->current_test_info()->name());
        std::filesystem::create_directories(m_folder / "model");
        const float values[] = {1, 2, 3, 4};
        std::ofstream(m_folder / "model" / "weights.bin", std::ios::binary)
            .write(reinterpret_cast<const char *>(values), sizeof values);
        std::ofstream(m_folder / "outside.bin", std::ios::binary)
            .write(reinterpret_cast<const char *>(values), sizeof values);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    Result<Graph> import(
        const std::string &location, const std::string &offset, const std::string &length) const
    {
        OnnxFile file;
        file.input("x", {2});
        auto *tensor = file.graph().add_initializer();
        tensor->set_name("w");
        tensor->set_data_type(OnnxFile::kFloat);
        tensor->add_dims(2);
        tensor->set_data_location(onnx::TensorProto::EXTERNAL);
        for (const auto &[key, value] :
            {std::pair("location", location), std::pair("offset", offset), std::pair("length", length)}) {
            if (value.empty())
                continue;
            auto *entry = tensor->add_external_data();
            entry->set_key(key);
            entry->set_value(value);
        }
        file.node("Mul", {"x", "w"}, {"y"});
        file.output("y");
        return importOnnxBytes(file.bytes(), m_folder / "model", {});
    }

    std::filesystem::path m_folder;
};

TEST_F(ExternalWeights, AreFoundAndReadLater)
{
    const auto graph = import("weights.bin", "8", "8");
    ASSERT_TRUE(graph) << describe(graph.error());
    const Tensor &weight = weightOf(*graph);
    EXPECT_EQ(weight.data, nullptr);
    ASSERT_TRUE(weight.external);
    EXPECT_TRUE(weight.external->present);
    const auto data = loadTensorData(weight);
    ASSERT_TRUE(data) << describe(data.error());
    float values[2] = {};
    std::memcpy(values, data->bytes.data(), sizeof values);
    EXPECT_EQ(values[0], 3);
    EXPECT_EQ(values[1], 4);
}

TEST_F(ExternalWeights, MayBeMissing)
{
    for (const auto &[location, offset] : {std::pair("absent.bin", "0"), std::pair("weights.bin", "12")}) {
        const auto graph = import(location, offset, "8");
        ASSERT_TRUE(graph) << describe(graph.error());
        EXPECT_FALSE(weightOf(*graph).external->present);
        EXPECT_FALSE(graph->notes.empty());
        const auto data = loadTensorData(weightOf(*graph));
        ASSERT_FALSE(data);
        EXPECT_NE(data.error().message.find("'w'"), std::string::npos);
    }
}

TEST_F(ExternalWeights, OutsideTheFolderAreRefused)
{
    std::filesystem::create_symlink(m_folder / "outside.bin", m_folder / "model" / "link.bin");
    std::filesystem::create_directory_symlink(m_folder, m_folder / "model" / "up");
    std::filesystem::create_symlink(m_folder / "nowhere.bin", m_folder / "model" / "dangling.bin");
    for (const std::string &location : {std::string("../outside.bin"), (m_folder / "outside.bin").string(),
             std::string("link.bin"), std::string("up/outside.bin"), std::string("a/../../outside.bin"),
             std::string("."), std::string(""), std::string("dangling.bin"), std::string("..\\outside.bin"),
             std::string("C:\\x"), std::string("w\0x", 3)}) {
        const auto graph = import(location, "0", "8");
        ASSERT_FALSE(graph) << location;
        EXPECT_EQ(graph.error().code, ErrorCode::InvalidInput) << location;
    }
}

TEST_F(ExternalWeights, WithImpossiblePlacesAreRefused)
{
    for (const auto &[offset, length] : {std::pair("-8", "8"), std::pair("0", "-8"), std::pair("0", "12"),
             std::pair("x", "8"), std::pair("9223372036854775807", "8"),
             std::pair("99999999999999999999999", "8"), std::pair("0", "8 ")}) {
        const auto graph = import("weights.bin", offset, length);
        ASSERT_FALSE(graph) << offset << " " << length;
        EXPECT_EQ(graph.error().code, ErrorCode::InvalidInput);
    }
}

} // namespace
} // namespace planloom
