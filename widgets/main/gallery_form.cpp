#include "widgets/main/gallery_form.h"

#include <QtGui/QFontDatabase>
#include <QtGui/QRegularExpressionValidator>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>

#include <string_view>

namespace planloom {

namespace {

/// What a spec says of each parameter.
std::map<std::string, std::string> saidIn(const std::string &spec)
{
    std::map<std::string, std::string> said;
    const std::size_t colon = spec.find(':');
    std::string_view rest =
        colon == std::string::npos ? std::string_view{} : std::string_view(spec).substr(colon + 1);
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        if (const std::size_t equals = item.find('='); equals != std::string_view::npos)
            said.emplace(item.substr(0, equals), item.substr(equals + 1));
    }
    return said;
}

} // namespace

GalleryForm::GalleryForm(QWidget *parent)
    : QWidget(parent)
    , m_picture(new QLabel(this))
    , m_layout(new QFormLayout(this))
{
    m_layout->setContentsMargins(6, 4, 6, 4);
    m_layout->setVerticalSpacing(2);
    m_layout->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    QFont drawing = QFontDatabase::systemFont(QFontDatabase::FixedFont);
    drawing.setPointSizeF(font().pointSizeF() * 0.8); // wide, and only looked at
    m_picture->setFont(drawing);
    m_picture->setTextFormat(Qt::PlainText);
    m_layout->addRow(m_picture);
}

void GalleryForm::setEntry(const GalleryEntry *entry, const std::string &spec)
{
    const auto said = saidIn(spec);
    if (entry && *entry == m_entry && !m_fields.empty()) { // what is being typed into stays
        for (const GalleryParameter &parameter : m_entry.parameters) {
            const auto found = said.find(parameter.name);
            const QString value = QString::fromStdString(found == said.end() ? std::string{} : found->second);
            const QSignalBlocker blocker(m_fields.at(parameter.name));
            if (auto *line = qobject_cast<QLineEdit *>(m_fields.at(parameter.name));
                line && line->text() != value)
                line->setText(value);
            if (auto *choice = qobject_cast<QComboBox *>(m_fields.at(parameter.name)))
                choice->setCurrentIndex(std::max(choice->findData(value), 0));
        }
        return;
    }
    m_entry = entry ? *entry : GalleryEntry{};
    m_fields.clear();
    while (m_layout->rowCount() > 1)
        m_layout->removeRow(1);
    QStringList lines;
    for (const std::string &line : m_entry.picture)
        lines.append(QString::fromStdString(line));
    m_picture->setText(lines.join(QLatin1Char('\n')));
    m_picture->setToolTip(QString::fromStdString(m_entry.paper));
    m_picture->setVisible(!lines.isEmpty());
    for (const GalleryParameter &parameter : m_entry.parameters) {
        const auto found = said.find(parameter.name);
        QWidget *field = makeField(parameter, found == said.end() ? std::string{} : found->second);
        field->setAccessibleName(QString::fromStdString(parameter.name));
        const bool ranges = parameter.kind == GalleryParameterKind::Count;
        field->setToolTip(
            (parameter.meaning.empty() ? QString()
                                       : QString::fromStdString(parameter.meaning) + QLatin1Char('\n'))
            + (ranges ? tr("from %1 to %2; ").arg(parameter.least).arg(parameter.most) : QString())
            + tr("if nothing is said: %1").arg(QString::fromStdString(parameter.fallback)));
        m_fields.emplace(parameter.name, field);
        m_layout->addRow(QString::fromStdString(parameter.name), field);
    }
}

QWidget *GalleryForm::makeField(const GalleryParameter &parameter, const std::string &said)
{
    const QString value = QString::fromStdString(said);
    using Kind = GalleryParameterKind;
    if (parameter.kind == Kind::Word || parameter.kind == Kind::Switch) {
        auto *choice = new QComboBox(this);
        const bool isSwitch = parameter.kind == Kind::Switch;
        const QString fallback = !isSwitch ? QString::fromStdString(parameter.fallback)
            : parameter.fallback == "1"    ? tr("on")
                                           : tr("off");
        choice->addItem(tr("%1 (default)").arg(fallback), QString());
        if (isSwitch) {
            choice->addItem(tr("on"), QStringLiteral("1"));
            choice->addItem(tr("off"), QStringLiteral("0"));
        }
        for (const std::string &word : parameter.words)
            choice->addItem(QString::fromStdString(word), QString::fromStdString(word));
        choice->setCurrentIndex(std::max(choice->findData(value), 0));
        connect(choice, &QComboBox::currentIndexChanged, this, &GalleryForm::edited);
        return choice;
    }
    auto *line = new QLineEdit(value, this);
    line->setPlaceholderText(QString::fromStdString(parameter.fallback));
    static const QRegularExpression kValue(QStringLiteral("[A-Za-z0-9*|()+_-]{0,400}"));
    line->setValidator(new QRegularExpressionValidator(kValue, line));
    connect(line, &QLineEdit::textEdited, this, &GalleryForm::edited);
    return line;
}

void GalleryForm::setDecided(const std::vector<GalleryValue> &values)
{
    for (const GalleryValue &value : values) {
        const auto found = m_fields.find(value.parameter);
        if (found == m_fields.end())
            continue;
        if (auto *line = qobject_cast<QLineEdit *>(found->second))
            line->setPlaceholderText(
                value.value == "solver" ? tr("left to the solver") : QString::fromStdString(value.value));
    }
}

std::string GalleryForm::valueOf(const GalleryParameter &parameter) const
{
    const QWidget *field = m_fields.at(parameter.name);
    if (const auto *choice = qobject_cast<const QComboBox *>(field))
        return choice->currentData().toString().toStdString();
    return qobject_cast<const QLineEdit *>(field)->text().trimmed().toStdString();
}

std::string GalleryForm::spec() const
{
    std::string spec = m_entry.name;
    for (const GalleryParameter &parameter : m_entry.parameters)
        if (const std::string value = valueOf(parameter); !value.empty())
            spec += (spec.size() == m_entry.name.size() ? ":" : ",") + parameter.name + "=" + value;
    return spec;
}

QWidget *GalleryForm::field(const std::string &parameter) const
{
    const auto found = m_fields.find(parameter);
    return found == m_fields.end() ? nullptr : found->second;
}

} // namespace planloom

#include "moc_gallery_form.cpp"
