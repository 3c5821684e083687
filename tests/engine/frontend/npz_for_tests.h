#pragma once

#include "engine/graph/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace planloom::testing_support {

/// The arrays of an uncompressed .npz whose members are little-endian and in C order, by name without ".npy".
/// Trusts its file: the reference values of the model set.
inline std::map<std::string, TensorData> readNpz(const std::filesystem::path &path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto number = [&](std::size_t at, std::size_t size) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + at, size);
        return static_cast<std::size_t>(value);
    };
    std::map<std::string, TensorData> arrays;
    // The central directory, found through the record at the end, has sizes even where local headers do not.
    const std::size_t end = bytes.rfind("PK\x05\x06");
    if (end == std::string::npos) {
        ADD_FAILURE() << path << " is no zip file";
        return arrays;
    }
    std::size_t at = number(end + 16, 4);
    for (std::size_t entry = 0; entry < number(end + 10, 2); ++entry) {
        const std::string name = bytes.substr(at + 46, number(at + 28, 2));
        const std::size_t local = number(at + 42, 4);
        const std::size_t begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        EXPECT_EQ(number(at + 10, 2), 0U) << name << " is compressed";
        at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);

        const bool wide = bytes[begin + 6] != 1; // format version 1.0 has a header length of two bytes
        const std::size_t headerAt = begin + (wide ? 12 : 10);
        const std::size_t headerSize = number(begin + 8, wide ? 4 : 2);
        const std::string header = bytes.substr(headerAt, headerSize);
        static const std::map<std::string, DataType> kTypes = {{"<f4", DataType::Float32},
            {"<f8", DataType::Float64}, {"<i8", DataType::Int64}, {"<i4", DataType::Int32},
            {"|b1", DataType::Bool}};
        const std::size_t descriptor = header.find("'descr': '") + 10;
        TensorData array;
        array.type.dataType = kTypes.at(header.substr(descriptor, 3));
        std::size_t extent = header.find('(') + 1;
        while (header[extent] != ')') {
            std::size_t used = 0;
            if (header[extent] >= '0' && header[extent] <= '9') {
                array.type.shape.push_back(std::stoll(header.substr(extent), &used));
                extent += used;
            } else {
                ++extent;
            }
        }
        const auto size =
            static_cast<std::size_t>(elementCount(array.type.shape) * sizeOf(array.type.dataType));
        array.bytes.resize(size);
        std::memcpy(array.bytes.data(), bytes.data() + headerAt + headerSize, size);
        arrays.emplace(name.substr(0, name.rfind(".npy")), std::move(array));
    }
    return arrays;
}

} // namespace planloom::testing_support
