#include "widgets/scenes/scenes_panel.h"

#include <QtGui/QAction>
#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QApplication>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListView>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/scenes/scene_list.h"
#include "widgets/scenes/scene_stage.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kPad = 6;

/// A scene's number and name over the first line of its note.
class SceneDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex & /*index*/) const override
    {
        return {10 * option.fontMetrics.height(), 2 * option.fontMetrics.height() + kPad};
    }
    void updateEditorGeometry(
        QWidget *editor, const QStyleOptionViewItem &option, const QModelIndex & /*index*/) const override
    {
        const int left = numberWidth(option.fontMetrics);
        editor->setGeometry(option.rect.adjusted(left, 0, 0, -option.rect.height() / 2 + 2));
    }
    void paint(QPainter *painter, const QStyleOptionViewItem &given, const QModelIndex &index) const override
    {
        QStyleOptionViewItem option = given;
        initStyleOption(&option, index);
        const QString name = std::exchange(option.text, QString());
        const QStyle *style = option.widget ? option.widget->style() : QApplication::style();
        style->drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
        const bool isSelected = (option.state & QStyle::State_Selected) != 0;
        const QPalette::ColorRole role = isSelected ? QPalette::HighlightedText : QPalette::Text;
        QColor muted = option.palette.color(isSelected ? role : QPalette::PlaceholderText);
        const int left = numberWidth(option.fontMetrics);
        const QRect whole = option.rect.adjusted(kPad, kPad / 2, -kPad, -kPad / 2);
        painter->save();
        painter->setPen(muted);
        painter->drawText(whole.adjusted(0, 0, left - whole.width() - 2 * kPad, 0),
            Qt::AlignRight | Qt::AlignTop, QString::number(index.row() + 1));
        const QRect lines = whole.adjusted(left - kPad, 0, 0, 0);
        painter->drawText(lines, Qt::AlignLeft | Qt::AlignBottom,
            option.fontMetrics.elidedText(
                index.data(SceneList::NoteLineRole).toString(), Qt::ElideRight, lines.width()));
        painter->setPen(option.palette.color(role));
        QFont bold = option.font;
        bold.setBold(true);
        painter->setFont(bold);
        painter->drawText(lines, Qt::AlignLeft | Qt::AlignTop,
            QFontMetrics(bold).elidedText(name, Qt::ElideRight, lines.width()));
        painter->restore();
    }

private:
    static int numberWidth(const QFontMetrics &metrics)
    {
        return metrics.horizontalAdvance(QStringLiteral("000")) + 2 * kPad;
    }
};

} // namespace

ScenesPanel::ScenesPanel(SceneList *list, SceneStage *stage, QWidget *parent)
    : QWidget(parent)
    , m_list(list)
    , m_stage(stage)
    , m_view(new QListView(this))
    , m_empty(new QLabel(this))
    , m_tools(new QWidget(this))
    , m_editor(makeEditor())
{
    setObjectName(QStringLiteral("scenesPanel"));
    m_view->setModel(m_list);
    m_view->setItemDelegate(new SceneDelegate(m_view));
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setAccessibleName(tr("Scenes"));
    m_view->setAccessibleDescription(
        tr("Enter goes to a scene, F2 renames it, Alt+Up and Alt+Down move it."));
    m_view->setEditTriggers(QAbstractItemView::EditKeyPressed);
    m_view->setDragDropMode(QAbstractItemView::InternalMove);
    m_view->setDefaultDropAction(Qt::MoveAction);
    m_view->setDropIndicatorShown(true);
    m_view->setContextMenuPolicy(Qt::ActionsContextMenu);
    m_view->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_view->installEventFilter(this);
    m_empty->setWordWrap(true);
    m_empty->setTextFormat(Qt::PlainText);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setMargin(12);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    auto *tools = new QHBoxLayout(m_tools);
    tools->setContentsMargins(kPad, kPad / 2, kPad, kPad / 2);
    tools->addStretch(1);
    auto *left = new QWidget(this);
    auto *column = new QVBoxLayout(left);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_tools);
    column->addWidget(m_view, 1);
    column->addWidget(m_empty, 1);
    auto *splitter = new QSplitter(this);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(left);
    splitter->addWidget(m_editor);
    splitter->setStretchFactor(0, 2);
    splitter->setStretchFactor(1, 3);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(splitter);
    makeActions();
    connect(m_view, &QListView::doubleClicked, this, &ScenesPanel::goToCurrent);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentChanged, this, &ScenesPanel::showCurrent);
    connect(m_list, &SceneList::replaced, this, [this] {
        setCurrentRow(std::clamp(currentRow(), 0, std::max(m_list->rowCount() - 1, 0)));
        showCurrent();
    });
    connect(m_list, &SceneList::changed, this, &ScenesPanel::showCurrent);
    connect(m_list, &SceneList::moved, this, &ScenesPanel::setCurrentRow);
    showCurrent();
}

QWidget *ScenesPanel::makeEditor()
{
    auto *editor = new QWidget(this);
    m_canvases = new QComboBox(editor);
    m_canvases->addItems({tr("Graph and timeline"), tr("Graph alone"), tr("Timeline alone")});
    m_canvases->setAccessibleName(tr("Canvases"));
    m_canvases->setToolTip(tr("What is seen of this scene while it is presented"));
    m_plays = new QCheckBox(tr("Plays the step"), editor);
    m_plays->setToolTip(tr("The step is played as soon as the scene is shown in a talk"));
    m_seconds = new QSpinBox(editor);
    m_seconds->setRange(1, kMostSceneSeconds);
    m_seconds->setSuffix(tr(" s"));
    m_seconds->setAccessibleName(tr("Seconds"));
    m_seconds->setToolTip(tr("How long the scene stays where scenes are played one after the other"));
    m_note = new QPlainTextEdit(editor);
    m_note->setObjectName(QStringLiteral("scenes.note"));
    m_note->setPlaceholderText(tr("What you say about this scene: it is shown in the notes window"));
    m_note->setAccessibleName(tr("Note"));
    m_note->setTabChangesFocus(true);
    auto *line = new QHBoxLayout;
    line->setContentsMargins(kPad, kPad / 2, kPad, kPad / 2);
    line->addWidget(m_canvases);
    line->addWidget(m_plays);
    line->addStretch(1);
    line->addWidget(m_seconds);
    auto *column = new QVBoxLayout(editor);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(line);
    column->addWidget(m_note, 1);
    const auto change = [this](const char *what, const std::function<void(Scene &)> &set) {
        if (!m_shows)
            m_list->change(
                currentRow(), QStringLiteral("%1/%2").arg(QLatin1String(what)).arg(currentRow()), set);
    };
    connect(m_canvases, &QComboBox::currentIndexChanged, this, [change](int index) {
        change("canvases", [index](Scene &scene) { scene.canvases = static_cast<SceneCanvases>(index); });
    });
    connect(m_plays, &QCheckBox::toggled, this,
        [change](bool plays) { change("plays", [plays](Scene &scene) { scene.plays = plays; }); });
    connect(m_seconds, &QSpinBox::valueChanged, this,
        [change](int seconds) { change("seconds", [seconds](Scene &scene) { scene.seconds = seconds; }); });
    connect(m_note, &QPlainTextEdit::textChanged, this, [this, change] {
        const QString note = m_note->toPlainText().left(kMostSceneNote);
        change("note", [&note](Scene &scene) { scene.note = note; });
    });
    return editor;
}

void ScenesPanel::makeActions()
{
    const auto add = [this](const char *name, const QString &text, const QKeySequence &key,
                         const QString &tip, std::function<void()> act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(key);
        action->setShortcutContext(Qt::WidgetShortcut);
        action->setToolTip(tip);
        connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
        m_view->addAction(action);
    };
    add("scenes.goTo", tr("&Go to Scene"), Qt::Key_Return,
        tr("Makes the window what it was in this scene (Enter)"), [this] { goToCurrent(); });
    add("scenes.update", tr("Take It &Anew"), {},
        tr("The scene becomes what the window shows now; its name and note stay"), [this] {
            m_list->change(currentRow(), {}, [this](Scene &scene) {
                Scene now = m_stage->take();
                now.name = scene.name;
                now.note = scene.note;
                now.canvases = scene.canvases;
                now.seconds = scene.seconds;
                scene = std::move(now);
            });
        });
    add("scenes.rename", tr("&Rename Scene"), Qt::Key_F2, {}, [this] {
        if (m_view->currentIndex().isValid())
            m_view->edit(m_view->currentIndex());
    });
    add("scenes.up", tr("Move &Up"), Qt::ALT | Qt::Key_Up, {}, [this] { moveCurrent(-1); });
    add("scenes.down", tr("Move &Down"), Qt::ALT | Qt::Key_Down, {}, [this] { moveCurrent(1); });
    add("scenes.remove", tr("Re&move Scene"), Qt::Key_Delete, {}, [this] { removeCurrent(); });
    add("scenes.undo", tr("&Take Back Change of Scenes"), {},
        tr("Takes the last change of the scenes back (Ctrl+Z in the list)"), [this] { m_list->undo(); });
}

void ScenesPanel::addTool(QAction *action)
{
    auto *button = new QToolButton(m_tools);
    button->setDefaultAction(action);
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto *layout = static_cast<QHBoxLayout *>(m_tools->layout()); // made above
    layout->insertWidget(layout->count() - 1, button);
}

int ScenesPanel::currentRow() const
{
    return m_view->currentIndex().row();
}

void ScenesPanel::setCurrentRow(int row)
{
    m_view->setCurrentIndex(m_list->index(row));
}

void ScenesPanel::makeScene()
{
    Scene scene = m_stage->take();
    scene.name = m_list->freeName();
    const int after = m_view->currentIndex().isValid() ? currentRow() : m_list->rowCount() - 1;
    if (const int row = m_list->add(scene, after); row >= 0) {
        setCurrentRow(row);
        Q_EMIT made(scene.name);
    }
}

void ScenesPanel::goToCurrent()
{
    if (const Scene *scene = m_list->find(currentRow()))
        m_stage->show(*scene);
}

void ScenesPanel::removeCurrent()
{
    const int row = currentRow();
    const Scene *scene = m_list->find(row);
    if (!scene)
        return;
    const QString name = scene->name;
    m_list->remove(row);
    setCurrentRow(std::min(row, m_list->rowCount() - 1));
    Q_EMIT removed(name);
}

void ScenesPanel::moveCurrent(int by)
{
    m_list->move(currentRow(), currentRow() + by);
}

/// The editor shows what is chosen; what is being typed stays as it is.
void ScenesPanel::showCurrent()
{
    const Scene *scene = m_list->find(currentRow());
    const bool isEmpty = m_list->rowCount() == 0;
    m_view->setVisible(!isEmpty);
    m_empty->setVisible(isEmpty);
    m_empty->setText(!m_list->problem().isEmpty()
            ? m_list->problem()
            : tr("A scene is the window as it is now: plan, view, selection, moment of play. "
                 "Make one with Ctrl+Shift+M; present them with Shift+F5."));
    m_editor->setEnabled(scene != nullptr);
    m_shows = true;
    const Scene none;
    const Scene &shown = scene ? *scene : none;
    m_canvases->setCurrentIndex(static_cast<int>(shown.canvases));
    m_plays->setChecked(shown.plays);
    m_seconds->setValue(shown.seconds);
    if (m_note->toPlainText() != shown.note)
        m_note->setPlainText(shown.note);
    m_shows = false;
}

/// Ctrl+Z in the list is for the scenes; elsewhere it is for the design.
bool ScenesPanel::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_view
        && (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress)) {
        auto *key = static_cast<QKeyEvent *>(event); // the type was checked
        if (key->matches(QKeySequence::Undo) && m_list->canUndo()) {
            if (event->type() == QEvent::KeyPress)
                m_list->undo();
            key->accept();
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_scenes_panel.cpp"
