#include "widgets/dag/dag_query.h"

#include "engine/base/ids.h"
#include "engine/base/text.h"
#include "widgets/dag/dag_colours.h"

#include <QtCore/QRegularExpression>
#include <QtCore/QString>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostQueryDepth = 100;

class Parser
{
public:
    explicit Parser(std::string_view text)
        : m_text(text)
    {
    }

    Result<DagQuery> parse()
    {
        skip();
        if (m_place == m_text.size())
            return DagQuery{};
        TRY(auto query, either(0));
        if (m_place < m_text.size())
            return wrong("expected & or |, found \"" + std::string(m_text.substr(m_place, 12)) + "\"");
        return query;
    }

private:
    void skip()
    {
        while (m_place < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_place])) != 0)
            ++m_place;
    }
    bool take(char symbol)
    {
        skip();
        if (m_place >= m_text.size() || m_text[m_place] != symbol)
            return false;
        ++m_place;
        return true;
    }
    Error wrong(std::string message) const
    {
        return {ErrorCode::InvalidInput, std::move(message),
            "Examples: attention, kind:Linear & layer:0-3, bytes>64MiB, /fc[12]$/",
            "line:1:" + std::to_string(m_place + 1)};
    }

    Result<DagQuery> chain(DagQuery::Kind kind, char symbol, int depth)
    {
        const auto part = [&]() -> Result<DagQuery> {
            return kind == DagQuery::Kind::Or ? chain(DagQuery::Kind::And, '&', depth) : single(depth);
        };
        TRY(auto first, part());
        if (!take(symbol))
            return first;
        DagQuery joined;
        joined.kind = kind;
        joined.children.push_back(std::move(first));
        do {
            TRY(auto next, part());
            joined.children.push_back(std::move(next));
        } while (take(symbol));
        return joined;
    }
    Result<DagQuery> either(int depth) { return chain(DagQuery::Kind::Or, '|', depth); }

    Result<DagQuery> single(int depth)
    {
        if (depth > kMostQueryDepth)
            return wrong("too many brackets");
        if (take('!')) {
            TRY(auto inner, single(depth + 1));
            DagQuery query;
            query.kind = DagQuery::Kind::Not;
            query.children.push_back(std::move(inner));
            return query;
        }
        if (take('(')) {
            TRY(auto inner, either(depth + 1));
            if (!take(')'))
                return wrong("a bracket is not closed");
            return inner;
        }
        if (take('/'))
            return regex();
        return atom();
    }

    Result<DagQuery> regex()
    {
        std::string pattern;
        while (m_place < m_text.size() && m_text[m_place] != '/') {
            if (m_text[m_place] == '\\' && m_place + 1 < m_text.size() && m_text[m_place + 1] == '/')
                ++m_place;
            else if (m_text[m_place] == '\\' && m_place + 1 < m_text.size())
                pattern += m_text[m_place++];
            pattern += m_text[m_place++];
        }
        if (m_place == m_text.size())
            return wrong("the regular expression is not closed by /");
        ++m_place;
        const QRegularExpression compiled(QString::fromStdString(pattern));
        if (!compiled.isValid())
            return wrong("the regular expression is not valid: " + compiled.errorString().toStdString());
        DagQuery query;
        query.kind = DagQuery::Kind::Regex;
        query.text = std::move(pattern);
        return query;
    }

    /// Everything up to the next & | or closing bracket that is not in quotes or braces.
    std::string_view stretch()
    {
        skip();
        const std::size_t from = m_place;
        bool quoted = false;
        int braces = 0;
        for (; m_place < m_text.size(); ++m_place) {
            const char c = m_text[m_place];
            if (c == '\\' && m_place + 1 < m_text.size()) {
                ++m_place;
                continue;
            }
            if (c == '"')
                quoted = !quoted;
            if (quoted)
                continue;
            braces += c == '{' ? 1 : c == '}' ? -1 : 0;
            if (braces <= 0 && (c == '&' || c == '|' || c == ')'))
                break;
        }
        return trimmed(m_text.substr(from, m_place - from));
    }

    Result<DagQuery> atom()
    {
        const std::string_view text = stretch();
        if (text.empty())
            return wrong("expected a word, a selector or a comparison");
        TRY(auto comparison, compare(text));
        if (comparison)
            return *std::move(comparison);
        // A word stands for what contains it; with a colon or braces, or one of their keywords, it is a row's
        // selector.
        const bool keyword = text == "all" || text == "forward" || text == "backward" || text == "optimizer";
        if (keyword || text.find(':') != std::string_view::npos || text.find('{') != std::string_view::npos) {
            TRY(auto selector, parseSelector(text));
            DagQuery query;
            query.kind = DagQuery::Kind::Selected;
            query.selector = std::move(selector);
            return query;
        }
        DagQuery query;
        query.kind = DagQuery::Kind::Words;
        query.text = text;
        return query;
    }

    Result<std::optional<DagQuery>> compare(std::string_view text)
    {
        const auto sign = text.find_first_of("<>=");
        if (sign == std::string_view::npos || sign == 0)
            return std::optional<DagQuery>{};
        static constexpr std::array<std::pair<const char *, DagQuery::Field>, 5> kFields{
            {{"bytes", DagQuery::Field::Bytes}, {"time", DagQuery::Field::Time},
                {"device", DagQuery::Field::Device}, {"stage", DagQuery::Field::Stage},
                {"layer", DagQuery::Field::Layer}}};
        const auto name = trimmed(text.substr(0, sign));
        const auto field = std::find_if(
            kFields.begin(), kFields.end(), [&](const auto &each) { return name == each.first; });
        if (field == kFields.end())
            return wrong(
                "\"" + std::string(name) + "\" can't be compared; bytes, time, device, stage and layer can");
        DagQuery query;
        query.kind = DagQuery::Kind::Compare;
        query.field = field->second;
        const bool equal = sign + 1 < text.size() && text[sign + 1] == '=';
        query.relation = text[sign] == '=' ? DagQuery::Relation::Equal
            : text[sign] == '<' ? (equal ? DagQuery::Relation::LessEqual : DagQuery::Relation::Less)
                                : (equal ? DagQuery::Relation::GreaterEqual : DagQuery::Relation::Greater);
        TRY(query.value, number(trimmed(text.substr(sign + (equal ? 2 : 1))), query.field));
        return std::optional(std::move(query));
    }

    Result<double> number(std::string_view text, DagQuery::Field field)
    {
        double value = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        if (read.ec != std::errc{})
            return wrong("expected a number, found \"" + std::string(text) + "\"");
        const auto unit = trimmed(text.substr(static_cast<std::size_t>(read.ptr - text.data())));
        if (unit.empty())
            return value;
        struct Unit {
            const char *name;
            double factor;
        };
        static constexpr std::array<Unit, 8> kBytes{{{"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0},
            {"GiB", 1073741824.0}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}};
        static constexpr std::array<Unit, 5> kTimes{
            {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}}};
        const auto find = [&](const auto &units) -> double {
            for (const auto &each : units) {
                if (unit == each.name)
                    return each.factor;
            }
            return 0;
        };
        const double factor = field == DagQuery::Field::Bytes ? find(kBytes)
            : field == DagQuery::Field::Time                  ? find(kTimes)
                                                              : 0;
        if (factor == 0)
            return wrong("\"" + std::string(unit) + "\" is no unit here");
        return value * factor;
    }

    std::string_view m_text;
    std::size_t m_place = 0;
};

class Asking
{
public:
    using Marks = std::vector<char>;

    Asking(const DagQueryWorld &world, std::stop_token stop)
        : m_world(world)
        , m_graph(world.index->graph())
        , m_stop(std::move(stop))
    {
    }

    Marks marks(const DagQuery &query)
    {
        const std::size_t count = m_graph.operators.size();
        Marks result(count, 0);
        if (m_stop.stop_requested())
            return result;
        switch (query.kind) {
        case DagQuery::Kind::All:
            std::fill(result.begin(), result.end(), char{1});
            break;
        case DagQuery::Kind::Words:
            for (std::size_t i = 0; i < count; ++i)
                result[i] = containsLetters(m_graph.operators[i].name, query.text)
                    || containsLetters(nameOf(m_graph.operators[i].kind), query.text);
            break;
        case DagQuery::Kind::Regex: {
            const QRegularExpression pattern(
                QString::fromStdString(query.text), QRegularExpression::CaseInsensitiveOption);
            for (std::size_t i = 0; i < count && !m_stop.stop_requested(); ++i)
                result[i] = pattern.match(QString::fromStdString(m_graph.operators[i].name)).hasMatch();
            break;
        }
        case DagQuery::Kind::Compare:
            compare(query, result);
            break;
        case DagQuery::Kind::Selected:
            for (const auto op : m_world.index->select(query.selector))
                result[at(op.index)] = 1;
            break;
        case DagQuery::Kind::Not: {
            result = marks(query.children.front());
            for (auto &mark : result)
                mark = mark == 0 ? 1 : 0;
            break;
        }
        case DagQuery::Kind::And:
        case DagQuery::Kind::Or: {
            result = marks(query.children.front());
            for (std::size_t child = 1; child < query.children.size(); ++child) {
                const auto next = marks(query.children[child]);
                for (std::size_t i = 0; i < count; ++i)
                    result[i] = query.kind == DagQuery::Kind::And ? result[i] & next[i] : result[i] | next[i];
            }
            break;
        }
        }
        return result;
    }

private:
    static bool holds(double value, DagQuery::Relation relation, double bound)
    {
        switch (relation) {
        case DagQuery::Relation::Less:
            return value < bound;
        case DagQuery::Relation::LessEqual:
            return value <= bound;
        case DagQuery::Relation::Equal:
            return value >= bound && value <= bound;
        case DagQuery::Relation::GreaterEqual:
            return value >= bound;
        case DagQuery::Relation::Greater:
            return value > bound;
        }
        return false;
    }

    void compare(const DagQuery &query, Marks &result) const
    {
        const std::size_t count = m_graph.operators.size();
        const bool planned = m_world.plan && m_world.plan->decisions.size() == count;
        std::vector<double> values;
        if (query.field == DagQuery::Field::Bytes)
            values = valuesOf(m_graph, {}, ColourBy::Memory);
        else if (query.field == DagQuery::Field::Time)
            values = m_world.seconds;
        for (std::size_t i = 0; i < count; ++i) {
            switch (query.field) {
            case DagQuery::Field::Bytes:
            case DagQuery::Field::Time:
                result[i] = i < values.size() && holds(values[i], query.relation, query.value);
                break;
            case DagQuery::Field::Device:
                if (planned) {
                    const auto &devices = m_world.plan->decisions[i].devices;
                    result[i] = std::any_of(devices.begin(), devices.end(),
                        [&](DeviceId device) { return holds(device.index, query.relation, query.value); });
                }
                break;
            case DagQuery::Field::Stage:
                result[i] = planned && m_world.plan->decisions[i].stage.valid()
                    && holds(m_world.plan->decisions[i].stage.index, query.relation, query.value);
                break;
            case DagQuery::Field::Layer: {
                const auto layer = m_world.index->layerOf(OperatorId{static_cast<std::int32_t>(i)});
                result[i] = layer >= 0 && holds(layer, query.relation, query.value);
                break;
            }
            }
        }
    }

    const DagQueryWorld &m_world;
    const Graph &m_graph;
    std::stop_token m_stop;
};

} // namespace

Result<DagQuery> parseDagQuery(std::string_view text)
{
    return Parser(text).parse();
}

std::vector<OperatorId> askDagQuery(const DagQuery &query, const DagQueryWorld &world, std::stop_token stop)
{
    const auto marks = Asking(world, std::move(stop)).marks(query);
    std::vector<OperatorId> result;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (marks[i] != 0)
            result.push_back(OperatorId{static_cast<std::int32_t>(i)});
    }
    return result;
}

} // namespace planloom
