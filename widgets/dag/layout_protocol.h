#pragma once

#include "engine/base/result.h"
#include "engine/layered/layered_layout.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// What the window and planloom-layout say to each other, in lines of text. A request:
//     layout <id> <nodes> <edges> <node gap> <rank gap>
//     n <width> <height> <pin: 0 none, 1 first, 2 last>      for each node
//     e <from> <to>                                          for each edge
// and its answer, one of:
//     done <id> <nodes>, then for each node: p <x> <y>       centres, y downwards
//     failed <id> <reason>

/// A graph to lay out and the number its answer will carry.
struct LayoutRequest {
    std::int64_t id = 0;
    LayeredGraph graph{};
};

/// Where boxes stand, or why they don't.
struct LayoutAnswer {
    std::int64_t id = 0;
    std::vector<LayoutPoint> centres{};
    std::string failure{}; ///< Empty if done.
};

std::string encode(const LayoutRequest &request);
std::string encode(const LayoutAnswer &answer);

/// Collects bytes of the other side and cuts them into messages. After an error it stays in error: the two
/// sides no longer understand each other.
class LayoutReader
{
public:
    static constexpr std::size_t kMostNodes = 100'000;
    static constexpr std::size_t kMostEdges = 1'000'000;

    void append(std::string_view bytes) { m_buffer.append(bytes); }
    /// The next request; `found` is false while it is not complete. InvalidInput for what is no request.
    Result<LayoutRequest> nextRequest(bool &found);
    /// The next answer, likewise.
    Result<LayoutAnswer> nextAnswer(bool &found);

private:
    /// Lines [from, from + count) of the buffer, if they are all there.
    bool hasLines(std::size_t count) const;
    std::vector<std::string_view> lines(std::size_t count, std::size_t &length) const;

    std::string m_buffer;
};

} // namespace planloom
