#include "tests/fuzz/model_trial.h"

#include "tests/dice.h"
#include "tests/engine/lowering/random_tables.h"

#include "engine/base/words.h"
#include "engine/design/make_plan.h"
#include "engine/design/models/reference.h"
#include "engine/frontend/complete_import.h"
#include "engine/frontend/training/training.h"
#include "engine/gallery/gallery.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"

#include <cmath>

namespace planloom {

namespace {

constexpr double kRunShare = 0.5; ///< Of the plans for threads, that are run.

class ModelTrial
{
public:
    ModelTrial(std::uint64_t seed, const TrialEvents &events)
        : m_seed(seed)
        , m_dice(seed)
        , m_events(events)
    {
    }

    void run(const Graph &forward)
    {
        auto graph = imported(forward);
        if (!graph || !openTraining(*std::move(graph)))
            return;
        const std::string odd = m_dice.of<const char *>({"cpu:3", "dgx-h100:5", "rtx4090:7", "dgx2-v100:3"});
        for (const std::string &cluster :
            {std::string("cpu:4"), std::string("dgx-h100:8"), std::string("mixed-h100-a100:16"), odd})
            plan(cluster);
    }

private:
    void find(const std::string &what) { m_events.finding(what); }
    /// A refusal is an answer; a mistake of the program is not.
    void note(const Error &error)
    {
        if (error.code == ErrorCode::Internal)
            find("internal error: " + describe(error));
        else
            m_events.count("refused");
    }

    Result<Graph> imported(const Graph &forward)
    {
        m_events.stage("import");
        if (m_dice.hits(0.3))
            return forward;
        auto graph = completeImport(forward, {}, false);
        if (!graph)
            note(graph.error());
        return graph;
    }

    bool openTraining(Graph forward)
    {
        m_events.stage("training step");
        TrainingOptions options;
        options.optimizer = m_dice.of({OperatorKind::SgdStep, OperatorKind::AdamWStep});
        options.momentum = m_dice.of({0.0, 0.9});
        options.clipNorm = m_dice.of({0.0, 0.0, 1.0});
        auto graph = buildTrainingStep(forward, options);
        if (!graph)
            note(graph.error());
        GraphSnapshot shared = std::make_shared<const Graph>(graph ? *std::move(graph) : std::move(forward));
        if (const auto valid = validate(*shared); !valid) {
            note(valid.error());
            return false;
        }
        OpenedModel model;
        static_cast<Model &>(model) = Model(std::move(shared));
        m_model = std::make_shared<const OpenedModel>(std::move(model));
        return true;
    }

    std::string anyGallery(std::int32_t devices)
    {
        const GalleryEntry &entry = m_dice.of(builtInGallery().entries);
        std::string spec = entry.name;
        if (devices == 4 && entry.name == "3d" && m_dice.hits(0.7))
            spec += m_dice.of<const char *>({":tp=2,pp=2", ":dp=2,tp=2", ":dp=2,pp=2,micro-batches=2"});
        return spec;
    }

    void plan(const std::string &cluster)
    {
        m_dice = Dice(++m_seed); // whatever was asked of the clusters before this one
        const auto target = resolve({cluster});
        PlanRequest request;
        request.model = m_model;
        request.target = {cluster};
        request.search = true;
        std::string asked = "search";
        const std::int64_t how = m_dice.below(10);
        if (how >= 8) {
            request.search = false;
            std::mt19937 random(static_cast<std::mt19937::result_type>(m_dice.seed()));
            request.table = TableDocument(print(randomTable(*m_model->graph, target->deviceCount, random)));
            asked = "rows:\n" + request.table.text();
        } else if (how >= 4) {
            request.gallery = asked = anyGallery(target->deviceCount);
        } else if (m_dice.hits(0.3)) {
            asked = "micro-batches " + std::to_string(m_dice.of({2, 4}));
            request.table = TableDocument(asked);
        }
        m_events.stage("solve " + cluster + " " + asked);
        const auto answer = answerOf(request);
        if (how >= 8 && isMistake(answer))
            find("with no more than " + smallestOf(request).table.text());
        if (!answer) {
            note(answer.error());
            return;
        }
        look(**answer);
        if ((*answer)->execution && (*answer)->verdict && (*answer)->verdict->ok()) {
            writeAndRead(*(*answer)->execution);
            if (cluster.starts_with("cpu") && m_dice.hits(kRunShare))
                compare(cluster + " " + asked, *(*answer)->execution);
        }
    }

    static bool isRefuted(const PlanAnswer &answer) { return answer.verdict && !answer.verdict->ok(); }

    /// A plan that is not proven, or none because of a mistake of the program.
    template<typename Answer> static bool isMistake(const Answer &answer)
    {
        const auto error = answer ? (*answer)->firstError() : std::optional(answer.error());
        return error ? error->code == ErrorCode::Internal : isRefuted(**answer);
    }

    /// Without the rows that it is a mistake without, too.
    static PlanRequest smallestOf(PlanRequest request)
    {
        for (std::size_t i = request.table.table().rows.size(); i-- > 0;) {
            PlanRequest fewer = request;
            ConstraintTable rows = request.table.table();
            rows.rows.erase(rows.rows.begin() + static_cast<std::ptrdiff_t>(i));
            fewer.table = TableDocument(print(rows));
            if (isMistake(answerOf(fewer)))
                request = std::move(fewer);
        }
        return request;
    }

    void look(const PlanAnswer &answer)
    {
        if (const auto error = answer.firstError())
            note(*error);
        if (answer.searchProblem && answer.searchProblem->code == ErrorCode::Internal)
            note(*answer.searchProblem);
        if (isRefuted(answer))
            find("not proven: " + answer.verdict->failure->reason);
        if (answer.verdict && answer.verdict->ok())
            m_events.count("planned");
        if (answer.isTimed()) {
            const TimelineSummary &summary = answer.summary;
            if (!(summary.stepSeconds >= 0 && std::isfinite(summary.stepSeconds)
                    && std::isfinite(summary.bubble) && std::isfinite(summary.exposedCommunicationSeconds)))
                find("a step of " + std::to_string(summary.stepSeconds) + " s, bubble "
                    + std::to_string(summary.bubble));
        }
        if (answer.search)
            lookAtBound(*answer.search);
    }

    /// Nothing that the search looked at is below its bound, but plans beside what the bound is of.
    void lookAtBound(const SearchResult &search)
    {
        if (!std::isfinite(search.bound) || !std::isfinite(search.best.seconds))
            find("a bound of " + formatSeconds(search.bound) + " for a step of "
                + formatSeconds(search.best.seconds));
        for (const SearchedPlan &each : search.seen)
            // What was not priced has its simulated seconds alone.
            if (!each.configuration.isUnequal() && each.peakBytes <= search.memoryLimit
                && each.seconds != each.simulatedSeconds && each.seconds < search.modelBound * (1 - 1e-9)) {
                find("a bound of " + formatSeconds(search.modelBound) + ", and a plan of "
                    + formatSeconds(each.seconds) + ": " + toString(each.configuration));
                break;
            }
    }

    void writeAndRead(const ExecutionPlan &plan)
    {
        m_events.stage("plan file");
        const std::string text = toJson(plan);
        const auto again = executionPlanFromJson(text);
        if (!again)
            find("not read back: " + describe(again.error()));
        else if (toJson(*again) != text)
            find("read back as another plan");
    }

    void compare(const std::string &asked, const ExecutionPlan &plan)
    {
        m_events.stage("run " + asked);
        RunOptions options;
        options.randomWeights = true;
        options.keepGradients = true;
        options.threads = 1;
        const auto outcome = runOnCpu(plan, options);
        if (!outcome) {
            find("no run: " + describe(outcome.error()));
            return;
        }
        const auto reference = referenceOf(plan);
        if (!reference) {
            find("no reference: " + describe(reference.error()));
            return;
        }
        const auto check = checkAgainst(**reference, plan, *outcome, options);
        if (!check)
            find("not compared: " + describe(check.error()));
        else if (!check->ok)
            find("different: " + check->worstTensor + " by " + std::to_string(check->worstError)
                + ", first at " + check->firstDifference);
        else
            m_events.count("run");
    }

    std::uint64_t m_seed;
    Dice m_dice;
    const TrialEvents &m_events;
    ModelSnapshot m_model{};
};

} // namespace

void tryModel(const Graph &forward, std::uint64_t seed, const TrialEvents &events)
{
    ModelTrial(seed, events).run(forward);
}

} // namespace planloom
