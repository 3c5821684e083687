#pragma once

#include <QtWidgets/QWidget>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

class QPushButton;
class QVBoxLayout;

namespace planloom {

/// How much a notice matters; shown as an icon and a colour.
enum class NoticeKind : std::uint8_t { Info, Warning, Error };

/// A button of a notice.
struct NoticeAction {
    QString text{};
    std::function<void()> act{};
    bool keeps = false; ///< The notice stays after it.
};

/// Something to tell that is not about one place of a view, with what can be done about it.
struct Notice {
    QString id{}; ///< A newer notice with the same id takes its place.
    NoticeKind kind = NoticeKind::Info;
    QString text{};
    std::vector<NoticeAction> actions{};
    bool closable = true;
};

/// Strips along the top of the window, one a notice, that wait without stopping anybody: the model's file
/// changed, the session is read-only, what a dropped file is for.
class NoticeBar : public QWidget
{
    Q_OBJECT
public:
    explicit NoticeBar(QWidget *parent = nullptr);

    void show(Notice notice);
    void dismiss(const QString &id);
    bool isShown(const QString &id) const { return m_strips.contains(id); }
    QString textOf(const QString &id) const; ///< Empty if it is not shown.
    /// The button of a notice; null if there is none.
    QPushButton *button(const QString &id, const QString &text) const;

private:
    class Strip;
    QVBoxLayout *m_layout;
    std::map<QString, Strip *> m_strips;
};

} // namespace planloom
