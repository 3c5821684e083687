#include "widgets/main/gallery_bar.h"

#include <QtCore/QSignalBlocker>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>

#include "engine/plan/gallery.h"

namespace planloom {

std::string gallerySpecFor(const std::string &name, int devices)
{
    if (name == "pipeline")
        return "pipeline:schedule=1f1b";
    if (name != "3d")
        return name;
    // Tensor parallel innermost, then pipeline, then data parallel, each two-fold while devices are even.
    int tp = 1;
    int pp = 1;
    int dp = devices;
    if (dp % 2 == 0) {
        tp = 2;
        dp /= 2;
    }
    if (dp % 2 == 0) {
        pp = 2;
        dp /= 2;
    }
    return "3d:dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp) + ",pp=" + std::to_string(pp) + ",schedule=1f1b";
}

GalleryBar::GalleryBar(QWidget *parent) : QWidget(parent), m_combo(new QComboBox(this))
{
    auto *label = new QLabel(tr("&Gallery"), this);
    label->setBuddy(m_combo);
    m_combo->setEditable(true);
    m_combo->setInsertPolicy(QComboBox::NoInsert);
    m_combo->setCompleter(nullptr);
    m_combo->setMinimumContentsLength(38);
    m_combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_combo->setAccessibleName(tr("Gallery plan and its parameters"));
    m_combo->lineEdit()->setPlaceholderText(tr("Choose a plan; its rows replace the table"));
    m_combo->setToolTip(tr("Choose a plan, or edit its parameters and press Return.\nIts rows replace the table; "
                           "undo in the table brings the old ones back."));
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(4, 0, 4, 0);
    layout->addWidget(label);
    layout->addWidget(m_combo);
    fill();
    m_combo->setCurrentIndex(-1);
    connect(m_combo, &QComboBox::activated, this, [this](int index) {
        const QString spec = m_combo->itemData(index).toString();
        m_combo->setEditText(spec);
        Q_EMIT chosen(spec);
    });
    connect(m_combo->lineEdit(), &QLineEdit::returnPressed, this, [this] {
        if (!spec().isEmpty())
            Q_EMIT chosen(spec());
    });
}

void GalleryBar::fill()
{
    const QSignalBlocker blocker(m_combo);
    const QString text = m_combo->currentText();
    m_combo->clear();
    for (const GalleryEntry &entry : galleryEntries()) {
        m_combo->addItem(QString::fromStdString(entry.name + " – " + entry.meaning),
            QString::fromStdString(gallerySpecFor(entry.name, m_devices)));
        QString parameters;
        for (const std::string &parameter : entry.parameters)
            parameters += (parameters.isEmpty() ? QString() : QStringLiteral(", ")) + QString::fromStdString(parameter);
        m_combo->setItemData(m_combo->count() - 1, tr("Parameters: %1").arg(parameters), Qt::ToolTipRole);
    }
    m_combo->setCurrentIndex(-1);
    m_combo->setEditText(text);
}

void GalleryBar::setDeviceCount(int devices)
{
    if (devices == m_devices)
        return;
    m_devices = devices;
    fill();
}

void GalleryBar::setSpec(const QString &spec)
{
    m_combo->setEditText(spec);
}

QString GalleryBar::spec() const
{
    return m_combo->currentText().trimmed();
}

} // namespace planloom
