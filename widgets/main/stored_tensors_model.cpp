#include "widgets/main/stored_tensors_model.h"

#include <QtGui/QFont>

#include <set>

namespace planloom {

StoredTensorsModel::StoredTensorsModel(const Graph &graph, const ModelOptions &options, QObject *parent)
    : QAbstractTableModel(parent)
    , m_options(options)
{
    std::set<std::string> seen; // a tensor of the file may be several of the model
    for (const TensorId id : storedTensors(graph)) {
        const Tensor &tensor = graph.at(id);
        const std::string &file = nameInFiles(tensor);
        if (!seen.insert(file).second)
            continue;
        TensorType type = tensor.type;
        if (tensor.filePart)
            type.shape = tensor.filePart->shape;
        // A part of a projection is called after the whole, which the file has under its own name.
        const bool isPart = tensor.filePart && tensor.filePart->shape != tensor.type.shape;
        m_lines.push_back({file, isPart ? file : tensor.name, std::move(type), *tensor.classification});
    }
    // Choices may have been written by the model's names; they are kept by those of the file from here on.
    for (const Line &line : m_lines) {
        if (line.shown == line.name)
            continue;
        if (m_options.asInputs.erase(line.shown) != 0)
            m_options.asInputs.insert(line.name);
        const auto byShown = m_options.storedAs.find(line.shown);
        if (byShown == m_options.storedAs.end())
            continue;
        m_options.storedAs.emplace(line.name, byShown->second);
        m_options.storedAs.erase(line.shown);
    }
}

int StoredTensorsModel::chosen(const Line &line) const
{
    if (m_options.asInputs.count(line.name) != 0)
        return kAsInput;
    const auto found = m_options.storedAs.find(line.name);
    return found == m_options.storedAs.end() ? kByRule : static_cast<int>(found->second);
}

int StoredTensorsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int StoredTensorsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString StoredTensorsModel::wordOf(int as)
{
    return as == kAsInput                             ? tr("Input")
        : as == static_cast<int>(StoredAs::Parameter) ? tr("Parameter")
        : as == static_cast<int>(StoredAs::Buffer)    ? tr("Buffer")
                                                      : tr("Constant");
}

QVariant StoredTensorsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    const int choice = chosen(line);
    const bool decided = choice != kByRule;
    if (role == Qt::EditRole && index.column() == TakenAs)
        return choice;
    if (role == Qt::FontRole && index.column() == TakenAs && decided) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case Name:
        return role == Qt::ToolTipRole && line.shown != line.name
            ? tr("%1, in the file “%2”")
                  .arg(QString::fromStdString(line.shown), QString::fromStdString(line.name))
            : QString::fromStdString(line.shown);
    case Shape:
        return QString::fromStdString(nameOf(line.type.dataType) + toString(line.type.shape));
    case TakenAs:
        if (!decided && line.found.byHand)
            return tr("By Rule");
        return wordOf(decided ? choice : static_cast<int>(line.found.as));
    case Why:
        if (decided)
            return tr("chosen by hand");
        return line.found.byHand ? tr("known once the model is opened anew")
                                 : QString::fromStdString(line.found.why);
    default:
        return {};
    }
}

bool StoredTensorsModel::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (role != Qt::EditRole || index.column() != TakenAs || !index.isValid() || index.row() >= rowCount())
        return false;
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    const int number = value.toInt();
    const auto as = static_cast<StoredAs>(number);
    const bool isKind = number >= 0 && as <= StoredAs::Constant;
    if ((!isKind && number != kByRule && number != kAsInput)
        || (isKind && as == StoredAs::Parameter && !isFloating(line.type.dataType)))
        return false;
    m_options.storedAs.erase(line.name);
    m_options.asInputs.erase(line.name);
    if (isKind)
        m_options.storedAs[line.name] = as;
    else if (number == kAsInput)
        m_options.asInputs.insert(line.name);
    Q_EMIT dataChanged(index, index.siblingAtColumn(Why));
    return true;
}

Qt::ItemFlags StoredTensorsModel::flags(const QModelIndex &index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (index.isValid() && index.column() == TakenAs)
        flags |= Qt::ItemIsEditable;
    return flags;
}

QVariant StoredTensorsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Name:
        return tr("Tensor");
    case Shape:
        return tr("Shape");
    case TakenAs:
        return tr("Taken as");
    case Why:
        return tr("Why");
    default:
        return {};
    }
}

} // namespace planloom

#include "moc_stored_tensors_model.cpp"
