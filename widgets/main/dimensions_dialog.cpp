#include "widgets/main/dimensions_dialog.h"

#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QGridLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

constexpr std::size_t kMostPlaces = 4; ///< In a line; the others are in its tooltip.
constexpr int kMostSize = std::numeric_limits<int>::max();

QString placesText(const std::vector<std::string> &places, std::size_t most)
{
    QStringList shown;
    for (std::size_t i = 0; i < places.size() && i < most; ++i)
        shown << QString::fromStdString(places[i]);
    return shown.join(QStringLiteral(", ")) + (places.size() > most ? QStringLiteral(", …") : QString());
}

int spinValue(std::int64_t size)
{
    return static_cast<int>(std::min<std::int64_t>(size, kMostSize));
}

} // namespace

DimensionsDialog::DimensionsDialog(
    const std::vector<InputDimension> &dimensions, Purpose purpose, const QString &problem, QWidget *parent)
    : QDialog(parent)
    , m_dimensions(dimensions)
{
    setWindowTitle(tr("Sizes of the Inputs"));
    auto *layout = new QVBoxLayout(this);
    const auto addText = [&](const QString &text) {
        auto *label = new QLabel(text, this);
        label->setTextFormat(Qt::PlainText);
        label->setWordWrap(true);
        layout->addWidget(label);
    };
    addText(purpose == Purpose::Open
            ? tr("The file leaves these sizes open. They become rows of the table (dim NAME = SIZE), where "
                 "they can be changed at any time.")
            : tr("Each size that is changed becomes a row of the table (dim NAME = SIZE): plan, memory and "
                 "time follow."));
    auto *inside = new QWidget(this);
    auto *grid = new QGridLayout(inside);
    int line = 0;
    for (const QString &title : {tr("Name"), tr("Size"), tr("Allowed"), tr("Where")})
        grid->addWidget(new QLabel(QStringLiteral("<b>%1</b>").arg(title), inside), 0, line++);
    for (std::size_t i = 0; i < m_dimensions.size(); ++i) {
        const InputDimension &dimension = m_dimensions[i];
        const QString name = QString::fromStdString(dimension.name);
        auto *label = new QLabel(name, inside);
        label->setTextFormat(Qt::PlainText);
        auto *size = new QSpinBox(inside);
        size->setRange(spinValue(dimension.least), spinValue(dimension.most));
        size->setValue(spinValue(dimension.size != 0 ? dimension.size : dimension.suggested));
        size->setAccessibleName(tr("Size of %1").arg(name));
        size->setMinimumWidth(fontMetrics().averageCharWidth() * 16);
        label->setBuddy(size);
        auto *range = new QLabel(QString::fromStdString(rangeText(dimension)), inside);
        auto *where = new QLabel(placesText(dimension.places, kMostPlaces), inside);
        where->setTextFormat(Qt::PlainText);
        where->setToolTip(placesText(dimension.places, dimension.places.size()));
        const int row = static_cast<int>(i) + 1;
        grid->addWidget(label, row, 0);
        grid->addWidget(size, row, 1);
        grid->addWidget(range, row, 2);
        grid->addWidget(where, row, 3);
        m_sizes.push_back(size);
    }
    grid->setColumnStretch(3, 1);
    grid->setRowStretch(static_cast<int>(m_dimensions.size()) + 1, 1);
    auto *area = new QScrollArea(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setWidget(inside);
    layout->addWidget(area, 1);
    if (!problem.isEmpty())
        addText(problem);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    buttons->addButton(purpose == Purpose::Open ? tr("&Open") : tr("&Apply"), QDialogButtonBox::AcceptRole)
        ->setDefault(true);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        const auto made = sizes();
        accept();
        Q_EMIT chosen(made);
    });
    layout->addWidget(buttons);
    resize(640, std::min(240 + 34 * static_cast<int>(m_dimensions.size()), 560));
    if (!m_sizes.empty()) {
        m_sizes.front()->setFocus();
        m_sizes.front()->selectAll();
    }
}

std::map<std::string, std::int64_t> DimensionsDialog::sizes() const
{
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t i = 0; i < m_sizes.size(); ++i) {
        const int shown = m_sizes[i]->value();
        // What the field cannot hold is left as it is.
        const InputDimension &dimension = m_dimensions[i];
        sizes[dimension.name] =
            shown == spinValue(dimension.size) && dimension.size > shown ? dimension.size : shown;
    }
    return sizes;
}

} // namespace planloom

#include "moc_dimensions_dialog.cpp"
