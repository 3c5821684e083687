#include "widgets/table/kinds/limit_cell_editor.h"

#include "engine/table/table_text.h"

#include <QtWidgets/QComboBox>
#include <QtWidgets/QDoubleSpinBox>

#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

bool LimitCellEditor::canShow(const std::string &text)
{
    if (text.empty())
        return true;
    const auto rule = ruleOf("limit", text);
    if (!rule)
        return false;
    // Three decimals must be enough.
    const LimitRule limit = std::get<LimitRule>(*rule);
    return limit.value * 8 % (limit.kind == LimitRule::Kind::Time ? 1000 : 1 << 20) == 0;
}

LimitCellEditor::LimitCellEditor(QWidget *parent)
    : CellEditor(parent)
    , m_kind(new QComboBox(this))
    , m_amount(new QDoubleSpinBox(this))
    , m_unit(new QComboBox(this))
    , m_links(new QComboBox(this))
{
    m_kind->addItem(tr("memory"), QStringLiteral("memory"));
    m_kind->addItem(tr("time"), QStringLiteral("time"));
    m_kind->addItem(tr("traffic"), QStringLiteral("traffic"));
    m_kind->setAccessibleName(tr("What is limited"));
    m_amount->setRange(0.001, 1e9);
    m_amount->setDecimals(3);
    m_amount->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    m_amount->setAccessibleName(tr("At most"));
    m_unit->setAccessibleName(tr("Unit"));
    addField(m_kind, 2);
    addField(m_amount, 2);
    addField(m_unit, 1);
    m_links->setAccessibleName(tr("What carries it"));
    m_links->addItem(tr("by each device"), QString());
    m_links->addItem(tr("per link"), QStringLiteral(" per link"));
    m_links->addItem(tr("on links inside nodes"), QStringLiteral(" on device"));
    m_links->addItem(tr("on network cards"), QStringLiteral(" on card"));
    m_links->addItem(tr("on links of nodes"), QStringLiteral(" on node"));
    addField(m_links, 2);
    fillUnits();
    connect(m_kind, &QComboBox::currentIndexChanged, this, [this] {
        fillUnits();
        touch();
    });
    connect(m_amount, &QDoubleSpinBox::textChanged, this, &LimitCellEditor::touch);
    connect(m_unit, &QComboBox::currentIndexChanged, this, &LimitCellEditor::touch);
    connect(m_links, &QComboBox::currentIndexChanged, this, &LimitCellEditor::touch);
}

void LimitCellEditor::fillUnits()
{
    const QSignalBlocker blocker(m_unit);
    m_unit->clear();
    const bool memory = m_kind->currentIndex() != 1;
    m_unit->addItems(memory ? QStringList{QStringLiteral("MiB"), QStringLiteral("GiB"), QStringLiteral("TiB")}
                            : QStringList{QStringLiteral("us"), QStringLiteral("ms"), QStringLiteral("s")});
    m_unit->setCurrentIndex(1);
    m_links->setVisible(m_kind->currentIndex() == 2);
}

QString LimitCellEditor::text() const
{
    QString amount = QString::number(m_amount->value(), 'f', 3);
    while (amount.endsWith(QLatin1Char('0')))
        amount.chop(1);
    if (amount.endsWith(QLatin1Char('.')))
        amount.chop(1);
    return m_kind->currentData().toString() + QLatin1Char(' ') + amount + m_unit->currentText()
        + (m_kind->currentIndex() == 2 ? m_links->currentData().toString() : QString());
}

void LimitCellEditor::setText(const QString &text)
{
    const auto rule = ruleOf("limit", text.toStdString());
    const LimitRule limit =
        rule ? std::get<LimitRule>(*rule) : LimitRule{LimitRule::Kind::Memory, std::int64_t{80} << 30};
    m_kind->setCurrentIndex(static_cast<int>(limit.kind));
    fillUnits();
    // As it is written behind the amount; levels that only this cluster has are there as long as they are
    // said.
    const std::string whole = print(Rule{limit});
    const std::size_t behind = whole.find(' ', whole.find(' ') + 1);
    const QString links =
        behind == std::string::npos ? QString() : QString::fromStdString(whole.substr(behind));
    if (m_links->findData(links) < 0)
        m_links->addItem(links.trimmed(), links);
    m_links->setCurrentIndex(m_links->findData(links));
    // The largest unit in which the amount is written exactly.
    const std::vector<std::int64_t> units = limit.kind != LimitRule::Kind::Time
        ? std::vector<std::int64_t>{std::int64_t{1} << 20, std::int64_t{1} << 30, std::int64_t{1} << 40}
        : std::vector<std::int64_t>{1000, 1'000'000, 1'000'000'000};
    int unit = 0;
    for (int i = 0; i < static_cast<int>(units.size()); ++i) {
        if (limit.value >= units[static_cast<std::size_t>(i)]
            && limit.value * 8 % units[static_cast<std::size_t>(i)] == 0)
            unit = i;
    }
    m_unit->setCurrentIndex(unit);
    m_amount->setValue(
        static_cast<double>(limit.value) / static_cast<double>(units[static_cast<std::size_t>(unit)]));
    setUntouched();
}

namespace {

CellEditor *newLimitEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return LimitCellEditor::canShow(value) ? new LimitCellEditor(parent) : nullptr;
}

void suggestLimit(const ValueChoices &, std::vector<std::string> &texts)
{
    for (const char *limit : {"memory 16GiB", "memory 24GiB", "memory 40GiB", "memory 80GiB", "time 50ms",
             "time 100ms", "traffic 1GiB", "traffic 10GiB", "traffic 2GiB per link", "traffic 8GiB on node"})
        texts.emplace_back(limit);
}

} // namespace

constinit const RuleCells kLimitCells{
    .word = {.word = "limit", .shape = RuleTraits<LimitRule>::shape, .value = "memory 80GiB"},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the most memory, time or traffic there may be"),
    .newEditor = newLimitEditor,
    .suggest = suggestLimit,
};

} // namespace planloom
