#include "widgets/history/name_bar.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QToolButton>

#include "widgets/common/palette.h"

#include <utility>

namespace planloom {

NameBar::NameBar(QWidget *parent)
    : QWidget(parent)
    , m_label(new QLabel(this))
    , m_edit(new QLineEdit(this))
    , m_remark(new QLabel(this))
    , m_take(new QToolButton(this))
{
    m_label->setBuddy(m_edit);
    m_edit->setMaxLength(80);
    m_take->setText(tr("Take"));
    m_take->setToolTip(tr("Take this name (Enter)"));
    m_take->setAccessibleName(tr("Take this name"));
    auto *giveUp = new QToolButton(this);
    giveUp->setText(tr("Cancel"));
    giveUp->setToolTip(tr("Leave everything as it is (Esc)"));
    giveUp->setAccessibleName(tr("Cancel naming"));
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(6, 2, 6, 2);
    layout->addWidget(m_label);
    layout->addWidget(m_edit, 1);
    layout->addWidget(m_remark);
    layout->addWidget(m_take);
    layout->addWidget(giveUp);
    connect(m_edit, &QLineEdit::textChanged, this, &NameBar::checkName);
    connect(m_edit, &QLineEdit::returnPressed, this, &NameBar::take);
    connect(m_take, &QToolButton::clicked, this, &NameBar::take);
    connect(giveUp, &QToolButton::clicked, this, &NameBar::close);
    hide();
}

void NameBar::ask(
    const QString &label, const QString &name, Check check, std::function<void(const QString &)> taken)
{
    m_check = std::move(check);
    m_taken = std::move(taken);
    m_label->setText(label);
    m_edit->setAccessibleName(label);
    m_edit->setText(name);
    m_edit->selectAll();
    checkName();
    show();
    m_edit->setFocus(Qt::ShortcutFocusReason);
}

QString NameBar::remark() const
{
    return m_remark->text();
}

void NameBar::checkName()
{
    const QString name = m_edit->text().trimmed();
    const QString why = m_check && !name.isEmpty() ? m_check(name) : QString();
    m_remark->setText(why);
    m_remark->setVisible(!why.isEmpty());
    QPalette colours = palette();
    colours.setColor(QPalette::WindowText, paletteFor(*this).error);
    m_remark->setPalette(colours);
    m_edit->setAccessibleDescription(why);
    m_take->setEnabled(!name.isEmpty() && why.isEmpty());
}

void NameBar::take()
{
    if (!m_take->isEnabled())
        return;
    const auto taken = std::exchange(m_taken, nullptr);
    const QString name = m_edit->text().trimmed();
    close();
    if (taken)
        taken(name);
}

void NameBar::close()
{
    m_taken = nullptr;
    hide();
    Q_EMIT closed();
}

void NameBar::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Escape) {
        close();
        return;
    }
    QWidget::keyPressEvent(event);
}

} // namespace planloom

#include "moc_name_bar.cpp"
