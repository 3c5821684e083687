#include "engine/interop/safetensors.h"

#include "engine/interop/npy.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planloom {
namespace {

std::span<const std::byte> bytesOf(const std::string &text)
{
    return std::as_bytes(std::span{text});
}

/// A file of this header and these bytes behind it.
std::string withHeader(const std::string &header, const std::string &content)
{
    std::string text;
    for (std::size_t i = 0; i < 8; ++i)
        text += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
    return text + header + content;
}

class Safetensors : public testing::Test
{
protected:
    Result<SafetensorsFile> opened(const std::string &content)
    {
        EXPECT_TRUE(writeBytes(path, bytesOf(content)));
        return SafetensorsFile::open(path);
    }
    std::string messageOf(const std::string &content)
    {
        const auto file = opened(content);
        return file ? "opened" : file.error().message;
    }

    TemporaryFolder folder{};
    std::string path = folder.at("file.safetensors");
};

TEST_F(Safetensors, SeveralWritersFillOneFile)
{
    EXPECT_EQ(SafetensorsWriter::join(path).error().code, ErrorCode::NotFound); // nobody makes it
    auto first = SafetensorsWriter::create(
        path, {{"a", {DataType::UInt8, {4}}}, {"b", {DataType::Float32, {2}}}}, {{"step", "7"}});
    ASSERT_TRUE(first) << describe(first.error());
    {
        auto second = SafetensorsWriter::join(path);
        ASSERT_TRUE(second) << describe(second.error());
        ASSERT_TRUE(second->write("b", 0, bytesOf("ijklmnop")));
        ASSERT_TRUE(second->write("a", 2, bytesOf("cd")));
        EXPECT_FALSE(second->write("a", 3, bytesOf("xy"))); // beyond its end
    } // leaves the file as it is
    ASSERT_TRUE(first->write("a", 0, bytesOf("ab")));
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(first->commit());
    const auto file = SafetensorsFile::open(path);
    ASSERT_TRUE(file) << describe(file.error());
    for (const auto &[name, content] : {std::pair{"a", "abcd"}, {"b", "ijklmnop"}}) {
        std::string found(std::strlen(content), ' ');
        ASSERT_TRUE(file->read(file->tensors().at(name), 0, std::as_writable_bytes(std::span{found})));
        EXPECT_EQ(found, content);
    }
}

TEST_F(Safetensors, WhatIsWrittenInPiecesIsReadInPieces)
{
    auto writer = SafetensorsWriter::create(path,
        {{"w", {DataType::Float32, {2, 3}}}, {"steps", {DataType::Int64, {}}},
            {"none", {DataType::BFloat16, {0, 4}}}, {"mask", {DataType::Bool, {3}}}},
        {{"step", "7"}});
    ASSERT_TRUE(writer) << describe(writer.error());
    EXPECT_FALSE(std::filesystem::exists(path)); // until it is whole
    ASSERT_TRUE(writer->write("w", 8, bytesOf("ijklmnopqrstuvwx")));
    ASSERT_TRUE(writer->write("w", 0, bytesOf("abcdefgh")));
    ASSERT_TRUE(writer->write("steps", 0, bytesOf("12345678")));
    ASSERT_TRUE(writer->write("mask", 0, bytesOf("xyz")));
    EXPECT_FALSE(writer->write("mask", 1, bytesOf("xyz")));
    EXPECT_FALSE(writer->write("other", 0, bytesOf("x")));
    ASSERT_TRUE(writer->commit());

    const auto file = SafetensorsFile::open(path);
    ASSERT_TRUE(file) << describe(file.error());
    EXPECT_EQ(file->metadata(), (SafetensorsMetadata{{"step", "7"}}));
    ASSERT_EQ(file->tensors().size(), 4U);
    EXPECT_EQ(file->tensors().at("none").type, (TensorType{DataType::BFloat16, {0, 4}}));
    std::string read(10, ' ');
    ASSERT_TRUE(file->read(file->tensors().at("w"), 5, std::as_writable_bytes(std::span{read})));
    EXPECT_EQ(read, "fghijklmno");
    EXPECT_FALSE(file->read(file->tensors().at("w"), 15, std::as_writable_bytes(std::span{read})));
}

TEST_F(Safetensors, AWriterThatIsDroppedLeavesTheOldFile)
{
    ASSERT_TRUE(writeBytes(path, bytesOf("older")));
    {
        const auto writer = SafetensorsWriter::create(path, {{"w", {DataType::Float32, {4}}}}, {});
        ASSERT_TRUE(writer) << describe(writer.error());
    }
    const auto left = readBytes(path);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->size(), 5U);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 1);
}

TEST_F(Safetensors, WhatCannotBeWrittenSaysSo)
{
    ASSERT_TRUE(writeBytes(path, bytesOf("a file")));
    const auto writer = SafetensorsWriter::create(path + "/below.safetensors", {}, {});
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, ErrorCode::Io);
    const auto huge = SafetensorsWriter::create(
        folder.at("huge"), {{"w", {DataType::Float32, {std::int64_t{1} << 50}}}}, {});
    ASSERT_FALSE(huge); // the room is asked for first
    EXPECT_EQ(huge.error().code, ErrorCode::Io);
    EXPECT_FALSE(std::filesystem::exists(folder.at("huge.part")));
}

TEST_F(Safetensors, DamagedFilesAreRefusedWithTheReason)
{
    const auto one = [](const std::string &dtype, const std::string &shape, const std::string &offsets) {
        return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets
            + "}}";
    };
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[0,8]"), "12345678")), "opened");
    EXPECT_EQ(messageOf("1234"), "expected a safetensors file, found 4 bytes");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[0,8]"), "12345678").substr(0, 30)),
        "expected a safetensors file: its first eight bytes ask for a header of 54 bytes, the file has 22");
    EXPECT_EQ(messageOf(std::string(8, '\xFF') + "{}"),
        "expected a safetensors file: its first eight bytes ask for a header of 18446744073709551615 bytes, "
        "the file has 2");
    EXPECT_EQ(messageOf(withHeader("[1]", "")), "the header is no JSON object");
    EXPECT_EQ(messageOf(withHeader("{\"w\":", "")), "the header is no JSON object");
    EXPECT_EQ(messageOf(withHeader(std::string(100'000, '['), "")), "the header is nested too deeply");
    EXPECT_EQ(messageOf(withHeader(R"({"w":[]})", "")), "expected dtype, shape and data_offsets of a tensor");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[-2]", "[0,8]"), "12345678")),
        "expected dtype, shape and data_offsets of a tensor");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2.5]", "[0,8]"), "12345678")),
        "expected dtype, shape and data_offsets of a tensor");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[0,8,9]"), "12345678")),
        "expected dtype, shape and data_offsets of a tensor");
    EXPECT_EQ(messageOf(withHeader(one("C64", "[1]", "[0,8]"), "12345678")),
        "elements of type \"C64\" cannot be read");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[3]", "[0,8]"), "12345678")),
        "float32 [3] takes 12 bytes, the file has 8");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[8,0]"), "12345678")),
        "bytes 8 to 0 are not in the file, which has 8");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[4,12]"), "12345678")),
        "bytes 4 to 12 are not in the file, which has 8");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[4294967296,4294967296]", "[0,8]"), "12345678")),
        "the shape has more elements than can be counted");
    EXPECT_EQ(messageOf(withHeader(one("F32", "[2]", "[0,8]"), "1234567890")),
        "2 bytes at the end of the file belong to no tensor");
    const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
    EXPECT_EQ(
        messageOf(withHeader("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", "123456")),
        "its bytes are another tensor's, too");
    EXPECT_EQ(messageOf(withHeader(
                  "{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})", "1234567890")),
        "bytes before it belong to no tensor");
}

TEST_F(Safetensors, AnyBytesAreReadOrRefused)
{
    const std::string whole = withHeader(
        R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
    std::mt19937 random{5};
    for (int i = 0; i < 500; ++i) {
        std::string text = whole;
        for (std::uint32_t hits = random() % 4; hits-- > 0;)
            text[random() % text.size()] = static_cast<char>(random());
        text.resize(text.size() - random() % 3);
        const auto file = opened(text);
        if (!file)
            continue;
        for (const auto &[name, entry] : file->tensors()) {
            std::vector<std::byte> bytes(entry.bytes);
            EXPECT_TRUE(file->read(entry, 0, bytes));
        }
    }
}

} // namespace
} // namespace planloom
