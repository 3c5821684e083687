#include "widgets/design/engine_job.h"

#include "engine/base/background_disposal.h"
#include "engine/frontend/import_onnx.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/gesture/conflicts.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/in_flight.h"
#include "engine/lowering/lower.h"
#include "engine/plan/gallery.h"
#include "engine/simulate/limits.h"
#include "engine/simulate/simulate.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <variant>

namespace planloom {

namespace {

constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{1} << 30;
constexpr std::string_view kDimensionOption = "dim.";

Result<std::string> readFile(const std::filesystem::path &path)
{
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::NotFound, "there is no file \"" + path.string() + "\"", {}, path.string()};
    if (!std::filesystem::is_regular_file(status))
        return Error{ErrorCode::InvalidInput, "\"" + path.string() + "\" is not a file", {}, path.string()};
    const auto size = std::filesystem::file_size(path, failure);
    if (!failure && size > kMostFileBytes) {
        return Error{ErrorCode::ResourceLimit,
            "the model file has " + std::to_string(size) + " bytes; the window opens up to "
                + std::to_string(kMostFileBytes),
            "keep its weights in a file of their own (external data)", path.string()};
    }
    std::ifstream stream(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    if (!stream.good() && !stream.eof())
        return Error{ErrorCode::Io, "\"" + path.string() + "\" cannot be read", {}, path.string()};
    return bytes;
}

Result<ImportOptions> importOptions(const std::map<std::string, std::string> &options, std::stop_token stop)
{
    ImportOptions result;
    result.stop = std::move(stop);
    for (const auto &[name, value] : options) {
        if (name == "loss") {
            result.lossOutput = value;
        } else if (name.starts_with(kDimensionOption)) {
            std::int64_t size = 0;
            const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), size);
            if (failure != std::errc{} || end != value.data() + value.size() || size < 1) {
                return Error{ErrorCode::InvalidInput,
                    "the size of dimension \"" + name.substr(kDimensionOption.size()) + "\" is \"" + value
                        + "\", not a positive number"};
            }
            result.dimensions[name.substr(kDimensionOption.size())] = size;
        }
    }
    return result;
}

/// Exporters call every graph alike ("torch_jit"): the file's name says more.
std::string nameOfSource(const std::string &source)
{
    if (!isZooSpec(source))
        return std::filesystem::path(source).stem().string();
    const std::size_t begin = source.find(':') + 1;
    return source.substr(begin, source.find('?') - begin);
}

Error cancelled()
{
    return {ErrorCode::Cancelled, "stopped"};
}

void sumUp(PlanUpdate &update)
{
    const Timeline &timeline = *update.scene->timeline;
    update.operatorNanoseconds.assign(update.model->graph->operators.size(), 0);
    for (std::size_t row = 0; row < timeline.spans.size(); ++row) {
        const Instruction *instruction = update.scene->findInstruction(row);
        if (instruction && instruction->kind == InstructionKind::Kernel && instruction->op.valid()) {
            update.operatorNanoseconds[static_cast<std::size_t>(instruction->op.index)]
                += timeline.spans.duration[row];
        }
    }
}

/// Takes an answer from grade to grade.
class Planner
{
public:
    Planner(const PlanRequest &request, std::stop_token stop, const std::function<void(PlanUpdateSnapshot)> &report)
        : m_request(request), m_stop(std::move(stop)), m_report(report)
    {
        m_update.revision = request.revision;
        m_update.model = request.model;
        m_update.tableText = request.tableText;
    }

    void run()
    {
        if (auto done = work(); !done && done.error().code != ErrorCode::Cancelled) {
            m_update.error = std::move(done).error();
            finish();
        }
    }

private:
    Result<void> work()
    {
        if (m_request.begin && m_request.begin->scene) {
            m_update = *m_request.begin;
            m_update.revision = m_request.revision;
            return prove();
        }
        const GraphSnapshot &graph = m_request.model->graph;
        TRY(m_update.cluster, cluster());
        if (!m_request.gallery.empty()) {
            TRY(const ConstraintTable rows, galleryTable(m_request.gallery, graph, m_request.deviceCount));
            m_update.tableText = print(rows);
        }
        const TableText table = readTable(m_update.tableText);
        m_update.textErrors = table.errors;
        TRY(Completion completion, completePlan(graph, m_request.deviceCount, table.table));
        const auto lines = linesOfRows(m_update.tableText, table.errors);
        for (std::size_t row = 0; row < table.table.rows.size(); ++row) {
            m_update.rows.push_back({row < lines.size() ? lines[row] : 0, print(table.table.rows[row]),
                row < completion.rows.size() ? completion.rows[row] : RowReport{}});
        }
        if (m_update.errorCount() > 0 || !completion.plan.graph) {
            nameConflicts(completion);
            finish();
            return {};
        }
        publish(PlanGrade::Checked);
        m_update.plan = sharedInBackground(std::move(completion.plan));
        publish(PlanGrade::Planned);
        if (m_request.upTo <= PlanGrade::Planned) {
            finish();
            return {};
        }
        if (m_stop.stop_requested())
            return cancelled();

        TRY(ExecutionPlan lowered, lower(*m_update.plan, m_update.cluster, m_stop));
        for (auto &[row, sentence] : liftedLimits(*m_update.plan, lowered)) {
            if (const auto index = static_cast<std::size_t>(row.index); index < m_update.rows.size())
                m_update.rows[index].report.warning = std::move(sentence);
        }
        const auto execution = sharedInBackground(std::move(lowered));
        SimulateOptions options;
        options.onFigures = [&](const Timeline &figures) {
            m_update.summary = summaryOf(figures);
            holdAgainstLimits(table.table, figures);
            publish(PlanGrade::Timed);
        };
        TRY(Timeline timeline, simulate(*execution, m_update.cluster, options, m_stop));
        m_update.scene = makeTimelineScene(
            sharedInBackground(std::move(timeline)), execution, m_update.cluster, decidedBy(*m_update.plan));
        sumUp(m_update);
        if (m_request.upTo > PlanGrade::Simulated)
            publish(PlanGrade::Simulated);
        m_update.grade = PlanGrade::Simulated;
        return prove();
    }

    /// Which rows can't hold together, and what would help.
    void nameConflicts(const Completion &completion)
    {
        GestureContext context;
        context.index = m_request.model->index;
        context.batch = m_request.model->batch;
        context.document = TableDocument(m_update.tableText);
        context.cluster = m_update.cluster;
        context.deviceCount = m_request.deviceCount;
        for (const TableLineSnapshot &line : context.document.lines()) {
            if (!line->row || !line->row->enabled)
                continue;
            if (const auto *mesh = std::get_if<MeshRule>(&line->row->rule))
                context.mesh = mesh->axes;
        }
        m_update.conflicts = findConflicts(context, completion);
    }

    /// Limits are rows about the plan's figures: what is broken is an error of its row, what holds is said beside it.
    void holdAgainstLimits(const ConstraintTable &table, const Timeline &timeline)
    {
        for (auto &[row, error] : brokenLimits(table, timeline)) {
            if (const auto index = static_cast<std::size_t>(row.index); index < m_update.rows.size())
                m_update.rows[index].report.error = std::move(error);
        }
        std::vector<std::string> remarks = limitRemarks(table, timeline);
        for (std::size_t row = 0; row < remarks.size() && row < m_update.rows.size(); ++row)
            m_update.rows[row].remark = std::move(remarks[row]);
    }

    Result<Cluster> cluster() const
    {
        if (!m_request.clusterJson.empty() && m_request.cluster.find('/') == std::string::npos)
            return clusterFromJson(m_request.clusterJson, m_request.deviceCount);
        if (m_request.cluster.find('/') == std::string::npos)
            return clusterNamed(m_request.cluster + ":" + std::to_string(m_request.deviceCount));
        auto read = clusterNamed(m_request.cluster);
        if (!read && read.error().code == ErrorCode::NotFound && !m_request.clusterJson.empty())
            return clusterFromJson(m_request.clusterJson, m_request.deviceCount);
        return read;
    }

    Result<void> prove()
    {
        if (m_request.upTo <= PlanGrade::Simulated) {
            finish();
            return {};
        }
        TRY(m_update.verdict, verify(*m_update.scene->plan, m_stop));
        m_update.grade = PlanGrade::Verified;
        finish();
        return {};
    }

    void publish(PlanGrade grade)
    {
        m_update.grade = grade;
        if (!m_stop.stop_requested())
            m_report(sharedInBackground(PlanUpdate(m_update)));
    }

    void finish()
    {
        m_update.final = true;
        publish(m_update.grade);
    }

    const PlanRequest &m_request;
    std::stop_token m_stop;
    const std::function<void(PlanUpdateSnapshot)> &m_report;
    PlanUpdate m_update;
};

} // namespace

std::size_t PlanUpdate::errorCount() const
{
    return textErrors.size()
        + static_cast<std::size_t>(
            std::count_if(rows.begin(), rows.end(), [](const RowLine &row) { return row.report.error.has_value(); }));
}

Result<ModelSnapshot> openModel(const ModelSource &source, std::stop_token stop)
{
    OpenedModel model;
    model.source = source;
    Graph forward;
    if (isZooSpec(source.source)) {
        TRY(forward, buildZooModel(source.source));
    } else {
        const std::filesystem::path path(source.source);
        if (source.content.empty()) {
            TRY(model.source.content, readFile(path));
        }
        TRY(const ImportOptions options, importOptions(source.options, stop));
        TRY(forward, importOnnxBytes(model.source.content, path.parent_path(), options, path.filename().string()));
    }
    model.name = nameOfSource(source.source);
    if (stop.stop_requested())
        return cancelled();
    model.forwardOperators = static_cast<std::int64_t>(forward.operators.size());
    for (const Tensor &tensor : forward.tensors) {
        if (tensor.role == TensorRole::Weight && !tensor.of.valid())
            model.parameters += elementCount(tensor.type.shape);
    }
    TrainingOptions training;
    training.optimizer = OperatorKind::AdamWStep;
    auto step = buildTrainingStep(forward, training);
    if (step) {
        model.graph = sharedInBackground(*std::move(step));
    } else {
        model.remark = step.error().message;
        model.graph = sharedInBackground(std::move(forward));
    }
    if (stop.stop_requested())
        return cancelled();
    model.index = std::make_shared<const SelectorIndex>(model.graph);
    model.batch = analyseBatch(*model.graph);
    return sharedInBackground(std::move(model));
}

void makePlan(
    const PlanRequest &request, std::stop_token stop, const std::function<void(PlanUpdateSnapshot)> &report)
{
    Planner(request, std::move(stop), report).run();
}

std::optional<TextPlace> textPlaceOf(const Error &error)
{
    constexpr std::string_view kPrefix = "line:";
    if (!error.where.starts_with(kPrefix))
        return {};
    TextPlace place;
    const char *end = error.where.data() + error.where.size();
    const auto [colon, failure] = std::from_chars(error.where.data() + kPrefix.size(), end, place.line);
    if (failure != std::errc{})
        return {};
    if (colon != end)
        std::from_chars(colon + 1, end, place.column);
    return place;
}

std::vector<std::int32_t> linesOfRows(const std::string &text, const std::vector<Error> &errors)
{
    std::vector<std::int32_t> wrong;
    for (const Error &error : errors) {
        if (const auto place = textPlaceOf(error))
            wrong.push_back(place->line - 1);
    }
    std::vector<std::int32_t> lines;
    std::int32_t line = 0;
    for (std::size_t begin = 0; begin < text.size(); ++line) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t first = text.find_first_not_of(" \t\r", begin);
        const bool holdsRow = first < end && text[first] != '#';
        if (holdsRow && std::find(wrong.begin(), wrong.end(), line) == wrong.end())
            lines.push_back(line);
        begin = end + 1;
    }
    return lines;
}

} // namespace planloom
