#include "widgets/scenes/scene_list.h"

#include <QtCore/QMimeData>

#include "widgets/common/qt_text.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

constexpr std::size_t kMostTakenBack = 100;
constexpr const char *kSceneRow = "application/x-planloom-scene-row";

} // namespace

SceneList::SceneList(Workspace *workspace, QObject *parent)
    : QAbstractListModel(parent)
    , m_workspace(workspace)
{
    connect(m_workspace, &Workspace::sessionChanged, this, &SceneList::read);
    read();
}

void SceneList::read()
{
    beginResetModel();
    const auto found = m_workspace->view().find(kViewKey);
    auto scenes = readScenes(found == m_workspace->view().end() ? std::string{} : found->second);
    m_problem = scenes ? QString() : toQString(describe(scenes.error()));
    m_scenes = scenes ? std::move(*scenes) : std::vector<Scene>{};
    m_before.clear();
    m_key.clear();
    endResetModel();
    Q_EMIT replaced();
}

const Scene *SceneList::find(int row) const
{
    return row >= 0 && row < rowCount() ? &m_scenes[static_cast<std::size_t>(row)] : nullptr;
}

void SceneList::remember(const QString &key)
{
    if (!key.isEmpty() && key == m_key)
        return;
    m_key = key;
    m_before.push_back(m_scenes);
    if (m_before.size() > kMostTakenBack)
        m_before.erase(m_before.begin());
}

void SceneList::store()
{
    if (!m_workspace)
        return;
    m_problem.clear();
    m_workspace->setView(kViewKey, sceneText(m_scenes));
    m_workspace->keep();
    Q_EMIT changed();
}

int SceneList::add(Scene scene, int after)
{
    if (m_scenes.size() >= kMostScenes)
        return -1;
    remember({});
    const int row = std::clamp(after + 1, 0, rowCount());
    beginInsertRows({}, row, row);
    m_scenes.insert(m_scenes.begin() + row, std::move(scene));
    endInsertRows();
    store();
    return row;
}

void SceneList::remove(int row)
{
    if (!find(row))
        return;
    remember({});
    beginRemoveRows({}, row, row);
    m_scenes.erase(m_scenes.begin() + row);
    endRemoveRows();
    store();
}

void SceneList::move(int from, int to)
{
    if (!find(from) || !find(to) || from == to)
        return;
    remember({});
    beginMoveRows({}, from, from, {}, to > from ? to + 1 : to);
    const auto begin = m_scenes.begin();
    if (to > from)
        std::rotate(begin + from, begin + from + 1, begin + to + 1);
    else
        std::rotate(begin + to, begin + from, begin + from + 1);
    endMoveRows();
    store();
    Q_EMIT moved(to);
}

void SceneList::rename(int row, const QString &name)
{
    if (const QString plain = name.simplified().left(kMostSceneName); !plain.isEmpty())
        change(row, {}, [&plain](Scene &scene) { scene.name = plain; });
}

void SceneList::change(int row, const QString &key, const std::function<void(Scene &)> &change)
{
    if (!find(row))
        return;
    Scene changed = m_scenes[static_cast<std::size_t>(row)];
    change(changed);
    if (changed == m_scenes[static_cast<std::size_t>(row)])
        return;
    remember(key);
    m_scenes[static_cast<std::size_t>(row)] = std::move(changed);
    Q_EMIT dataChanged(index(row), index(row));
    store();
}

void SceneList::undo()
{
    if (m_before.empty())
        return;
    beginResetModel();
    m_scenes = std::move(m_before.back());
    m_before.pop_back();
    m_key.clear();
    endResetModel();
    store();
    Q_EMIT replaced();
}

QString SceneList::freeName() const
{
    std::set<QString> taken;
    for (const Scene &scene : m_scenes)
        taken.insert(scene.name);
    for (std::size_t number = m_scenes.size() + 1;; ++number)
        if (const QString name = tr("Scene %1").arg(number); !taken.count(name))
            return name;
}

int SceneList::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_scenes.size());
}

QVariant SceneList::data(const QModelIndex &index, int role) const
{
    const Scene *scene = find(index.row());
    if (!scene)
        return {};
    switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
        return scene->name;
    case Qt::AccessibleDescriptionRole:
    case NoteLineRole:
        return firstLineOf(*scene);
    case SecondsRole:
        return scene->seconds;
    default:
        return {};
    }
}

bool SceneList::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (role != Qt::EditRole)
        return false;
    rename(index.row(), value.toString());
    return true;
}

Qt::ItemFlags SceneList::flags(const QModelIndex &index) const
{
    return index.isValid()
        ? Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemIsEditable | Qt::ItemIsDragEnabled
        : Qt::ItemIsDropEnabled;
}

QStringList SceneList::mimeTypes() const
{
    return {QLatin1String(kSceneRow)};
}

QMimeData *SceneList::mimeData(const QModelIndexList &indexes) const
{
    auto *data = new QMimeData;
    if (!indexes.isEmpty())
        data->setData(QLatin1String(kSceneRow), QByteArray::number(indexes.front().row()));
    return data;
}

/// The rows are moved here: the view, which would remove those that were dragged, is told that nothing was
/// dropped.
bool SceneList::dropMimeData(
    const QMimeData *data, Qt::DropAction action, int row, int /*column*/, const QModelIndex &parent)
{
    bool isRow = false;
    const int from = data->data(QLatin1String(kSceneRow)).toInt(&isRow);
    if (action != Qt::MoveAction || !isRow || !find(from))
        return false;
    const int before = row >= 0 ? row : parent.isValid() ? parent.row() : rowCount();
    move(from, std::clamp(before > from ? before - 1 : before, 0, rowCount() - 1));
    return false;
}

} // namespace planloom

#include "moc_scene_list.cpp"
