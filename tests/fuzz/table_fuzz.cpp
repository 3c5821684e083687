#include "engine/table/table_json.h"
#include "engine/table/table_text.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

/// Notes lose carriage returns in text.
bool hasCarriageReturn(const ConstraintTable &table)
{
    bool has = table.note.find('\r') != std::string::npos;
    for (const Row &row : table.rows)
        has = has || row.note.find('\r') != std::string::npos;
    return has;
}

} // namespace

/// Any bytes as a table in text and in JSON: no crash, and what was read prints and reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);

    const TableText text = readTable(bytes);
    const std::string printed = print(text.table);
    const auto again = parseTable(printed);
    require(again.has_value());
    require(print(*again) == printed);
    if (!hasCarriageReturn(text.table))
        require(*again == text.table);

    if (const auto table = tableFromJson(bytes)) {
        const std::string json = toJson(*table).dump();
        const auto reread = tableFromJson(std::string_view(json));
        require(reread.has_value());
        require(*reread == *table);
        if (!hasCarriageReturn(*table)) {
            const auto asText = parseTable(print(*table));
            require(asText.has_value());
            require(*asText == *table);
        }
    }
    return 0;
}
