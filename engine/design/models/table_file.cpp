#include "engine/design/models/table_file.h"

#include "engine/base/files.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"

#include <string_view>
#include <utility>

namespace planloom {

Result<TableDocument> readTableFile(const std::string &path)
{
    TRY(const auto text, readFile(path, {.pipes = true}));
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const auto within = [&path](Error error) {
        error.where = path + ":" + error.where;
        return error;
    };
    if (first != std::string::npos && text[first] == '{') {
        auto table = tableFromJson(std::string_view(text));
        if (!table)
            return within(std::move(table).error());
        return TableDocument(print(*table));
    }
    TableDocument document(text);
    if (const auto errors = document.errors(); !errors.empty())
        return within(errors.front());
    return document;
}

} // namespace planloom
