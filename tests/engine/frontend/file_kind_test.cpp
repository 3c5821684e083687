#include "engine/frontend/file_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {
namespace {

using namespace std::string_literals;

TEST(FileKind, IsToldByContent)
{
    const std::pair<std::string, FileKind> cases[] = {
        {"SQLite format 3\0 and pages"s, FileKind::Session},
        {"\x93NUMPY\x01\0v"s, FileKind::Npy},
        {"PK\x03\x04\x14\0\0\0\0\0"s + std::string(20, '\0') + "fc1.npyx", FileKind::Npz},
        {"PK\x03\x04\x14\0\0\0\0\0"s + std::string(20, '\0') + "archive/data.pkl", FileKind::Archive},
        {"PK\x03\x04\x14\0\0\0\0\0"s + std::string(20, '\0') + "m/models/m.json m/archive_format",
            FileKind::ExportedProgram},
        {"PK\x03\x04\x14\0\0\0\0\0"s + std::string(20, '\0') + "serialized_exported_program.json",
            FileKind::ExportedProgram},
        {"\x89HDF\r\n\x1a\n", FileKind::Hdf5},
        {"\x1f\x8b\x08\0"s, FileKind::Compressed},
        {"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}"s, FileKind::Safetensors},
        // Members come by name: the format stands behind all programs.
        {"{\"devices\":[" + std::string(100'000, ' ') + "],\"format\":\"planloom-execution-plan\"}",
            FileKind::ExecutionPlan},
        {"{\"format\": \"planloom-table\", \"rows\": []}", FileKind::Table},
        {"\xef\xbb\xbf\n{\"format\": \"planloom-cluster\"}", FileKind::Cluster},
        {"{\"traceEvents\": [", FileKind::Trace},
        {"[1, 2]", FileKind::Json},
        {"# a remark\n\n  off prefer 3 place all : devices 0\n", FileKind::Rows},
        {"mesh dp=2\r\n", FileKind::Rows},
        {"# A heading\nand what it is about\n", FileKind::Text},
        {"placement is a matter of taste", FileKind::Text},
        {"\xc3\x84nderungen\n", FileKind::Text},
    };
    for (const auto &[bytes, kind] : cases) {
        const auto found = findFileKind(bytes);
        ASSERT_TRUE(found) << bytes.substr(0, 40);
        EXPECT_STREQ(nameOf(*found), nameOf(kind)) << bytes.substr(0, 40);
        EXPECT_EQ(*found, kind) << bytes.substr(0, 40);
        EXPECT_STRNE(adviceFor(kind), "");
    }
}

TEST(FileKind, IsLeftOpenWhereTheBytesTellNothing)
{
    for (const std::string &bytes :
        {""s, "\n \t\n"s, "\0\0\0\0"s, "\xff\xff\x01"s, "\x89PNG\r\n\x1a\n\0"s, "\x08"s})
        EXPECT_FALSE(findFileKind(bytes)) << bytes;
}

TEST(FileKind, AModelIsTakenForOneOnlyWhileItIsWhole)
{
    const std::string model = "\x08\x07\x12\x01x"s; // ir_version 7, producer "x"
    EXPECT_EQ(findFileKind(model), FileKind::OnnxModel);
    EXPECT_FALSE(findFileKind(model.substr(0, 4)));
}

} // namespace
} // namespace planloom
