#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QFrame>

class QLineEdit;
class QScrollArea;

namespace planloom {

class CommandRegistry;

/// All shortcuts at a glance, by menu and view, over the window; a letter filters, Escape or a click on the
/// window leaves.
class ShortcutSheet : public QFrame
{
    Q_OBJECT
public:
    ShortcutSheet(CommandRegistry *registry, QWidget *parent);

    void open();
    void close();
    QLineEdit *filter() const { return m_filter; }
    /// What is shown, as text: a line a command.
    QString text() const { return m_text; }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void fill();
    void place();

    CommandRegistry *m_registry;
    QLineEdit *m_filter;
    QScrollArea *m_area;
    QPointer<QWidget> m_before;
    QString m_text;
};

} // namespace planloom
