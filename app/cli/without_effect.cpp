#include "app/cli/without_effect.h"

#include "engine/frontend/zoo/zoo.h"
#include "engine/graph/operator_files/operator_file.h"
#include "engine/interop/autodist_yaml.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace planloom::cli {

namespace {

using Names = std::vector<std::string_view>;

const Names kTraining{
    "optimizer", "learning-rate", "weight-decay", "clip-norm", "recompute", "zero", "rate-schedule"};
const Names kOfModel{"dim", "parameter", "constant", "as-input", "operators", "capacity", "unroll", "loss"};
const Names kOfFile{"parameter", "constant", "as-input", "operators", "unroll", "loss"};
const Names kOfRows{"devices", "gallery", "table", "axis", "micro-batches", "recompute", "zero", "offload",
    "precision", "attention", "optimizer", "learning-rate", "weight-decay", "clip-norm", "inference"};

const Names kOfPlan = [] {
    Names all{"cluster", "framework"};
    all.insert(all.end(), kOfRows.begin(), kOfRows.end());
    return all;
}();

/// Options that have no effect in some commands of some verbs.
struct Rule {
    Names verbs{}; ///< Empty: all.
    Names options{};
    std::function<bool(const Arguments &)> isIdle{};
    std::string why{};
    std::string advice{};
};

bool without(const Arguments &arguments, std::string_view option)
{
    return !arguments.has(option);
}

bool isKnownOperator(const Arguments &arguments)
{
    return !isOperatorFile(arguments.positional());
}

std::vector<Rule> rulesOfModels()
{
    return {
        {{"run", "rows", "info"}, kOfPlan, [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file has it decided already", "solve the model again with it"},
        {{"fits"}, kOfRows, [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file has it decided already", "solve the model again with it"},
        {{"fits"}, {"no-search", "allow-copies"},
            [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file has it decided already", "leave it out"},
        {{"run", "rows", "info", "fits"},
            {"dim", "parameter", "constant", "as-input", "capacity", "unroll", "loss"},
            [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file has its model as it was opened", "solve the model again with it"},
        {{"compare"}, {"dim", "operators"}, [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file has its model as it was opened", "leave it out"},
        {{"compare"}, {"at-most", "cluster"},
            [](const Arguments &a) { return !isPlanFile(a.positional()) && !isPlanFile(a.positional(1)); },
            "models are compared, not plans of them", "leave it out"},
        {{"rows", "info", "fits"}, {"operators"},
            [](const Arguments &a) { return isPlanFile(a.positional()); },
            "a plan file carries its operator files", "leave it out"},
        {{"info", "solve", "run", "rows", "fits"}, kOfFile,
            [](const Arguments &a) { return isZooSpec(a.positional()); },
            "a model of the zoo says itself what it holds and what is trained", "leave it out"},
        {{"gallery"}, kOfFile, [](const Arguments &a) { return isZooSpec(a.text("model")); },
            "a model of the zoo says itself what it holds and what is trained", "leave it out"},
        {{"gallery"}, kOfPlan, [](const Arguments &a) { return without(a, "model"); },
            "nothing is planned without a model", "name one with --model"},
        {{"gallery"}, kOfModel, [](const Arguments &a) { return without(a, "model"); },
            "nothing is planned without a model", "name one with --model"},
        {{"gallery"}, {"model"}, [](const Arguments &a) { return a.positional() == "all"; },
            "the list is the same for all models", "name one entry: planloom-cli gallery NAME --model MODEL"},
        {{"gallery"}, {"gallery"}, [](const Arguments &) { return true; },
            "the entry is named by the command", "leave it out"},
        {{}, kTraining, [](const Arguments &a) { return a.has("inference"); },
            "nothing is trained with --inference", "leave one of them out"},
        {{}, {"axis"},
            [](const Arguments &a) {
                return !isAutodistFile(a.text("table")) && !isAutodistFile(a.text("out"));
            },
            "only partition constraints (.yaml) are about one axis", "name one with --table"},
        {{}, {"micro-batches"},
            [](const Arguments &a) { return a.text("gallery").find("micro-batches=") != std::string::npos; },
            "the gallery's plan says its number of micro-batches", "leave one of them out"},
    };
}

std::vector<Rule> rulesOfVerbs()
{
    return {
        {{"solve"}, {"suggest"}, [](const Arguments &a) { return without(a, "json"); },
            "suggestions are part of the JSON object", "add --json"},
        {{"solve", "fits"}, {"no-search"}, [](const Arguments &a) { return a.has("gallery"); },
            "the gallery's plan is not searched for", "leave one of them out"},
        {{"schedule"}, {"csv-format"}, [](const Arguments &a) { return without(a, "csv"); },
            "no CSV file is written", "name one with --csv"},
        {{"schedule"}, {"time-limit"}, [](const Arguments &a) { return a.has("template"); },
            "a template is not searched for", "leave one of them out"},
        {{"check-annotation"},
            {"operator", "size", "shape", "range", "attribute", "type", "tolerance", "seed"}, isKnownOperator,
            "only operators of files leave it open", "name an operator file"},
        {{"run"}, {"seed"}, [](const Arguments &a) { return a.has("random-weights"); },
            "--random-weights gives the run its seed", "leave one of them out"},
        {{"run"}, {"no-sharing"},
            [](const Arguments &a) {
                return a.text("backend", "cpu") != "cpu" || (a.has("ranks") && a.text("ranks") != "1");
            },
            "only devices on the CPU in one process share what they compute alike", "leave it out"},
        {{"run"}, {"python", "events"},
            [](const Arguments &a) { return a.text("backend", "cpu") != "torch"; },
            "only PyTorch's run has it", "add --backend torch"},
        {{"run"}, {"json"}, [](const Arguments &a) { return a.has("events"); },
            "events are lines of JSON already", "leave one of them out"},
        {{"run"}, {"dump", "json"}, [](const Arguments &a) { return a.has("prepare"); },
            "--prepare runs nothing", "leave one of them out"},
        {{"trace"}, {"cluster"}, [](const Arguments &a) { return without(a, "plan"); },
            "only plans are predicted for a cluster", "name a plan with --plan"},
        {{"cluster"}, {"kernels", "collectives", "base"},
            [](const Arguments &a) { return a.has("topology"); }, "files about machines hold no times",
            "leave one of them out"},
        {{"cluster"}, {"hosts"}, [](const Arguments &a) { return without(a, "topology"); },
            "only files about machines speak of hosts", "name one with --topology"},
        {{"lesson"}, {"cluster", "framework"}, [](const Arguments &a) { return a.positional() == "list"; },
            "the list is the same for all machines", "leave it out"},
        {{"lesson"}, {"json"}, [](const Arguments &a) { return a.positional() == "show"; },
            "the text of a lesson is for people", "leave it out"},
        {{"session"}, {"table", "check"}, [](const Arguments &a) { return a.has("repair"); },
            "--repair reads and checks everything and shows no table", "leave one of them out"},
    };
}

Error idle(std::string_view option, const std::string &why, const std::string &advice)
{
    return {ErrorCode::InvalidInput, "--" + std::string(option) + " would have no effect: " + why, advice,
        "--" + std::string(option)};
}

} // namespace

bool isPlanFile(const std::string &path)
{
    return path.ends_with(".json") || path.ends_with(".plan");
}

bool isOperatorFile(const std::string &text)
{
    std::error_code failure;
    return text.ends_with(kOperatorFileEnding) || text.find('/') != std::string::npos
        || std::filesystem::exists(text, failure);
}

Result<void> checkEffects(const VerbSpec &verb, const Arguments &arguments)
{
    for (const auto &rules : {rulesOfModels(), rulesOfVerbs()}) {
        for (const Rule &rule : rules) {
            const bool isOfVerb = rule.verbs.empty()
                || std::find(rule.verbs.begin(), rule.verbs.end(), verb.name) != rule.verbs.end();
            if (!isOfVerb)
                continue;
            for (const std::string_view option : rule.options) {
                if (arguments.has(option) && rule.isIdle(arguments))
                    return idle(option, rule.why, rule.advice);
            }
        }
    }
    return {};
}

Result<void> checkEffects(const Arguments &arguments, const OpenedModel &model)
{
    const bool isTrained = !model.graph->operators.empty()
        && std::any_of(model.graph->operators.begin(), model.graph->operators.end(),
            [](const Operator &op) { return op.direction != Direction::Forward; });
    for (const std::string_view option : kTraining) {
        if (arguments.has(option) && !isTrained)
            return idle(option,
                "the model has no loss, so nothing is trained"
                    + (model.remark.empty() ? "" : " (" + model.remark + ")"),
                "name an output to train on with --loss");
    }
    if (arguments.has("capacity") && model.graph->rooms.empty())
        return idle("capacity", "in this model no operator needs room for what data choose", "leave it out");
    return {};
}

} // namespace planloom::cli
