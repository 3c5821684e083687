#include "widgets/table/table_links.h"

#include <QtConcurrent/QtConcurrentRun>

#include "engine/gesture/conflicts.h"

#include <algorithm>
#include <unordered_set>

namespace planloom {

namespace {

/// Selectors of a row: its own, and the second one of those about two selections.
std::vector<const Selector *> selectorsOf(const Row &row)
{
    std::vector<const Selector *> selectors;
    if (!hasSelector(row.rule))
        return selectors;
    selectors.push_back(&row.selector);
    if (const Selector *second = secondSelectorOf(row.rule))
        selectors.push_back(second);
    return selectors;
}

} // namespace

SelectionCache::Operators SelectionCache::select(const Selector &selector)
{
    std::string text = toString(selector);
    const auto found = m_known.find(text);
    if (found != m_known.end())
        return found->second;
    auto operators = std::make_shared<const std::vector<OperatorId>>(m_index->select(selector));
    if (m_operators + operators->size() <= kMostOperators) {
        m_operators += operators->size() + 64;
        m_known.emplace(std::move(text), operators);
    }
    return operators;
}

std::vector<OperatorId> operatorsOfRows(
    SelectionCache &cache, const std::vector<LinkedRow> &rows, const std::stop_token &stop)
{
    const Graph &graph = cache.index().graph();
    std::vector<char> marked(graph.operators.size(), 0);
    for (const LinkedRow &row : rows) {
        if (stop.stop_requested())
            return {};
        if (!row.line->row)
            continue;
        for (const Selector *selector : selectorsOf(*row.line->row)) {
            const auto selected = cache.select(*selector);
            bool forward = false;
            for (const OperatorId op : *selected) {
                if (graph.at(op).direction == Direction::Forward) {
                    marked[static_cast<std::size_t>(op.index)] = 1;
                    forward = true;
                }
            }
            for (const OperatorId op : *selected) {
                if (!forward)
                    marked[static_cast<std::size_t>(op.index)] = 1;
            }
        }
    }
    std::vector<OperatorId> operators;
    for (std::size_t i = 0; i < marked.size(); ++i) {
        if (marked[i] != 0)
            operators.push_back({static_cast<std::int32_t>(i)});
    }
    return operators;
}

std::vector<std::uint64_t> rowsActingOn(SelectionCache &cache, const std::vector<LinkedRow> &rows,
    const std::vector<OperatorId> &operators, const std::stop_token &stop)
{
    const Graph &graph = cache.index().graph();
    std::vector<char> marked(graph.operators.size(), 0);
    for (const OperatorId op : operators) {
        if (!op.valid() || static_cast<std::size_t>(op.index) >= marked.size())
            continue;
        marked[static_cast<std::size_t>(op.index)] = 1;
        const Operator &itself = graph.at(op);
        if (itself.direction == Direction::Backward && itself.mirror.valid())
            marked[static_cast<std::size_t>(itself.mirror.index)] = 1;
    }
    std::vector<std::uint64_t> keys;
    for (const LinkedRow &row : rows) {
        if (stop.stop_requested())
            return {};
        if (!row.line->row)
            continue;
        bool acts = false;
        for (const Selector *selector : selectorsOf(*row.line->row)) {
            const auto selected = cache.select(*selector);
            acts = acts || std::any_of(selected->begin(), selected->end(), [&](OperatorId op) {
                return marked[static_cast<std::size_t>(op.index)] != 0;
            });
        }
        if (acts)
            keys.push_back(row.key);
    }
    return keys;
}

std::vector<std::pair<std::int32_t, RowReach>> reachOfRows(
    const PlanUpdate &update, const std::stop_token &stop)
{
    std::vector<std::pair<std::int32_t, RowReach>> reach;
    if (!update.plan)
        return reach;
    std::vector<std::unordered_set<std::int32_t>> devices(update.rows.size());
    for (const OperatorDecision &decision : update.plan->decisions) {
        if (stop.stop_requested())
            return {};
        for (const RowId row : decision.rows) {
            if (row.index < 0 || static_cast<std::size_t>(row.index) >= devices.size())
                continue;
            auto &of = devices[static_cast<std::size_t>(row.index)];
            for (const DeviceId device : decision.devices)
                of.insert(device.index);
        }
    }
    for (std::size_t i = 0; i < update.rows.size(); ++i) {
        if (devices[i].empty())
            continue;
        reach.push_back({update.rows[i].line,
            {update.rows[i].report.bound, static_cast<std::int32_t>(devices[i].size())}});
    }
    return reach;
}

TableLinks::TableLinks(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
}

TableLinks::~TableLinks()
{
    for (Question *question : {&m_operators, &m_preview, &m_acting, &m_hover, &m_reach, &m_conflicts})
        question->stop.request_stop();
    m_pool.waitForDone(); // each looks at its token for every row
}

void TableLinks::setModel(const ModelSnapshot &model)
{
    for (Question *question : {&m_operators, &m_preview, &m_acting, &m_hover, &m_reach, &m_conflicts}) {
        question->stop.request_stop();
        ++question->number;
    }
    m_cache = model && model->index ? std::make_shared<SelectionCache>(model->index) : nullptr;
}

void TableLinks::ask(
    Question &question, std::function<Answer(SelectionCache *, const std::stop_token &)> work)
{
    question.stop.request_stop();
    question.stop = std::stop_source{};
    const std::uint64_t number = ++question.number;
    auto *watcher = new QFutureWatcher<std::shared_ptr<Answer>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [watcher, number, &question] {
        const auto answer = watcher->result();
        watcher->deleteLater();
        if (question.number == number && *answer)
            (*answer)();
    });
    watcher->setFuture(QtConcurrent::run(
        &m_pool, [work = std::move(work), cache = m_cache, stop = question.stop.get_token()] {
            return std::make_shared<Answer>(stop.stop_requested() ? Answer{} : work(cache.get(), stop));
        }));
}

void TableLinks::findOperators(std::vector<LinkedRow> rows)
{
    ask(m_operators,
        [this, rows = std::move(rows)](SelectionCache *cache, const std::stop_token &stop) -> Answer {
            auto operators = cache ? operatorsOfRows(*cache, rows, stop) : std::vector<OperatorId>{};
            return [this, operators = std::move(operators)] { Q_EMIT operatorsFound(operators); };
        });
}

void TableLinks::findPreview(std::vector<LinkedRow> rows)
{
    ask(m_preview,
        [this, rows = std::move(rows)](SelectionCache *cache, const std::stop_token &stop) -> Answer {
            auto operators = cache ? operatorsOfRows(*cache, rows, stop) : std::vector<OperatorId>{};
            return [this, operators = std::move(operators)] { Q_EMIT previewFound(operators); };
        });
}

void TableLinks::findActing(std::vector<LinkedRow> rows, std::vector<OperatorId> operators)
{
    ask(m_acting,
        [this, rows = std::move(rows), operators = std::move(operators)](
            SelectionCache *cache, const std::stop_token &stop) -> Answer {
            auto keys = cache ? rowsActingOn(*cache, rows, operators, stop) : std::vector<std::uint64_t>{};
            return [this, keys = std::move(keys)] { Q_EMIT actingFound(keys); };
        });
}

void TableLinks::findHover(std::vector<LinkedRow> rows, OperatorId op)
{
    ask(m_hover,
        [this, rows = std::move(rows), op](SelectionCache *cache, const std::stop_token &stop) -> Answer {
            auto keys =
                cache && op.valid() ? rowsActingOn(*cache, rows, {op}, stop) : std::vector<std::uint64_t>{};
            return [this, keys = std::move(keys)] { Q_EMIT hoverFound(keys); };
        });
}

void TableLinks::findReach(const PlanUpdateSnapshot &update)
{
    ask(m_reach, [this, update](SelectionCache *, const std::stop_token &stop) -> Answer {
        auto reach = reachOfRows(*update, stop);
        return [this, revision = update->revision, reach = std::move(reach)] {
            Q_EMIT reachFound(revision, reach);
        };
    });
}

void TableLinks::findConflicts(const PlanUpdateSnapshot &update)
{
    ask(m_conflicts, [this, update](SelectionCache *, const std::stop_token &) -> Answer {
        std::map<std::int32_t, QString> sentences;
        for (const RowConflict &conflict : update->conflicts) {
            for (const std::int32_t line : conflict.lines) {
                QString &sentence = sentences[line];
                sentence += (sentence.isEmpty() ? QString() : QStringLiteral(". "))
                    + QString::fromStdString(conflict.words);
            }
        }
        return [this, revision = update->revision, sentences = std::move(sentences)] {
            Q_EMIT conflictsFound(revision, sentences);
        };
    });
}

} // namespace planloom

#include "moc_table_links.cpp"
