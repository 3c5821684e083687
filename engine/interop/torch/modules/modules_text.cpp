#include "engine/interop/torch/modules/modules_text.h"

#include "engine/base/text.h"
#include "engine/interop/torch/modules/embedded_modules.h"
#include "engine/interop/torch/python_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

namespace planloom {

namespace {

constexpr std::size_t kWidestLine = 118;

bool isNumber(std::string_view word)
{
    return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "h.*.attn" of "h.3.attn".
std::string patternOf(const std::string &module)
{
    std::string pattern;
    for (std::size_t begin = 0; begin <= module.size();) {
        const std::size_t dot = std::min(module.find('.', begin), module.size());
        const std::string part = module.substr(begin, dot - begin);
        pattern += (begin == 0 ? "" : ".") + (isNumber(part) ? "*" : part);
        begin = dot + 1;
    }
    return pattern;
}

/// What is said of modules, by pattern where all modules of one are said the same; `all` are those there are.
template<typename Said>
std::vector<std::pair<std::string, Said>> folded(
    const std::map<std::string, Said> &said, const std::set<std::string> &all)
{
    std::map<std::string, std::vector<std::string>> groups;
    for (const std::string &module : all)
        groups[patternOf(module)].push_back(module);
    for (const auto &[module, each] : said)
        if (!all.contains(module))
            groups[patternOf(module)].push_back(module);
    std::vector<std::pair<std::string, Said>> lines;
    for (const auto &[pattern, modules] : groups) {
        const auto first = said.find(modules.front());
        const bool areAlike = first != said.end()
            && std::all_of(modules.begin(), modules.end(), [&](const std::string &module) {
                   const auto found = said.find(module);
                   return found != said.end() && found->second == first->second;
               });
        if (areAlike)
            lines.emplace_back(modules.size() > 1 ? pattern : modules.front(), first->second);
        else
            for (const std::string &module : modules)
                if (said.contains(module))
                    lines.emplace_back(module, said.at(module));
    }
    return lines;
}

/// A list of texts, broken into lines of `indent` spaces.
std::string textList(const std::vector<std::string> &items, std::size_t indent)
{
    std::string text = "[";
    std::size_t width = indent + 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string item = pythonText(items[i]) + (i + 1 < items.size() ? "," : "");
        if (i > 0 && width + item.size() + 1 > kWidestLine) {
            text += "\n" + std::string(indent + 1, ' ');
            width = indent + 1;
        } else if (i > 0) {
            text += " ";
            ++width;
        }
        text += item;
        width += item.size();
    }
    return text + "]";
}

std::string patternList(const std::vector<std::string> &modules, const std::set<std::string> &all)
{
    std::map<std::string, bool> said;
    for (const std::string &module : modules)
        said[module] = true;
    std::vector<std::string> patterns;
    for (const auto &[pattern, _] : folded(said, all))
        patterns.push_back(pattern);
    return textList(patterns, 0);
}

/// "{"tokens": 0, "labels": None}"
std::string dimensionsText(const std::vector<std::pair<std::string, std::int32_t>> &items)
{
    std::string text;
    for (const auto &[name, dimension] : items)
        text += (text.empty() ? "" : ", ") + pythonText(name) + ": "
            + (dimension < 0 ? "None" : std::to_string(dimension));
    return "{" + text + "}";
}

std::string styleText(const ModuleStyle &style)
{
    const TensorPlacement last{TensorPlacement::Kind::Shard, -1};
    std::vector<std::string> given;
    const auto add = [&given](
                         const char *name, const TensorPlacement &placement, const TensorPlacement &usual) {
        if (placement != usual)
            given.push_back(std::string(name) + "=" + textOf(placement));
    };
    std::string name;
    switch (style.kind) {
    case ModuleStyle::Kind::Colwise:
        name = "ColwiseParallel";
        add("input_layouts", style.from, {});
        add("output_layouts", style.given, last);
        break;
    case ModuleStyle::Kind::Rowwise:
        name = "RowwiseParallel";
        add("input_layouts", style.from, last);
        add("output_layouts", style.given, {});
        break;
    case ModuleStyle::Kind::Sequence:
        name = "SequenceParallel";
        if (style.to.dimension != 1)
            given.push_back("sequence_dim=" + std::to_string(style.to.dimension));
        if (!style.staysDTensor)
            given.emplace_back("use_local_output=True");
        return name + "(" + joinedBy(given) + ")";
    case ModuleStyle::Kind::Cut: {
        name = "Cut";
        std::vector<std::string> cuts;
        for (const ParameterCut &cut : style.parameters)
            cuts.push_back(pythonText(cut.name) + ": (" + std::to_string(cut.dimension) + ", "
                + std::to_string(cut.groups) + ")");
        given = {"{" + joinedBy(cuts) + "}", textOf(style.from), textOf(style.to), textOf(style.given)};
        break;
    }
    }
    if (style.staysDTensor)
        given.emplace_back("use_local_output=False");
    return name + "(" + joinedBy(given) + ")";
}

/// "Replicate, Shard" of what stands in `text`.
std::string namesIn(const std::string &text, const std::vector<std::string> &names)
{
    std::vector<std::string> used;
    for (const std::string &name : names)
        if (usesName(text, name))
            used.push_back(name);
    return joinedBy(used);
}

const std::vector<std::string> kPlacements{"Partial", "Replicate", "Shard"};

/// Works out the words of all templates.
class WordsOfText
{
public:
    explicit WordsOfText(const ModulesText &text)
        : m_text(text)
        , m_words(text.words)
        , m_plan(*text.answer.plan)
        , m_graph(*m_plan.graph)
        , m_batch(*batchOf(m_plan))
    {
        const WordsSource source{.plan = m_plan, .model = text.model};
        for (std::size_t o = 0; o < text.model.index->forwardCount(); ++o) {
            const std::string module = source.moduleOf(OperatorId{static_cast<std::int32_t>(o)});
            if (!module.empty())
                m_weighted.insert(module);
        }
    }

    std::map<std::string, std::string> make()
    {
        m_made["MODEL"] = m_graph.name;
        m_made["WORLD"] = std::to_string(m_text.answer.deviceCount);
        m_made["MODULE"] = m_text.module.empty() ? "\"\"" : pythonText(m_text.module);
        m_made["MICRO_BATCHES"] = std::to_string(m_words.microBatches);
        addAxes();
        addInputs();
        addTensor();
        addStages();
        addReplicas();
        addRows();
        addNeeds();
        return std::move(m_made);
    }

private:
    void flag(const char *name, bool value)
    {
        if (value)
            m_made[name] = "True";
    }
    bool has(const char *name) const { return m_made.contains(name); }

    void addAxes()
    {
        std::string mesh;
        for (const WordAxis &axis : m_words.axes)
            mesh += (mesh.empty() ? "" : ", ") + pythonText(axis.name) + ": " + std::to_string(axis.size);
        m_made["MESH"] = "{" + (mesh.empty() ? std::string("\"one\": 1") : mesh) + "}";
        for (const auto &[role, name] :
            {std::pair(WordRole::Data, "DATA"), std::pair(WordRole::Tensor, "TENSOR"),
                std::pair(WordRole::Context, "CONTEXT"), std::pair(WordRole::Stages, "STAGES")})
            if (const WordAxis *const axis = m_words.axisOf(role))
                m_made[name] = axis->name;
    }

    std::int32_t batchDimensionOf(TensorId input) const
    {
        const BatchInfo &batch = m_plan.wholeBatches ? m_batch : *m_text.model.batch;
        return batch.tensorDimension[at(input)];
    }

    /// Of whole numbers that choose among rows or classes, the first that is none.
    std::int64_t firstBeyond(TensorId input) const
    {
        std::int64_t high = 2;
        for (const OperatorId reader : m_text.model.index->uses().consumers[at(input)]) {
            const Operator &op = m_graph.at(reader);
            if (op.direction != Direction::Forward)
                continue;
            if (op.kind == OperatorKind::Embedding)
                high = std::max(high, m_graph.at(op.inputs.front()).type.shape.front());
            else if (op.kind == OperatorKind::ClassStatistics) {
                const Annotation &annotation = op.annotation;
                for (const Term &term : annotation.inputs.front().terms)
                    for (const std::int32_t factor : term.factors)
                        if (annotation.dimensions[at(factor)].mark == DimensionMark::Reduce)
                            high = std::max(high, annotation.dimensions[at(factor)].size);
            }
        }
        return high;
    }

    void addInputs()
    {
        std::vector<std::string> names;
        std::string types;
        std::vector<std::pair<std::string, std::int32_t>> batches;
        bool isUsual = true;
        for (const TensorId input : m_graph.inputs) {
            const Tensor &tensor = m_graph.at(input);
            names.push_back(pythonText(tensor.name));
            types += "    " + pythonText(tensor.name) + ": (" + pythonTuple(tensor.type.shape) + ", "
                + pythonType(tensor.type.dataType) + ", " + std::to_string(firstBeyond(input)) + "),\n";
            batches.emplace_back(tensor.name, batchDimensionOf(input));
            isUsual = isUsual && batches.back().second == 0;
        }
        m_made["INPUTS"] = "[" + joinedBy(names) + "]";
        m_made["INPUT_NAMES"] = joinedBy(names);
        m_made["INPUT_TYPES"] = types;
        m_made["BATCH"] = dimensionsText(batches);
        if (!isUsual)
            m_made["CHUNKS"] = dimensionsText(batches);
        const WordAxis *const data = m_words.axisOf(WordRole::Data);
        std::vector<std::pair<std::string, std::int32_t>> cut;
        for (const auto &each : batches)
            if (each.second >= 0)
                cut.push_back(each);
        m_made["CUTS"] =
            data == nullptr ? "{}" : "{" + pythonText(data->name) + ": " + dimensionsText(cut) + "}";
        m_made["CUT_AXES"] = data == nullptr ? "()" : "(" + pythonText(data->name) + ",)";
        const auto loss = std::find(m_graph.outputs.begin(), m_graph.outputs.end(), m_graph.loss);
        m_made["LOSS"] = std::to_string(loss == m_graph.outputs.end() ? 0 : loss - m_graph.outputs.begin());
        if (const WordAxis *const context = m_words.axisOf(WordRole::Context))
            addContext(*context);
    }

    void addContext(const WordAxis &axis)
    {
        const WordsSource source{.plan = m_plan, .model = m_text.model};
        std::vector<std::pair<std::string, std::int32_t>> cut;
        for (const TensorId input : m_graph.inputs)
            for (const OperatorId reader : m_text.model.index->uses().consumers[at(input)]) {
                const Operator &op = m_graph.at(reader);
                const auto slot = std::find(op.inputs.begin(), op.inputs.end(), input) - op.inputs.begin();
                const TensorPlacement placement = op.direction != Direction::Forward
                    ? TensorPlacement{}
                    : placementOf(op.annotation, op.annotation.inputs[static_cast<std::size_t>(slot)],
                        source.splitOf(reader, axis.name), false);
                if (placement.kind != TensorPlacement::Kind::Shard)
                    continue;
                const auto rank = static_cast<std::int32_t>(m_graph.at(input).type.shape.size());
                cut.emplace_back(m_graph.at(input).name, (placement.dimension + rank) % rank);
                break;
            }
        m_made["SEQUENCES"] = dimensionsText(cut);
        m_made["ROTATE"] = m_words.gathersKeys ? "allgather" : "alltoall";
        if (!m_words.madeInside.empty())
            m_made["MADE_INSIDE"] = pythonText("the model makes " + joinedBy(m_words.madeInside)
                + " from the length of what it is given, which is a part of the sequence here: let the "
                  "module "
                  "take positions as an input, or check.py will differ");
    }

    void addTensor()
    {
        flag("LOSS_PARALLEL", m_words.lossParallel);
        if (!has("TENSOR"))
            return;
        std::string lines;
        for (const auto &[pattern, style] : folded(m_words.styles, m_weighted))
            lines += "        " + pythonText(pattern) + ": " + styleText(style) + ",\n";
        m_made["STYLE_LINES"] = lines;
        m_made["PLACEMENTS"] = namesIn(lines, kPlacements);
        if (m_made["PLACEMENTS"].empty())
            m_made["PLACEMENTS"] = "Replicate  # noqa: F401";
        const std::string own = namesIn(lines, {"ColwiseParallel", "RowwiseParallel", "SequenceParallel"});
        if (!own.empty())
            m_made["PARALLEL_STYLES"] = own;
        std::string outputs;
        for (const auto &[pattern, output] : folded(m_words.outputs, m_weighted))
            outputs += "        " + pythonText(pattern)
                + ": PrepareModuleOutput(output_layouts=" + textOf(output.made)
                + ", desired_output_layouts=" + textOf(output.given) + ", use_local_output=False),\n";
        if (!outputs.empty()) {
            m_made["OUTPUT_LINES"] = outputs;
            m_made["OUTPUT_PLACEMENTS"] = namesIn(outputs, kPlacements);
            flag("OUTPUTS", true);
        }
        std::vector<std::string> sizes;
        for (const auto &[pattern, each] : folded(m_words.localSizes, {})) {
            std::vector<std::string> pairs;
            for (const auto &[whole, local] : each)
                pairs.push_back(std::to_string(whole) + ": " + std::to_string(local));
            sizes.push_back(pythonText(pattern) + ": {" + joinedBy(pairs) + "}");
        }
        if (!sizes.empty())
            m_made["LOCAL_SIZES"] = "{" + joinedBy(sizes) + "}";
        const auto isPacked = [](const auto &each) {
            return std::any_of(each.second.parameters.begin(), each.second.parameters.end(),
                [](const ParameterCut &cut) { return cut.groups > 1; });
        };
        flag("PACKED", std::any_of(m_words.styles.begin(), m_words.styles.end(), isPacked));
        std::vector<std::string> imported;
        if (usesName(lines, "Cut"))
            imported.emplace_back("Cut");
        if (has("LOCAL_SIZES"))
            imported.emplace_back("local_sizes");
        if (!imported.empty()) {
            m_made["STYLES"] = joinedBy(imported);
            flag("STYLES_FILE", true);
        }
    }

    void addStages()
    {
        if (!has("STAGES"))
            return;
        std::string modules;
        std::vector<std::string> firsts;
        std::vector<std::string> ranks;
        std::vector<std::string> enters;
        bool isEntered = false;
        for (const ModuleStage &stage : m_words.stages) {
            modules += "    " + textList(stage.modules, 4) + ",\n";
            firsts.push_back(stage.first.empty() ? "None" : pythonText(stage.first));
            ranks.push_back(std::to_string(stage.rank));
            enters.push_back(stage.enters.isWhole() ? "None" : textOf(stage.enters));
            isEntered = isEntered || !stage.enters.isWhole();
        }
        m_made["STAGE_MODULES"] = modules;
        m_made["STAGE_BEGINS"] = "[" + joinedBy(firsts) + "]";
        m_made["STAGE_RANKS"] = "[" + joinedBy(ranks) + "]";
        if (isEntered) {
            m_made["ENTERS"] = "[" + joinedBy(enters) + "]";
            m_made["ENTER_PLACEMENTS"] = "Shard";
        }
        const bool isCsv = m_words.scheduleClass.empty();
        flag("CSV", isCsv);
        m_made["SCHEDULE_CLASS"] = isCsv ? "_PipelineScheduleRuntime" : "Schedule" + m_words.scheduleClass;
        flag("SINGLE", m_words.scheduleClass == "1F1B" || m_words.scheduleClass == "GPipe");
        addTied();
    }

    void addTied()
    {
        std::vector<std::string> tied;
        for (const std::vector<std::string> &names : m_words.tied) {
            std::set<std::string> places;
            for (const std::string &name : names)
                for (const ModuleStage &stage : m_words.stages)
                    for (const std::string &module : stage.modules)
                        if (name.starts_with(module + "."))
                            places.insert(std::to_string(stage.rank));
            tied.push_back("(" + textList(names, 0) + ", ["
                + joinedBy(std::vector<std::string>(places.begin(), places.end())) + "])");
        }
        if (!tied.empty())
            m_made["TIED"] = "[" + joinedBy(tied) + "]";
    }

    void addReplicas()
    {
        flag("ACCUMULATE", !has("STAGES") && m_words.microBatches > 1);
        flag("ZERO1", m_words.zero == 1);
        flag("ZERO2", m_words.zero == 2);
        flag("FSDP", m_words.zero > 1);
        m_made["RESHARD"] = pythonFlag(m_words.zero == 3 && !m_words.keepsWeights);
        flag("DDP", has("DATA") && !has("FSDP") && !has("TENSOR") && !has("STAGES") && !has("CONTEXT"));
        flag("OUTER", has("DDP") || has("STAGES"));
        std::vector<std::string> averaged;
        std::vector<std::string> means;
        for (const char *const role : {"DATA", "CONTEXT"})
            if (has(role)) {
                means.push_back(pythonText(m_made[role]));
                if (!has("DDP") && !(role == std::string_view("DATA") && has("FSDP")))
                    averaged.push_back(means.back());
            }
        const auto tuple = [](const std::vector<std::string> &items) { return "(" + joinedBy(items) + ",)"; };
        if (!averaged.empty()) {
            m_made["AVERAGED"] = tuple(averaged);
            flag("AVERAGE", true);
        }
        if (!means.empty())
            m_made["MEAN_AXES"] = tuple(means);
        const std::set<std::string> wrapped(m_words.wrapped.begin(), m_words.wrapped.end());
        m_made["WRAPPED"] = patternList(m_words.wrapped, wrapped);
        if (!m_words.recomputed.empty()) {
            const std::set<std::string> recomputed(m_words.recomputed.begin(), m_words.recomputed.end());
            m_made["RECOMPUTED"] = patternList(m_words.recomputed, recomputed);
            flag("RECOMPUTE", true);
        }
        if (!m_words.autocast.empty())
            m_made["AUTOCAST"] = m_words.autocast;
        flag("TF32", m_words.tensorFloat32);
        flag("PATTERNS", has("TENSOR") || has("FSDP") || has("RECOMPUTE"));
        flag("SURROUNDED", has("LOSS_PARALLEL") || has("CONTEXT"));
        flag("TORCH", has("TF32") || has("AUTOCAST") || has("TIED") || has("DDP"));
        flag("SUMS", has("AVERAGE") || has("TIED"));
        flag("LOCAL_TENSORS",
            has("LOSS_PARALLEL") || has("ENTERS") || (has("TENSOR") && has("AVERAGE"))
                || (has("TIED") && (has("TENSOR") || has("FSDP"))));
    }

    void addRows()
    {
        std::string rows;
        std::string listed;
        for (const std::string &row : m_text.rows) {
            std::string plain = row;
            for (std::size_t i = plain.find('\\'); i != std::string::npos; i = plain.find('\\', i + 2))
                plain.insert(i, 1, '\\');
            for (std::size_t i = plain.find("\"\"\""); i != std::string::npos; i = plain.find("\"\"\""))
                plain.replace(i, 3, "'''");
            rows += "    " + plain + "\n";
            listed += "    " + row + "\n";
        }
        m_made["ROWS"] = rows;
        m_made["LISTED"] = listed;
        std::string notes;
        for (const std::string &note : m_text.notes)
            notes += "\n" + note + "\n";
        m_made["NOTES"] = notes;
        std::string files;
        for (const auto &[name, path, what] : {std::tuple("STAGES", "stages.py", "stages cut from a module"),
                 std::tuple("STYLES_FILE", "styles.py", "what PyTorch's styles have no word for"),
                 std::tuple("CSV", "schedule.csv", "the order of the pipeline's blocks")})
            if (has(name))
                files += std::string("| `") + path + "` | " + what + " |\n";
        m_made["FILES"] = files;
    }

    void addNeeds()
    {
        std::string needs;
        const auto need = [&](bool isNeeded, const char *module, const std::string &name, const char *since) {
            if (isNeeded)
                needs += std::string("    (") + pythonText(module) + ", " + pythonText(name) + ", "
                    + pythonText(since) + "),\n";
        };
        need(true, "torch.distributed.device_mesh", "init_device_mesh", "2.2");
        need(has("TENSOR"), "torch.distributed.tensor", "DTensor", "2.5");
        need(has("TENSOR"), "torch.distributed.tensor.parallel", "PrepareModuleOutput", "2.0");
        need(has("LOSS_PARALLEL"), "torch.distributed.tensor.parallel", "loss_parallel", "2.3");
        need(has("FSDP"), "torch.distributed.fsdp", "fully_shard", "2.6");
        need(has("ZERO1"), "torch.distributed.optim", "ZeroRedundancyOptimizer", "1.8");
        need(has("CONTEXT"), "torch.distributed.tensor.experimental", "context_parallel", "2.6");
        if (has("STAGES"))
            need(true, "torch.distributed.pipelining.schedules", m_made["SCHEDULE_CLASS"],
                m_words.scheduleClass == "DualPipeV"           ? "2.9"
                    : m_words.scheduleClass == "ZBVZeroBubble" ? "2.6"
                    : has("CSV")                               ? "2.6"
                                                               : "2.5");
        m_made["NEEDS"] = needs;
    }

    const ModulesText &m_text;
    const PlanWords &m_words;
    const Plan &m_plan;
    const Graph &m_graph;
    const BatchInfo &m_batch;
    std::set<std::string> m_weighted{}; ///< Modules with weights.
    std::map<std::string, std::string> m_made{};
};

} // namespace

std::string filledIn(std::string_view text, const std::map<std::string, std::string> &words)
{
    std::string result;
    std::vector<bool> chosen; // by `#if` around a line
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        std::string line(text.substr(0, end));
        text.remove_prefix(end);
        if (line.starts_with("#if "))
            chosen.push_back(words.contains(std::string(trimmed(std::string_view(line).substr(4)))));
        else if (line.starts_with("#else"))
            chosen.back() = !chosen.back();
        else if (line.starts_with("#end"))
            chosen.pop_back();
        else if (std::find(chosen.begin(), chosen.end(), false) == chosen.end()) {
            for (std::size_t begin = line.find("{{"); begin != std::string::npos;
                 begin = line.find("{{", begin)) {
                const std::size_t close = line.find("}}", begin);
                const auto word = words.find(line.substr(begin + 2, close - begin - 2));
                const std::string value = word == words.end() ? std::string{} : word->second;
                line.replace(begin, close + 2 - begin, value);
                begin += value.size();
            }
            result += line;
        }
    }
    return result;
}

std::map<std::string, std::string> filesOf(const ModulesText &text)
{
    std::map<std::string, std::string> words = WordsOfText(text).make();
    std::map<std::string, std::string> files;
    for (const RuntimeFile &file : embeddedModules()) {
        const std::string path(file.path);
        const bool isLeftOut = (path == "stages.py" && !words.contains("STAGES"))
            || (path == "styles.py" && !words.contains("STYLES_FILE"));
        if (isLeftOut)
            continue;
        if (path == "README.md")
            words["ROWS"] = words["LISTED"];
        files[path] = filledIn(file.text, words);
        if (path == "README.md")
            words = WordsOfText(text).make();
    }
    if (!text.words.scheduleCsv.empty())
        files["schedule.csv"] = text.words.scheduleCsv;
    files["plan.json"] = nlohmann::json{{"format", "planloom-torch-modules"},
                             {"world", text.answer.deviceCount}, {"rows", text.rows}}
                             .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
        + "\n";
    return files;
}

} // namespace planloom
