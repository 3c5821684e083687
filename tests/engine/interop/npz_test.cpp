#include "engine/interop/npz.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

using namespace planloom;

namespace {

TensorData arrayOf(DataType type, const Shape &shape, std::uint32_t seed = 1)
{
    std::mt19937 random(seed);
    TensorData array{{type, shape}, {}};
    array.bytes.resize(static_cast<std::size_t>(elementCount(shape) * sizeOf(type)));
    for (std::byte &byte : array.bytes)
        byte = static_cast<std::byte>(type == DataType::Bool ? random() % 2 : random() % 256);
    return array;
}

std::vector<std::byte> bytesOf(std::string_view text)
{
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

/// A version 1 array with this header and content.
std::vector<std::byte> npy(std::string header, std::string_view content)
{
    header += '\n';
    std::string text{"\x93NUMPY\x01\x00", 8};
    text += static_cast<char>(header.size() & 0xFF);
    text += static_cast<char>(header.size() >> 8);
    return bytesOf(text + header + std::string{content});
}

void expectEqual(const TensorData &a, const TensorData &b)
{
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.bytes, b.bytes);
}

/// Temporary folder of one test.
class Folder
{
public:
    Folder()
    {
        const auto *info = testing::UnitTest::GetInstance()->current_test_info();
        m_path = std::filesystem::temp_directory_path() / (std::string{"planloom_"} + info->name());
        std::filesystem::remove_all(m_path);
        std::filesystem::create_directories(m_path);
    }
    ~Folder() { std::filesystem::remove_all(m_path); }
    std::string operator/(const std::string &name) const { return (m_path / name).string(); }

private:
    std::filesystem::path m_path;
};

} // namespace

TEST(Npy, EveryTypeAndRankSurvivesTheFormat)
{
    for (int t = 0; t <= static_cast<int>(DataType::Bool); ++t) {
        for (const Shape &shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{2, 1, 3, 2}}) {
            const TensorData array = arrayOf(static_cast<DataType>(t), shape);
            const auto read = parseNpy(formatNpy(array), "test");
            ASSERT_TRUE(read) << describe(read.error());
            expectEqual(*read, array);
        }
    }
}

TEST(Npy, ContentStartsAtAMultipleOf64)
{
    const TensorData array = arrayOf(DataType::Float32, {7});
    EXPECT_EQ((formatNpy(array).size() - array.bytes.size()) % 64, 0U);
}

TEST(Npy, FortranOrderIsTurnedIntoRowMajorOrder)
{
    const auto read = parseNpy(
        npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", {"\x00\x03\x01\x04\x02\x05", 6}),
        "test");
    ASSERT_TRUE(read) << describe(read.error());
    for (std::size_t i = 0; i < 6; ++i)
        EXPECT_EQ(std::to_integer<std::size_t>(read->bytes[i]), i);
}

TEST(Npy, KeysMayStandInAnyOrder)
{
    EXPECT_TRUE(parseNpy(npy("{\"shape\": (2,), 'fortran_order': False, 'descr': '|i1'}", "ab"), "test"));
}

TEST(Npy, DamagedHeadersAreRefused)
{
    const std::vector<std::string> headers{"", "{}", "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2)",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"};
    for (const std::string &header : headers)
        EXPECT_FALSE(parseNpy(npy(header, "abcd"), "test")) << header;
}

TEST(Npy, SizesThatDoNotMatchTheContentAreRefused)
{
    for (const char *shape :
        {"(2,)", "(0,)", "(1, 3)", "(4294967296, 4294967296)", "(9223372036854775807, 2)"}) {
        const auto read = parseNpy(
            npy(std::string{"{'descr': '<f4', 'fortran_order': False, 'shape': "} + shape + "}", "abcd"),
            "x");
        ASSERT_FALSE(read) << shape;
        EXPECT_EQ(read.error().code, ErrorCode::InvalidInput);
    }
    // No bytes are needed where an extent is 0, but extents must still have a product.
    EXPECT_FALSE(parseNpy(
        npy("{'descr': '|i1', 'fortran_order': False, 'shape': (99999999999, 99999999999, 0)}", ""), "x"));
    EXPECT_TRUE(
        parseNpy(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (99999999999, 0)}", ""), "x"));
}

TEST(Npy, TypesThatCannotBeReadAreNamed)
{
    for (const char *type : {">f4", "<u4", "|O", "<U3", "<c8", "", "f"}) {
        const auto read = parseNpy(
            npy(std::string{"{'descr': '"} + type + "', 'fortran_order': False, 'shape': (1,)}", "abcd"),
            "x");
        ASSERT_FALSE(read) << type;
        EXPECT_NE(read.error().message.find(type), std::string::npos);
    }
}

TEST(Npy, NoTruncationIsRead)
{
    const auto bytes = formatNpy(arrayOf(DataType::Int16, {3, 2}));
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(parseNpy(std::span{bytes}.first(length), "test")) << length;
}

TEST(Npz, ArraysSurviveTheArchive)
{
    const NamedArrays arrays{{"in.x", arrayOf(DataType::Float32, {2, 3})},
        {"a/b", arrayOf(DataType::Int64, {})}, {"empty", arrayOf(DataType::Bool, {0})}};
    const auto bytes = formatNpz(arrays);
    ASSERT_TRUE(bytes);
    const auto read = parseNpz(*bytes, "test");
    ASSERT_TRUE(read) << describe(read.error());
    ASSERT_EQ(read->size(), arrays.size());
    for (const auto &[name, array] : arrays)
        expectEqual(read->at(name), array);
}

TEST(Npz, NoTruncationIsRead)
{
    const auto bytes = formatNpz({{"x", arrayOf(DataType::Float32, {4})}});
    ASSERT_TRUE(bytes);
    for (std::size_t length = 0; length < bytes->size(); ++length)
        EXPECT_FALSE(parseNpz(std::span{*bytes}.first(length), "test")) << length;
}

TEST(Npz, DamageIsAnErrorOrHarmless)
{
    const auto bytes =
        formatNpz({{"x", arrayOf(DataType::Float32, {4})}, {"y", arrayOf(DataType::Int32, {2, 2})}});
    ASSERT_TRUE(bytes);
    std::mt19937 random(7);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        std::vector<std::byte> damaged = *bytes;
        for (unsigned k = 0; k <= random() % 3; ++k)
            damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        const auto read = parseNpz(damaged, "test");
        refused += read ? 0 : 1;
        if (!read)
            continue;
        for (const auto &[name, array] : *read) {
            EXPECT_EQ(static_cast<std::int64_t>(array.bytes.size()),
                elementCount(array.type.shape) * sizeOf(array.type.dataType));
        }
    }
    EXPECT_GT(refused, 10000);
}

TEST(Npz, ContentThatChangedFailsItsChecksum)
{
    const TensorData array = arrayOf(DataType::Float32, {16});
    auto bytes = formatNpz({{"x", array}});
    ASSERT_TRUE(bytes);
    const std::size_t inside =
        30 + 5 + formatNpy(array).size() - 3; // in the values: local header, name, array
    (*bytes)[inside] ^= std::byte{1};
    const auto read = parseNpz(*bytes, "test");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("checksum"), std::string::npos);
}

TEST(Npz, DeflatedMembersAreReadOrRefusedCleanly)
{
    const TensorData zeros{{DataType::UInt8, {8}}, std::vector<std::byte>(8)};
    // A deflate stream of one stored block: final block, no compression, length and its complement, the
    // bytes.
    const std::vector<std::byte> content = formatNpy(zeros);
    std::vector<std::byte> packed{std::byte{1}};
    const auto length = static_cast<std::uint16_t>(content.size());
    for (const std::uint16_t value : {length, static_cast<std::uint16_t>(~length)}) {
        packed.push_back(static_cast<std::byte>(value & 0xFF));
        packed.push_back(static_cast<std::byte>(value >> 8));
    }
    packed.insert(packed.end(), content.begin(), content.end());
    auto archive = formatNpz({{"x", zeros}});
    ASSERT_TRUE(archive);
    // Replace the stored member: local header (30 + 5 bytes of name), content, central header, end record.
    std::vector<std::byte> bytes(archive->begin(), archive->begin() + 35);
    bytes.insert(bytes.end(), packed.begin(), packed.end());
    const auto directory = static_cast<std::uint32_t>(bytes.size());
    bytes.insert(
        bytes.end(), archive->begin() + 35 + static_cast<std::ptrdiff_t>(content.size()), archive->end());
    const auto put = [&](std::size_t at, std::uint32_t value, int width) {
        for (int i = 0; i < width; ++i)
            bytes[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
    };
    put(directory + 10, 8, 2);
    put(directory + 20, static_cast<std::uint32_t>(packed.size()), 4);
    put(bytes.size() - 6, directory, 4);
    const auto read = parseNpz(bytes, "test");
    if (read)
        expectEqual(read->at("x"), zeros);
    else
        EXPECT_EQ(read.error().code, ErrorCode::NotSupported) << describe(read.error()); // built without zlib
    for (std::size_t i = 35; i < directory; ++i) {
        auto damaged = bytes;
        damaged[i] ^= std::byte{0x55};
        EXPECT_FALSE(parseNpz(damaged, "test")) << i;
    }
}

TEST(ReadInputs, TakesTheMembersThatArePrefixed)
{
    const Folder folder;
    const TensorData x = arrayOf(DataType::Float32, {2});
    ASSERT_TRUE(writeNpz(folder / "io.npz", {{"in.x", x}, {"out.loss", arrayOf(DataType::Float32, {})}}));
    const auto inputs = readInputs(folder / "io.npz");
    ASSERT_TRUE(inputs) << describe(inputs.error());
    ASSERT_EQ(inputs->size(), 1U);
    expectEqual(inputs->at("x"), x);
}

TEST(ReadInputs, TakesAFolder)
{
    const Folder folder;
    const TensorData x = arrayOf(DataType::Float32, {2});
    ASSERT_TRUE(writeNpy(folder / "x.npy", x));
    ASSERT_TRUE(writeNpy(folder / "gpu_0/data.npy", x));
    const auto inputs = readInputs(folder / "");
    ASSERT_TRUE(inputs) << describe(inputs.error());
    ASSERT_EQ(inputs->size(), 2U);
    expectEqual(inputs->at("x"), x);
    expectEqual(inputs->at("gpu_0/data"), x);
}

TEST(ReadInputs, SaysWhatIsMissing)
{
    const Folder folder;
    EXPECT_FALSE(readInputs(folder / "")); // nothing in it
    const auto missing = readInputs(folder / "none.npz");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
}
