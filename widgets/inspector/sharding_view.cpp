#include "widgets/inspector/sharding_view.h"

#include "widgets/common/format.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr double kSlabStep = 9; ///< Offset of slabs behind one another.
constexpr double kCardStep = 5; ///< Offset of summands over one another.
constexpr double kMostDepth = 0.35; ///< Of the area: what offsets may take together.
constexpr int kMostPictures = 12;
constexpr int kMostReplicas = 5; ///< Cards of one stack.
constexpr double kReplicaStep = 6; ///< Offset of replicas behind one another.

/// Positions of the cuts of dimension `d`, as shares of the whole.
std::pair<double, double> shareOf(const ShardCell &cell, const Shape &shape, std::int32_t dimension)
{
    if (dimension < 0)
        return {0, 1};
    const auto d = static_cast<std::size_t>(dimension);
    const double size = static_cast<double>(std::max<std::int64_t>(shape[d], 1));
    return {static_cast<double>(cell.index.ranges[d].begin) / size,
        static_cast<double>(cell.index.ranges[d].end) / size};
}

} // namespace

std::vector<ShardFace> facesOf(const ShardedTensor &tensor, const Shape &shape, const QRectF &area)
{
    const auto &cuts = tensor.cutDimensions;
    // The innermost cut dimension runs across, as the columns of a matrix do.
    const std::int32_t across = cuts.empty() ? -1 : cuts.back();
    const std::int32_t down = cuts.size() < 2 ? -1 : cuts[cuts.size() - 2];
    const std::int32_t deep = cuts.size() < 3 ? -1 : cuts[cuts.size() - 3];
    std::vector<std::int64_t> slabs; // where they begin
    if (deep >= 0) {
        for (const ShardCell &cell : tensor.cells)
            slabs.push_back(cell.index.ranges[static_cast<std::size_t>(deep)].begin);
        std::sort(slabs.begin(), slabs.end());
        slabs.erase(std::unique(slabs.begin(), slabs.end()), slabs.end());
    }
    const double slabCount = std::max<double>(1, static_cast<double>(slabs.size()));
    const double wanted = kSlabStep * (slabCount - 1) + kCardStep * (tensor.valueParts - 1);
    const double allowed = kMostDepth * std::min(area.width(), area.height());
    const double scale = wanted > allowed ? allowed / wanted : 1;
    const QSizeF face(area.width() - wanted * scale, area.height() - wanted * scale);
    std::vector<ShardFace> faces;
    std::map<std::tuple<double, double, std::int32_t>, bool> taken;
    for (std::size_t c = 0; c < tensor.cells.size(); ++c) {
        const ShardCell &cell = tensor.cells[c];
        const auto [left, right] = shareOf(cell, shape, across);
        const auto [top, bottom] = shareOf(cell, shape, down);
        std::int32_t slab = 0;
        if (deep >= 0)
            slab = static_cast<std::int32_t>(std::lower_bound(slabs.begin(), slabs.end(),
                                                 cell.index.ranges[static_cast<std::size_t>(deep)].begin)
                - slabs.begin());
        const std::int32_t layer = slab * tensor.valueParts + cell.value.index;
        if (!taken.try_emplace({left, top, layer}, true).second)
            continue; // a fourth dimension: behind the first cell's face
        const double offset = (kSlabStep * slab + kCardStep * cell.value.index) * scale;
        // The nearest slab stands lowest and leftmost.
        faces.push_back({QRectF(area.left() + offset + left * face.width(),
                             area.bottom() - offset - face.height() + top * face.height(),
                             (right - left) * face.width(), (bottom - top) * face.height()),
            c, layer});
    }
    std::stable_sort(
        faces.begin(), faces.end(), [](const ShardFace &a, const ShardFace &b) { return a.layer > b.layer; });
    return faces;
}

ShardingView::ShardingView(SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_selection(selection)
{
    setAccessibleName(tr("Sharding picture"));
    setFocusPolicy(Qt::StrongFocus);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    connect(m_selection, &SelectionModel::selectionChanged, this, &ShardingView::refresh);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() == 0)
            return;
        m_pictures = m_watcher.result();
        if (m_pictures.size() > kMostPictures)
            m_pictures.resize(kMostPictures);
        m_current = -1;
        describe();
        updateGeometry();
        update();
        Q_EMIT picturesChanged();
    });
    describe();
}

ShardingView::~ShardingView()
{
    m_stop.request_stop();
}

void ShardingView::setPlan(PlanUpdateSnapshot update)
{
    m_update = std::move(update);
    refresh();
}

void ShardingView::refresh()
{
    m_stop.request_stop();
    const auto &selected = m_selection->selected();
    const bool one = m_update && m_update->plan && !selected.empty()
        && static_cast<std::size_t>(selected.front().index) < m_update->plan->decisions.size();
    if (!one) {
        m_watcher.setFuture({});
        m_op = {};
        m_pictures.clear();
        describe();
        updateGeometry();
        update();
        Q_EMIT picturesChanged();
        return;
    }
    m_op = selected.front(); // a box of the DAG selects its forward operator first
    m_stop = std::stop_source{};
    m_watcher.setFuture(QtConcurrent::run([update = m_update, op = m_op, stop = m_stop.get_token()] {
        return shardingOf(*update->plan, update->scene ? update->scene->plan.get() : nullptr, op, stop);
    }));
}

int ShardingView::blockHeight() const
{
    return fontMetrics().height() * 9;
}

QSize ShardingView::sizeHint() const
{
    return {fontMetrics().averageCharWidth() * 40, heightForWidth(0)};
}

QSize ShardingView::minimumSizeHint() const
{
    return {fontMetrics().averageCharWidth() * 24,
        m_pictures.empty() ? fontMetrics().height() * 4 : blockHeight()};
}

int ShardingView::heightForWidth(int) const
{
    return m_pictures.empty() ? fontMetrics().height() * 4
                              : blockHeight() * static_cast<int>(m_pictures.size()) + fontMetrics().height();
}

const ShardedTensor *ShardingView::tensorOf(const Side &side) const
{
    const ShardingPicture &picture = m_pictures[side.picture];
    const auto &tensor = side.after ? picture.after : picture.before;
    return tensor ? &*tensor : nullptr;
}

std::vector<ShardingView::Side> ShardingView::sides() const
{
    std::vector<Side> all;
    const double line = fontMetrics().height();
    const double margin = fontMetrics().averageCharWidth();
    const double gap = fontMetrics().averageCharWidth() * 8;
    for (std::size_t p = 0; p < m_pictures.size(); ++p) {
        const ShardingPicture &picture = m_pictures[p];
        const double top = blockHeight() * static_cast<double>(p) + line * 2.4;
        const bool both = picture.before && picture.after && *picture.before != *picture.after;
        const double width = both ? (this->width() - gap - 2 * margin) / 2
                                  : std::min(widestSide(), this->width() - 2 * margin);
        const double height = blockHeight() - line * 4.2;
        const QRectF first(margin, top, width, height);
        if (both) {
            all.push_back({first, facesOf(*picture.before, picture.shape, first), p, false});
            const QRectF second(margin + width + gap, top, width, height);
            all.push_back({second, facesOf(*picture.after, picture.shape, second), p, true});
        } else {
            const bool after = !picture.before;
            const ShardedTensor *tensor =
                after ? (picture.after ? &*picture.after : nullptr) : &*picture.before;
            if (tensor)
                all.push_back({first, facesOf(*tensor, picture.shape, first), p, after});
        }
    }
    return all;
}

double ShardingView::widestSide() const
{
    return fontMetrics().averageCharWidth() * 40.0;
}

void ShardingView::paintEvent(QPaintEvent *)
{
    const Palette &palette = paletteFor(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), palette.surface);
    const QFontMetrics metrics = fontMetrics();
    const double line = metrics.height();
    const double margin = metrics.averageCharWidth();
    if (m_pictures.empty()) {
        painter.setPen(palette.textMuted);
        painter.drawText(QRectF(rect()).adjusted(margin, 0, -margin, 0), Qt::AlignCenter | Qt::TextWordWrap,
            tr("Select an operator to see how its tensors lie over the devices."));
        return;
    }
    for (std::size_t p = 0; p < m_pictures.size(); ++p) {
        const ShardingPicture &picture = m_pictures[p];
        const double top = blockHeight() * static_cast<double>(p);
        QFont bold = font();
        bold.setBold(true);
        painter.setFont(bold);
        painter.setPen(palette.text);
        const QString role =
            picture.output ? tr("Output %1").arg(picture.slot) : tr("Input %1").arg(picture.slot);
        painter.drawText(QPointF(margin, top + line), role);
        const double titleWidth = QFontMetrics(bold).horizontalAdvance(role) + margin;
        painter.setFont(font());
        painter.setPen(palette.textMuted);
        const QString shape = QString::fromStdString(shapeInWords(picture));
        const double shapeWidth = metrics.horizontalAdvance(shape);
        painter.drawText(QPointF(margin + titleWidth, top + line),
            metrics.elidedText(QString::fromStdString(picture.name), Qt::ElideMiddle,
                static_cast<int>(width() - titleWidth - shapeWidth - 4 * margin)));
        painter.drawText(QPointF(width() - shapeWidth - margin, top + line), shape);
        if (static_cast<int>(p) == m_current && hasFocus()) {
            painter.setPen(QPen(palette.accent, 2));
            painter.drawRect(QRectF(1, top + 1, width() - 2, blockHeight() - 2));
        }
        QString joins;
        for (const ShardingJoin &join : picture.joins)
            joins +=
                (joins.isEmpty() ? QString() : QStringLiteral(" · ")) + QString::fromStdString(wordsOf(join));
        painter.setPen(palette.text);
        painter.drawText(QRectF(margin, top + blockHeight() - line * 1.6, width() - 2 * margin, line),
            Qt::AlignLeft | Qt::AlignVCenter,
            metrics.elidedText(joins.isEmpty() ? tr("no communication") : joins, Qt::ElideRight,
                static_cast<int>(width() - 2 * margin)));
    }
    const std::vector<Side> all = sides();
    for (std::size_t s = 0; s < all.size(); ++s) {
        const Side &side = all[s];
        const ShardedTensor *tensor = tensorOf(side);
        const ShardingPicture &picture = m_pictures[side.picture];
        painter.setPen(palette.textMuted);
        const bool pair = s + 1 < all.size() && all[s + 1].picture == side.picture;
        const bool second = s > 0 && all[s - 1].picture == side.picture;
        QString caption;
        QString cutAlong;
        if (pair)
            caption = picture.output ? tr("as made here") : tr("as made before");
        else if (second)
            caption = picture.output ? tr("as used next") : tr("as used here");
        else if (picture.before && picture.after)
            caption = tr("made and used alike");
        else
            caption = side.after ? tr("as used here") : tr("as made here");
        if (!tensor->cutDimensions.empty()) {
            QStringList cut;
            for (const std::int32_t d : tensor->cutDimensions)
                cut << QString::number(d);
            cutAlong = cut.join(QStringLiteral(", "));
        }
        // What there is room for: a picture that is alone has the whole line.
        const double room =
            pair || second ? side.area.width() + (second ? margin : line) : width() - 2 * margin;
        QString words = cutAlong.isEmpty() ? caption : caption + tr(", cut along dimension %1").arg(cutAlong);
        if (metrics.horizontalAdvance(words) > room && !cutAlong.isEmpty())
            words = tr("%1, cut: %2").arg(caption, cutAlong);
        painter.drawText(QRectF(side.area.left(), side.area.top() - line * 1.2, room, line),
            Qt::AlignLeft | Qt::AlignVCenter,
            metrics.elidedText(words, Qt::ElideRight, static_cast<int>(room)));
        for (const ShardFace &face : side.faces) {
            const ShardCell &cell = tensor->cells[face.cell];
            // Replicas are cards on a stack, each with all of it: a part that is cut has a place of its own.
            const int count = static_cast<int>(std::min<std::size_t>(cell.devices.size(), kMostReplicas));
            const double step = std::min({kReplicaStep, face.rect.width() / 4 / std::max(count - 1, 1),
                face.rect.height() / 4 / std::max(count - 1, 1)});
            const QRectF box = face.rect.adjusted(0, step * (count - 1), -step * (count - 1), 0);
            for (int i = count; i-- > 0;) {
                const QRectF card = box.translated(step * i, -step * i);
                painter.fillRect(card,
                    mixed(palette.surface, deviceColour(palette, cell.devices[static_cast<std::size_t>(i)]),
                        0.8));
                painter.setPen(QPen(i > 0 ? palette.surface : palette.text, 1));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(card);
            }
            QString label = QString::fromStdString(rangesOf(cell.devices));
            if (const QString copies = tr("%1, copies").arg(label);
                cell.devices.size() > 1 && metrics.horizontalAdvance(copies) + 6 <= box.width())
                label = copies;
            if (!cell.value.complete())
                label = tr("Σ %1/%2 · ").arg(cell.value.index + 1).arg(cell.value.count) + label;
            if (cell.value.index > 0 || box.height() < line
                || metrics.horizontalAdvance(label) + 6 > box.width()) {
                if (box.height() < line || metrics.horizontalAdvance(QStringLiteral("00")) > box.width())
                    continue;
                label = metrics.elidedText(label, Qt::ElideRight, static_cast<int>(box.width() - 4));
            }
            const QColor under = mixed(palette.surface, deviceColour(palette, cell.devices.front()), 0.8);
            painter.setPen(readableOn(under));
            painter.drawText(box, Qt::AlignCenter, label);
        }
        if (pair) { // the arrow to the other side
            const double y = side.area.center().y();
            const double from = side.area.right() + margin;
            const double to = all[s + 1].area.left() - margin;
            painter.setPen(QPen(palette.edgeStrong, 1.5));
            painter.drawLine(QPointF(from, y), QPointF(to, y));
            painter.drawLine(QPointF(to, y), QPointF(to - 5, y - 4));
            painter.drawLine(QPointF(to, y), QPointF(to - 5, y + 4));
        }
    }
}

QString ShardingView::factAt(QPointF at) const
{
    for (const Side &side : sides()) {
        for (auto face = side.faces.rbegin(); face != side.faces.rend(); ++face) {
            if (face->rect.contains(at))
                return QString::fromStdString(
                    wordsOf(tensorOf(side)->cells[face->cell], m_pictures[side.picture].shape));
        }
    }
    return {};
}

bool ShardingView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type says so
        const QString fact = factAt(help->pos());
        fact.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), fact, this);
        return true;
    }
    return QWidget::event(event);
}

void ShardingView::keyPressEvent(QKeyEvent *event)
{
    const int count = static_cast<int>(m_pictures.size());
    if (count == 0 || (event->key() != Qt::Key_Down && event->key() != Qt::Key_Up)) {
        QWidget::keyPressEvent(event);
        return;
    }
    m_current =
        event->key() == Qt::Key_Down ? std::min(m_current + 1, count - 1) : std::max(m_current - 1, 0);
    describe();
    update();
}

void ShardingView::describe()
{
    if (m_pictures.empty()) {
        setAccessibleDescription(tr("nothing is selected"));
        return;
    }
    const ShardingPicture &picture = m_pictures[static_cast<std::size_t>(std::max(m_current, 0))];
    QString words = (picture.output ? tr("output %1, %2") : tr("input %1, %2"))
                        .arg(picture.slot)
                        .arg(QString::fromStdString(picture.name));
    for (const auto &[side, name] :
        {std::pair{&picture.before, tr("made as")}, std::pair{&picture.after, tr("used as")}}) {
        if (!*side)
            continue;
        words += QStringLiteral("; ") + name;
        for (std::size_t c = 0; c < (*side)->cells.size() && c < 8; ++c)
            words += QLatin1Char(' ') + QString::fromStdString(wordsOf((*side)->cells[c], picture.shape));
    }
    for (const ShardingJoin &join : picture.joins)
        words += QStringLiteral("; ") + QString::fromStdString(wordsOf(join));
    setAccessibleDescription(words);
}

} // namespace planloom

#include "moc_sharding_view.cpp"
