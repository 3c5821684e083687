#include "engine/table/kinds/coshard.h"

namespace planloom {

Result<CoshardRule> RuleTraits<CoshardRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(auto read, parsePartsAlong(cursor));
    return CoshardRule{std::move(read.dimension), read.parts};
}

std::string RuleTraits<CoshardRule>::print(const CoshardRule &rule)
{
    return planloom::print(PartsAlong{rule.dimension, rule.parts});
}

void RuleTraits<CoshardRule>::write(const CoshardRule &rule, nlohmann::json &json)
{
    planloom::write(PartsAlong{rule.dimension, rule.parts}, json);
}

Result<CoshardRule> RuleTraits<CoshardRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY(auto read, partsAlongAt(json, where));
    return CoshardRule{std::move(read.dimension), read.parts};
}

} // namespace planloom
