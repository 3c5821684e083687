// Any bytes are refused with an error or imported as a valid graph: as an archive, and as the program's JSON
// in a sound one, where checksums would stop most of what fuzzing tries.

#include "engine/frontend/torch/import_pt2.h"

#include "tests/engine/frontend/pt2_for_tests.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

void open(const std::string &archive)
{
    planloom::ImportOptions options;
    options.mostFileBytes = std::size_t{1} << 20;
    options.mostFoldedBytes = std::size_t{1} << 20;
    options.mostOperators = 5'000;
    options.dimensions = {{"s0", 3}};
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto graph = planloom::importPt2Bytes(archive, options);
        const bool sound = graph
            ? static_cast<bool>(planloom::validate(*graph))
            : graph.error().code != planloom::ErrorCode::Internal && !graph.error().message.empty();
        if (!sound)
            std::abort();
        options.dimensions.clear(); // sizes that are not asked for are refused
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string bytes(reinterpret_cast<const char *>(data), size); // bytes as the importer takes them
    open(bytes);
    auto members = planloom::testing_support::linearMembers();
    members[2].content = bytes;
    open(planloom::testing_support::zipOf(members));
    members = planloom::testing_support::linearMembers();
    members[1].content = bytes;
    open(planloom::testing_support::zipOf(members));
    return 0;
}
