#include "engine/table/layer_layout.h"

#include "engine/base/text.h"
#include "engine/base/words.h"

#include <algorithm>
#include <map>
#include <string>

namespace planloom {

namespace {

constexpr std::size_t kMostSymbols = std::size_t{1} << 16; ///< Of a layout without repetitions.
constexpr std::int64_t kMostRepeats = 4096;
constexpr int kMostNested = 8; ///< Brackets.

Error wrongLayout(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "layout"};
}

/// A symbol of the notation, and where it stands in the text.
struct LayoutSymbol {
    char symbol = '|';
    std::size_t place = 0; ///< From 0.
};

/// Writes repetitions out.
class LayoutReader
{
public:
    explicit LayoutReader(std::string_view text)
        : m_text(text)
    {
    }

    Result<std::vector<LayoutSymbol>> read()
    {
        TRY(auto symbols, readItems(0));
        return m_at == m_text.size() ? Result(std::move(symbols))
                                     : Result<std::vector<LayoutSymbol>>(found());
    }

private:
    Error found() const
    {
        const std::string what = m_at < m_text.size() ? std::string("'") + m_text[m_at] + "'" : "its end";
        return wrongLayout("expected E, t, m, L, '|' or '(' at place " + std::to_string(m_at + 1)
                + " of the layout, found " + what,
            "write it as Et*4|(t*4|)*14tmL");
    }

    /// "*4"; 1 where nothing is repeated.
    Result<std::int64_t> readTimes()
    {
        skip();
        if (m_at == m_text.size() || m_text[m_at] != '*')
            return std::int64_t{1};
        const std::size_t begin = ++m_at;
        std::int64_t times = 0;
        while (m_at < m_text.size() && isDigit(m_text[m_at]) && times <= kMostRepeats)
            times = times * 10 + (m_text[m_at++] - '0');
        if (m_at == begin || times < 1 || times > kMostRepeats)
            return wrongLayout("expected a number from 1 to " + std::to_string(kMostRepeats) + " at place "
                + std::to_string(begin + 1) + " of the layout, found '"
                + std::string(m_text.substr(begin, std::min<std::size_t>(m_text.size() - begin, 8))) + "'");
        return times;
    }

    void skip()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == ','))
            ++m_at;
    }

    Result<std::vector<LayoutSymbol>> readItems(int depth)
    {
        std::vector<LayoutSymbol> symbols;
        for (skip(); m_at < m_text.size() && m_text[m_at] != ')'; skip()) {
            std::vector<LayoutSymbol> item{{m_text[m_at], m_at}};
            if (m_text[m_at] == '(' && depth < kMostNested) {
                ++m_at;
                TRY(item, readItems(depth + 1));
                if (m_at == m_text.size())
                    return wrongLayout("expected ')' at the end of the layout, found nothing");
            } else if (std::string_view("EtmL|").find(m_text[m_at]) == std::string_view::npos) {
                return found();
            }
            const bool isEnd = m_text[m_at++] == '|';
            TRY(const std::int64_t times, isEnd ? Result<std::int64_t>(1) : readTimes());
            if (symbols.size() + item.size() * static_cast<std::size_t>(times) > kMostSymbols)
                return wrongLayout("expected at most " + std::to_string(kMostSymbols)
                    + " layers and stages in a layout, found more");
            for (std::int64_t i = 0; i < times; ++i)
                symbols.insert(symbols.end(), item.begin(), item.end());
        }
        return symbols;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

/// Layers and MTP layers of the model, in the order of the data flow; and what is outside of them.
class LayoutElements
{
public:
    explicit LayoutElements(const SelectorIndex &index)
        : m_index(index)
        , m_element(index.graph().operators.size(), kOutside)
    {
        findLayers();
        findModules();
    }

    std::int32_t layers() const { return m_layers; }
    std::int32_t modules() const { return m_modules; }
    /// By forward operator: 0 for the embedding, then the layers, the MTP layers, and the loss.
    std::vector<std::int32_t> find();

private:
    static constexpr std::int32_t kOutside = -1;

    /// The number of the module of `mtp` that a path lies in; -1 for others.
    static std::int32_t moduleOf(std::string_view path);
    void findLayers();
    void findModules();
    std::int32_t firstReader(const Operator &op) const;
    template<typename Visit> void forEachMaker(const Operator &op, Visit visit) const
    {
        for (const TensorId input : op.inputs)
            if (input)
                for (const OperatorId maker : m_index.uses().producers[at(input)])
                    visit(at(maker));
    }

    const SelectorIndex &m_index;
    std::vector<std::int32_t> m_element{};
    std::int32_t m_layers = 0;
    std::int32_t m_modules = 0;
};

std::int32_t LayoutElements::moduleOf(std::string_view path)
{
    constexpr std::string_view kName = "mtp.";
    for (std::size_t begin = path.find(kName); begin != std::string_view::npos;
         begin = path.find(kName, begin + 1)) {
        if (begin > 0 && path[begin - 1] != '.')
            continue;
        std::int32_t number = 0;
        std::size_t end = begin + kName.size();
        const std::size_t first = end;
        for (; end < path.size() && isDigit(path[end]) && number < 1000; ++end)
            number = number * 10 + (path[end] - '0');
        if (end > first && (end == path.size() || path[end] == '.'))
            return number;
    }
    return -1;
}

void LayoutElements::findLayers()
{
    std::vector<std::int32_t> numbers; // by layer of the model; -1 in a module of `mtp`
    for (const ScopeId scope : m_index.layers().scopes)
        numbers.push_back(moduleOf(m_index.pathOf(scope)) < 0 ? m_layers++ : -1);
    for (std::size_t i = 0; i < m_index.forwardCount(); ++i)
        if (const std::int32_t layer = m_index.layerOf({static_cast<std::int32_t>(i)});
            layer >= 0 && numbers[static_cast<std::size_t>(layer)] >= 0)
            m_element[i] = 1 + numbers[static_cast<std::size_t>(layer)];
}

/// Of a module, its largest child is its layer; what that reads within the module belongs to it, and its
/// head does not.
void LayoutElements::findModules()
{
    const Graph &graph = m_index.graph();
    std::map<std::int32_t, std::map<std::string, std::int32_t>> children; // operators by module and path
    const auto childOf = [&](std::size_t i) -> std::pair<std::int32_t, std::string> {
        const ScopeId scope = graph.operators[i].scope;
        if (!scope.valid())
            return {-1, {}};
        const std::string &path = m_index.pathOf(scope);
        const std::int32_t module = moduleOf(path);
        if (module < 0)
            return {-1, {}};
        const std::size_t number = path.find('.', path.find("mtp.")) + 1;
        const std::size_t child = path.find('.', number);
        return {
            module, child == std::string::npos ? std::string{} : path.substr(0, path.find('.', child + 1))};
    };
    for (std::size_t i = 0; i < m_index.forwardCount(); ++i)
        if (const auto [module, child] = childOf(i); module >= 0)
            ++children[module][child];
    for (const auto &[module, counts] : children) {
        std::string layer;
        for (const auto &[path, count] : counts)
            if (!path.empty() && (layer.empty() || count > counts.at(layer)))
                layer = path;
        const std::int32_t element = 1 + m_layers + m_modules++;
        std::vector<bool> isOf(m_index.forwardCount(), false);
        for (std::size_t i = m_index.forwardCount(); i-- > 0;) {
            const auto [own, child] = childOf(i);
            if (own != module)
                continue;
            isOf[i] = isOf[i] || child == layer || layer.empty();
            if (!isOf[i])
                continue;
            m_element[i] = element;
            forEachMaker(graph.operators[i], [&](std::size_t maker) { isOf[maker] = true; });
        }
    }
}

/// The first element that reads what `op` makes; -1 where none does.
std::int32_t LayoutElements::firstReader(const Operator &op) const
{
    std::int32_t first = kOutside;
    for (const TensorId output : op.outputs)
        if (output)
            for (const OperatorId reader : m_index.uses().consumers[at(output)])
                if (at(reader) < m_index.forwardCount())
                    first = first < 0 ? m_element[at(reader)] : std::min(first, m_element[at(reader)]);
    return first;
}

std::vector<std::int32_t> LayoutElements::find()
{
    const Graph &graph = m_index.graph();
    const std::size_t count = m_index.forwardCount();
    std::vector<bool> isBehind(count, false); // something of a layer
    std::vector<bool> readsWeights(count, false);
    std::vector<bool> readsInputs(count, false);
    for (std::size_t i = 0; i < count; ++i) {
        for (const TensorId input : graph.operators[i].inputs) {
            if (!input)
                continue;
            readsWeights[i] = readsWeights[i] || graph.at(input).role == TensorRole::Weight;
            readsInputs[i] = readsInputs[i] || graph.at(input).role == TensorRole::Input;
        }
        forEachMaker(graph.operators[i], [&](std::size_t maker) {
            if (maker >= count)
                return;
            isBehind[i] = isBehind[i] || isBehind[maker] || m_element[maker] >= 0;
            readsWeights[i] = readsWeights[i] || readsWeights[maker];
            readsInputs[i] = readsInputs[i] || readsInputs[maker];
        });
    }
    for (std::size_t i = count; i-- > 0;) {
        if (m_element[i] >= 0)
            continue;
        const bool isEmbedding = !isBehind[i] && readsWeights[i] && readsInputs[i];
        const std::int32_t reader = isEmbedding ? 0 : firstReader(graph.operators[i]);
        m_element[i] = reader >= 0 ? reader : isBehind[i] ? 1 + m_layers + m_modules : 0;
    }
    return m_element;
}

Result<void> checkCount(std::int32_t said, std::int32_t known, const char *singular, char symbol)
{
    if (said == known)
        return {};
    return wrongLayout("the layout has " + counted(said, singular) + " (" + symbol + "), the model has "
            + std::to_string(known),
        std::string("write ") + symbol + " as often as the model has them");
}

} // namespace

Result<std::vector<LayoutStage>> parseLayout(std::string_view text)
{
    TRY(const auto symbols, LayoutReader(text).read());
    constexpr std::string_view kOrder = "EtmL";
    std::vector<LayoutStage> stages(1);
    std::size_t reached = 0; // in `kOrder`
    bool isEmpty = true; // the stage at hand
    const auto wrong = [&](const LayoutSymbol &symbol, const std::string &expected) {
        return wrongLayout("expected " + expected + " at place " + std::to_string(symbol.place + 1)
                + " of the layout, found '" + symbol.symbol + "'",
            "E stands first, then all t, then all m, and L last");
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        const LayoutSymbol &symbol = symbols[i];
        if (i == 0 && symbol.symbol != 'E')
            return wrong(symbol, "E, the embedding,");
        if (symbol.symbol == '|') {
            if (isEmpty)
                return wrong(symbol, "something that stage " + std::to_string(stages.size() - 1) + " runs");
            stages.emplace_back();
            isEmpty = true;
            continue;
        }
        const std::size_t order = kOrder.find(symbol.symbol);
        if (order < reached || reached + 1 == kOrder.size() || (order == 0 && i > 0))
            return wrong(symbol,
                reached + 1 == kOrder.size() ? "nothing more behind L"
                                             : "what comes behind " + std::string(1, kOrder[reached]));
        reached = order;
        isEmpty = false;
        LayoutStage &stage = stages.back();
        stage.embedding = stage.embedding || symbol.symbol == 'E';
        stage.loss = symbol.symbol == 'L';
        stage.layers += symbol.symbol == 't' ? 1 : 0;
        stage.modules += symbol.symbol == 'm' ? 1 : 0;
    }
    if (reached + 1 != kOrder.size() || isEmpty)
        return wrongLayout("expected L, the loss, at the end of the layout, found "
            + (symbols.empty() ? std::string("nothing") : std::string("'") + symbols.back().symbol + "'"));
    return stages;
}

Result<std::vector<std::int32_t>> stagesOfLayout(
    const SelectorIndex &index, const std::vector<LayoutStage> &stages)
{
    LayoutElements elements(index);
    std::vector<std::int32_t> stageOf; // by element
    std::int32_t layers = 0;
    std::int32_t modules = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const LayoutStage &stage = stages[s];
        const std::int32_t count = stage.embedding + stage.layers + stage.modules + stage.loss;
        stageOf.insert(stageOf.end(), static_cast<std::size_t>(count), static_cast<std::int32_t>(s));
        layers += stage.layers;
        modules += stage.modules;
    }
    TRY_VOID(checkCount(layers, elements.layers(), "layer", 't'));
    TRY_VOID(checkCount(modules, elements.modules(), "MTP layer", 'm'));
    std::vector<std::int32_t> found = elements.find();
    std::vector<bool> runs(stages.size(), false);
    for (std::size_t i = 0; i < index.forwardCount(); ++i) {
        found[i] = stageOf[static_cast<std::size_t>(found[i])];
        runs[static_cast<std::size_t>(found[i])] = true;
    }
    if (const auto idle = std::find(runs.begin(), runs.end(), false); idle != runs.end())
        return wrongLayout(
            "the model has no operator for stage " + std::to_string(idle - runs.begin()) + " of the layout");
    return found;
}

} // namespace planloom
