#pragma once

#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include <functional>

class QLabel;
class QLineEdit;
class QToolButton;

namespace planloom {

/// Asks for a name in a line of its own inside a panel, where a dialog would stand in the way. Enter takes
/// it, Escape gives up.
class NameBar : public QWidget
{
    Q_OBJECT
public:
    /// Why a name can't be had, in a sentence; empty if it can.
    using Check = std::function<QString(const QString &)>;

    explicit NameBar(QWidget *parent = nullptr);

    /// Shows itself with `label` before the line and `name` in it, and the keyboard in the line. `taken` is
    /// called once, with a name that `check` agrees to.
    void ask(
        const QString &label, const QString &name, Check check, std::function<void(const QString &)> taken);
    QLineEdit *lineEdit() const { return m_edit; }
    QString remark() const; ///< Why what is typed can't be had.

Q_SIGNALS:
    void closed(); ///< Taken or given up.

protected:
    void keyPressEvent(QKeyEvent *event) override;

private:
    void take();
    void close();
    void checkName();

    QLabel *m_label;
    QLineEdit *m_edit;
    QLabel *m_remark;
    QToolButton *m_take;
    Check m_check;
    std::function<void(const QString &)> m_taken;
};

} // namespace planloom
