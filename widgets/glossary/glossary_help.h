#pragma once

#include <QtCore/QObject>
#include <QtCore/QPoint>
#include <QtCore/QPointer>
#include <QtCore/QString>

#include <vector>

class QWidget;

namespace planloom {

class GlossaryDialog;

/// The term of a widget: that of its object name, or of the nearest one around it that has one. Empty if none
/// has.
QString termOfWidget(const QWidget *widget);

/// Object names of the window's docks and widgets with their terms, in pairs: the one table of them.
struct NamedHelp {
    const char *widget;
    const char *term;
};
const std::vector<NamedHelp> &namedHelp();

/// What a tool tip says at this place of a widget, with the sentences of the term that stands there behind
/// what the widget says itself: of a label, of a section of a table's header, of a line of a text that is a
/// term. Empty where no term stands.
QString glossaryTipAt(QWidget &widget, const QPoint &position);

/// Help that follows the window: the glossary, the entry of what has the keyboard, and tool tips of labels
/// that are terms. One for a window, whose child it is.
class GlossaryHelp : public QObject
{
    Q_OBJECT
public:
    explicit GlossaryHelp(QWidget *window);
    ~GlossaryHelp() override;

    /// Shows the glossary, with this term chosen if it is one.
    void open(const QString &term = {});
    /// The same with the term of what has the keyboard.
    void openForFocus();
    GlossaryDialog *dialog() const; ///< Null while it is not shown.

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QWidget *m_window;
    QPointer<GlossaryDialog> m_dialog;
};

} // namespace planloom
