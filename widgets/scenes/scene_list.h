#pragma once

#include <QtCore/QAbstractListModel>
#include <QtCore/QPointer>

#include "widgets/design/workspace.h"
#include "widgets/scenes/scene.h"

#include <functional>
#include <vector>

namespace planloom {

/// The scenes of a session, in the order of the talk: kept in the session's view state, so that they are no
/// part of the design. Changes are taken back one by one, apart from those of the design.
class SceneList : public QAbstractListModel
{
    Q_OBJECT
public:
    enum Role { NoteLineRole = Qt::UserRole, SecondsRole };
    static constexpr const char *kViewKey = "scenes"; ///< Of the session's view state.

    /// @param workspace  must outlive this
    explicit SceneList(Workspace *workspace, QObject *parent = nullptr);

    const std::vector<Scene> &scenes() const { return m_scenes; }
    const Scene *find(int row) const; ///< Null where there is none.
    /// Behind the scene at `after`; in front for -1. @return its row; -1 where there are too many
    int add(Scene scene, int after);
    void remove(int row);
    /// @param to  its row afterwards
    void move(int from, int to);
    /// Names that are empty are passed by; long ones are cut.
    void rename(int row, const QString &name);
    /// @param key  changes with the same key, not empty, that follow one another are taken back together
    void change(int row, const QString &key, const std::function<void(Scene &)> &change);
    bool canUndo() const { return !m_before.empty(); }
    void undo();
    /// What was wrong with the session's scenes; empty if nothing was.
    const QString &problem() const { return m_problem; }
    /// "Scene 4": what a scene is called until a person says.
    QString freeName() const;

    int rowCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    bool setData(const QModelIndex &index, const QVariant &value, int role) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
    QStringList mimeTypes() const override;
    QMimeData *mimeData(const QModelIndexList &indexes) const override;
    bool dropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column,
        const QModelIndex &parent) override;

Q_SIGNALS:
    /// Another session's scenes are there, or a change was taken back.
    void replaced();
    /// A scene came, went, was moved or changed.
    void changed();
    /// A drag, or a key, has put a scene to another row.
    void moved(int to);

private:
    void read();
    void remember(const QString &key);
    void store();

    QPointer<Workspace> m_workspace; ///< Null at the end of a window, when an editor still hands in a name.
    std::vector<Scene> m_scenes;
    std::vector<std::vector<Scene>> m_before; ///< What there was before each change, the last one last.
    QString m_key; ///< Of the last change.
    QString m_problem;
};

} // namespace planloom
