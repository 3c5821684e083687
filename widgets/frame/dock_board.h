#pragma once

#include <QtCore/QObject>
#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include <map>
#include <memory>
#include <vector>

class QAction;
class QDockWidget;

namespace planloom {

class Settings;

/// The docks of a window and how they lie: perspectives (built in and own ones), what is remembered, and the
/// rule that the centre keeps most of the window. In a window narrower than `kWide` the docks of both sides
/// are tabs of one column; where they lay before is kept for wider days. A dock is added by one call.
class DockBoard : public QObject
{
    Q_OBJECT
public:
    static constexpr double kCentreShare = 0.6; ///< Of the window, in each direction, that docks leave alone.
    static constexpr int kWide = 1200; ///< Pixels that a window needs for docks at both sides.

    DockBoard(QMainWindow *window, std::shared_ptr<Settings> settings, QObject *parent = nullptr);

    /// Adds a dock behind those of its side: below each other at the left (`below`), as tabs elsewhere.
    /// @param name  "constraints": for perspectives and what is remembered
    /// @param focus  what takes the keyboard when the dock is asked for; null for `widget`
    QDockWidget *add(const QString &title, const char *name, QWidget *widget, Qt::DockWidgetArea area,
        QWidget *focus = nullptr, bool below = false);
    QDockWidget *find(const QString &name) const;
    const std::vector<QDockWidget *> &docks() const { return m_docks; }
    /// Opens it, brings it to the front and gives it the keyboard.
    void reveal(const QString &name, bool focus = true);
    /// The same of the dock that holds `widget`, without the keyboard; nothing if none does.
    void revealHolderOf(const QWidget *widget);
    void setTitle(const QString &name, const QString &title);

    /// Which docks there are in a built-in perspective, and which of them are in front.
    struct Perspective {
        QString id{}; ///< "design"
        QString title{};
        QStringList docks{};
        QStringList front{};
        double lowerShare =
            0.24; ///< Of the window's height, for the docks at the bottom, until a person says otherwise.
    };
    void addPerspective(Perspective perspective);
    const std::vector<Perspective> &perspectives() const { return m_perspectives; }
    QStringList ownPerspectives() const;
    /// A built-in one by id, or an own one by name.
    void apply(const QString &perspective);
    void saveOwn(const QString &name);
    void removeOwn(const QString &name);
    /// The last one applied.
    const QString &current() const { return m_current; }
    /// The current built-in perspective as it is meant to be, all docks in their places.
    void reset();
    /// Shows no dock at all (the start page), or what there was.
    void setShown(bool shown);
    bool isShown() const { return m_shown; }

    bool isFolded() const { return m_folded; }

    QByteArray state() const;
    /// @return false if `state` is not one of this window's
    bool restore(const QByteArray &state);
    /// The same of a perspective, which is the current one from then on.
    void recall(const QByteArray &state, const QString &perspective);

Q_SIGNALS:
    /// A person, or a perspective, moved, opened or closed docks.
    void layoutChanged();
    void perspectivesChanged();
    void currentChanged(const QString &perspective);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void arrange();
    void foldOrUnfold();
    void fold();
    void unfold();
    QStringList open() const; ///< Names of the docks that are not closed.
    void openOnly(const QStringList &names);
    void limitSizes();
    void show(const Perspective &perspective);
    /// One of the docks at the bottom that can be seen; null if there is none.
    QDockWidget *lowerDock() const;
    void rememberLowerHeight();
    void passFocusOn(QDockWidget *gone);

    static constexpr int kVersion = 2; ///< Of what is remembered.

    QMainWindow *m_window;
    std::shared_ptr<Settings> m_settings;
    struct Place {
        QDockWidget *dock = nullptr;
        Qt::DockWidgetArea area = Qt::LeftDockWidgetArea;
        QPointer<QWidget> panel{};
        QPointer<QWidget> focus{};
        bool below = false;
    };
    std::vector<Place> m_places;
    std::vector<QDockWidget *> m_docks;
    std::vector<Perspective> m_perspectives;
    QString m_current;
    std::map<QString, int> m_lowerHeights; ///< By perspective that was left, in pixels.
    QTimer m_changed; ///< Gathers changes.
    QTimer m_resized;
    bool m_folded = false;
    QByteArray m_unfolded; ///< How docks lay before they were folded.
    QByteArray m_hidden; ///< What there was before all was hidden.
    bool m_shown = true;
};

} // namespace planloom
