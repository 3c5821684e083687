// Attention, as exporters write it:
//
//   q     [x constant] ------------------------+
//   k     [x constant] -> transposed ----> MatMul -> [x constant, tanh x constant, + mask, Where(mask)]* ->
//   Softmax
//                                                                                             |
//   v ---------------------------------------------------------> MatMul <- [not NaN] [Dropout]+
//
// with reshapes of the leading dimensions anywhere between. Keys and values of fewer heads, copied for every
// query head, are read before they are copied; those of one head may stand for all heads as they are.
#include "engine/frontend/passes/fuse/attention_masks.h"
#include "engine/frontend/passes/fuse/attention_writer.h"
#include "engine/frontend/passes/fuse/fuse_editor.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

using Members = std::vector<const Operator *>;

/// Something that was done to scores.
struct MaskTerm {
    TensorId mask{};
    Shape scores{}; ///< Of the scores where it was done.
    bool boolean = false;
    bool isHidden = false; ///< Boolean: true where a key is hidden.
    double hiddenScore = 0; ///< Boolean: the score of a hidden key.
};

/// All between the product of queries and keys and the Softmax; what is nearest to the Softmax first.
struct ScorePath {
    const Operator *product = nullptr;
    double factor = 1; ///< Of all before the soft-capping, if there is one.
    double softcap = 0; ///< 0: none. What tanh is multiplied with; may be negative.
    std::vector<MaskTerm> terms{};
    std::vector<Shape> shapes{}; ///< That the scores have on the way.
    Members members{};
};

bool castsBetweenFloats(const FuseEditor &editor, const Operator &op)
{
    return op.kind == OperatorKind::Cast && isFloating(editor.tensor(op.inputs[0]).type.dataType)
        && isFloating(editor.tensor(op.outputs[0]).type.dataType);
}

/// Follows scores up to the product that makes them, all of whose users are on the way.
bool climb(const FuseEditor &editor, TensorId id, const Operator &user, ScorePath &path)
{
    using enum OperatorKind;
    const Operator *made = editor.maker(id);
    if (made == nullptr || editor.onlyUser(id) != &user)
        return false;
    const Shape &shape = editor.shape(id);
    path.members.push_back(made);
    path.shapes.push_back(shape);
    const auto upFrom = [&](std::size_t slot) {
        return editor.shape(made->inputs[slot]) == shape && climb(editor, made->inputs[slot], *made, path);
    };
    switch (made->kind) {
    case MatMul:
        path.product = made;
        return true;
    case Mul:
        for (const std::size_t slot : {0U, 1U}) {
            if (const auto factor = editor.constant(made->inputs[slot])) {
                path.factor *= *factor;
                return upFrom(1 - slot);
            }
        }
        return false;
    case Div: {
        const auto divisor = editor.constant(made->inputs[1]);
        if (!divisor || *divisor == 0)
            return false;
        path.factor /= *divisor;
        return upFrom(0);
    }
    case Add:
        if (path.factor != 1 || path.softcap != 0) // the mask would be multiplied with it, or capped
            return false;
        for (const std::size_t slot : {0U, 1U}) {
            ScorePath attempt = path;
            attempt.terms.push_back({made->inputs[1 - slot], shape});
            if (editor.shape(made->inputs[slot]) == shape
                && climb(editor, made->inputs[slot], *made, attempt)) {
                path = std::move(attempt);
                return true;
            }
        }
        return false;
    case Tanh: // softcap tanh(scores / softcap)
        if (path.softcap != 0 || path.factor == 0)
            return false;
        path.softcap = path.factor;
        path.factor = 1;
        return upFrom(0);
    case Where:
        if (path.softcap != 0)
            return false;
        for (const std::size_t slot : {2U, 1U}) {
            if (const auto hidden = editor.constant(made->inputs[slot])) {
                path.terms.push_back({made->inputs[0], shape, true, slot == 1, *hidden * path.factor});
                return upFrom(3 - slot);
            }
        }
        return false;
    case Reshape:
        return keepsMatrices(editor.shape(made->inputs[0]), shape)
            && climb(editor, made->inputs[0], *made, path);
    case Cast:
        return castsBetweenFloats(editor, *made) && upFrom(0);
    default:
        return false;
    }
}

/// All between the Softmax and the product with values.
struct WeightPath {
    const Operator *product = nullptr;
    const Operator *dropout = nullptr;
    Members members{};
};

/// Where(IsNaN(p), 0, p), which turns a Softmax of nothing but minus infinities into zeros.
const Operator *guardOf(const FuseEditor &editor, TensorId id, Members &members)
{
    const auto users = editor.users(id);
    if (users.size() != 2 || users[0] == nullptr || users[1] == nullptr)
        return nullptr;
    const bool inOrder = users[0]->kind == OperatorKind::IsNaN;
    const Operator *test = users[inOrder ? 0 : 1];
    const Operator *guard = users[inOrder ? 1 : 0];
    if (test->kind != OperatorKind::IsNaN || guard->kind != OperatorKind::Where
        || guard->inputs[0] != test->outputs[0] || guard->inputs[2] != id
        || editor.onlyUser(test->outputs[0]) != guard || editor.constant(guard->inputs[1]) != 0.0)
        return nullptr;
    members.insert(members.end(), {test, guard});
    return guard;
}

bool descend(const FuseEditor &editor, TensorId id, WeightPath &path)
{
    using enum OperatorKind;
    for (;;) {
        if (const Operator *guard = guardOf(editor, id, path.members)) {
            id = guard->outputs[0];
            continue;
        }
        const Operator *next = editor.onlyUser(id);
        if (next == nullptr)
            return false;
        path.members.push_back(next);
        switch (next->kind) {
        case MatMul:
            path.product = next;
            return next->inputs[0] == id && next->inputs[1] != id;
        case Dropout:
            if (path.dropout != nullptr)
                return false;
            path.dropout = next;
            break;
        case Reshape:
            if (!keepsMatrices(editor.shape(id), editor.shape(next->outputs[0])))
                return false;
            break;
        case Cast:
            if (!castsBetweenFloats(editor, *next))
                return false;
            break;
        default:
            return false;
        }
        id = next->outputs[0];
    }
}

/// The operand of products by constants, which `factor` is multiplied with.
TensorId withoutFactors(const FuseEditor &editor, TensorId id, double &factor)
{
    for (;;) {
        const Operator *made = editor.maker(id);
        TensorId of;
        double by = 1;
        if (made != nullptr && made->kind == OperatorKind::Mul) {
            for (const std::size_t slot : {0U, 1U}) {
                if (const auto constant = editor.constant(made->inputs[slot]); constant && !of) {
                    of = made->inputs[1 - slot];
                    by = *constant;
                }
            }
        } else if (made != nullptr && made->kind == OperatorKind::Div) {
            const auto constant = editor.constant(made->inputs[1]);
            if (constant && *constant != 0) {
                of = made->inputs[0];
                by = 1 / *constant;
            }
        }
        if (!of || editor.shape(of) != editor.shape(id))
            return id;
        factor *= by;
        id = of;
    }
}

/// The shape in which a mask of scores [`from`] stands beside scores [`to`], whose leading dimensions are
/// regrouped; nothing if it does not.
std::optional<Shape> maskShape(Shape mask, const Shape &from, const Shape &to)
{
    if (mask.size() > from.size())
        return std::nullopt;
    if (from == to)
        return mask;
    mask.insert(mask.begin(), from.size() - mask.size(), 1);
    Shape made;
    std::size_t i = 0;
    std::size_t j = 0;
    // Runs of leading dimensions with the same product: what the mask has of one, it has all of.
    while (i + 2 < from.size() || j + 2 < to.size()) {
        std::int64_t left = i + 2 < from.size() ? from[i] : 1;
        std::int64_t has = i + 2 < from.size() ? mask[i] : 1;
        std::int64_t right = j + 2 < to.size() ? to[j] : 1;
        std::vector<std::int64_t> run;
        if (j + 2 < to.size())
            run.push_back(to[j]);
        i += i + 2 < from.size() ? 1 : 0;
        j += j + 2 < to.size() ? 1 : 0;
        while (left != right) {
            if (left < right && i + 2 < from.size()) {
                left *= from[i];
                has *= mask[i++];
            } else if (right < left && j + 2 < to.size()) {
                right *= to[j];
                run.push_back(to[j++]);
            } else {
                return std::nullopt;
            }
        }
        if (has != left && has != 1)
            return std::nullopt;
        for (const std::int64_t extent : run)
            made.push_back(has == 1 ? 1 : extent);
    }
    made.insert(made.end(), mask.end() - 2, mask.end());
    // Leading ones say nothing.
    while (made.size() > 2 && made.front() == 1)
        made.erase(made.begin());
    return made;
}

/// A sum of masks that is larger than both: they are read one by one, so that it need not be in memory.
void separateSums(const FuseEditor &editor, std::vector<MaskTerm> &terms)
{
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const Operator *sum = terms[i].boolean ? nullptr : editor.madeBy(terms[i].mask, OperatorKind::Add);
        if (sum == nullptr)
            continue;
        const std::int64_t whole = elementCount(editor.shape(terms[i].mask));
        if (elementCount(editor.shape(sum->inputs[0])) >= whole
            || elementCount(editor.shape(sum->inputs[1])) >= whole)
            continue;
        MaskTerm other = terms[i];
        terms[i].mask = sum->inputs[0];
        other.mask = sum->inputs[1];
        terms.insert(terms.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(other));
        --i; // which may be a sum, too
    }
}

/// What the attributes of an Attention can say of a mask of scores; nothing if they cannot.
std::optional<KnownMask> knownMask(const FuseEditor &editor, KnownMasks &masks, const MaskTerm &term)
{
    const Shape &scores = term.scores;
    const bool hides = !term.boolean || term.hiddenScore <= kHidingScore;
    if (!hides || editor.shape(term.mask).size() > scores.size())
        return std::nullopt;
    return masks.of(term.mask, scores[scores.size() - 2], scores[scores.size() - 1], term.isHidden);
}

/// A mask that is added to scores as the condition that it was made from: 0 where a key is seen, as good as
/// minus infinity where not. `term` itself where it is no such one.
MaskTerm asCondition(const FuseEditor &editor, const MaskTerm &term)
{
    constexpr double kSwallowsScores = -1e30; // in float32 nothing is left of a score that is added to it
    const Operator *where = term.boolean ? nullptr : editor.madeBy(term.mask, OperatorKind::Where);
    if (where == nullptr)
        return term;
    const auto whereTrue = editor.constant(where->inputs[1]);
    const auto whereFalse = editor.constant(where->inputs[2]);
    if (!whereTrue || !whereFalse || std::max(*whereTrue, *whereFalse) != 0
        || std::min(*whereTrue, *whereFalse) > kSwallowsScores)
        return term;
    return {where->inputs[0], term.scores, true, *whereTrue != 0, std::min(*whereTrue, *whereFalse)};
}

/// Several conditions at once, of which one is known: they are read one by one.
void separateConditions(const FuseEditor &editor, KnownMasks &masks, std::vector<MaskTerm> &terms)
{
    constexpr int kMostConditions = 16;
    const auto conditionsOf = [&](const MaskTerm &term) {
        std::vector<MaskTerm> conditions{asCondition(editor, term)};
        for (std::size_t i = 0; i < conditions.size() && conditions.size() < kMostConditions; ++i) {
            MaskTerm &each = conditions[i];
            const Operator *made = editor.maker(each.mask);
            if (!each.boolean)
                break;
            if (made != nullptr && made->kind == OperatorKind::Not) {
                each.mask = made->inputs[0];
                each.isHidden = !each.isHidden;
                --i; // which may be several
            } else if (made != nullptr
                && made->kind == (each.isHidden ? OperatorKind::Or : OperatorKind::And)) {
                MaskTerm other = each;
                each.mask = made->inputs[0];
                other.mask = made->inputs[1];
                conditions.push_back(std::move(other));
                --i;
            }
        }
        return conditions;
    };
    std::vector<MaskTerm> all;
    for (const MaskTerm &term : terms) {
        const auto conditions = conditionsOf(term);
        const auto known = std::count_if(conditions.begin(), conditions.end(),
            [&](const MaskTerm &each) { return knownMask(editor, masks, each).has_value(); });
        // Where a query may see nothing at all, a finite score makes it see everything: also what is ahead.
        if (known == std::ssize(conditions) || (known > 0 && std::isinf(conditions.front().hiddenScore)))
            all.insert(all.end(), conditions.begin(), conditions.end());
        else
            all.push_back(term);
    }
    terms = std::move(all);
}

/// Of the masks, those that an Attention's attributes can say become them.
void readMasks(FuseEditor &editor, KnownMasks &masks, std::vector<MaskTerm> &terms, Attributes &attributes)
{
    separateConditions(editor, masks, terms);
    for (auto term = terms.begin(); term != terms.end();) {
        const auto known = knownMask(editor, masks, *term);
        // A bias of zeros may be trained; one that hides keys is none.
        const bool trained = editor.tensor(term->mask).role == TensorRole::Weight;
        if (!known || (known->seesAll && trained) || (!known->seesAll && attributes.has("causal"))) {
            ++term;
            continue;
        }
        if (!known->seesAll) {
            attributes.set("causal", std::int64_t{1});
            if (known->reach.offset != 0)
                attributes.set("offset", known->reach.offset);
            if (known->reach.window != 0)
                attributes.set("window", known->reach.window);
            if (trained)
                editor.makeBuffer(term->mask);
        }
        term = terms.erase(term);
    }
}

/// The one score that boolean masks give to hidden keys; nothing if there are several, or others are added to
/// it.
bool readHiddenScore(const std::vector<MaskTerm> &terms, Attributes &attributes)
{
    std::optional<double> score;
    for (const MaskTerm &term : terms) {
        if (!term.boolean)
            continue;
        if ((score && *score != term.hiddenScore) || (term.hiddenScore > kHidingScore && terms.size() > 1)
            || std::isnan(term.hiddenScore) || term.hiddenScore == HUGE_VAL)
            return false;
        score = term.hiddenScore;
    }
    if (score && std::isfinite(*score))
        attributes.set("masked_score", *score);
    return true;
}

/// Adds the masks to the inputs, in the shapes that go with scores [`scores`].
bool addMasks(const FuseEditor &editor, AttentionWriter &writer, const std::vector<MaskTerm> &terms,
    const Shape &scores, DataType type, Operator &fused)
{
    for (const MaskTerm &term : terms) {
        if (!term.boolean && editor.tensor(term.mask).type.dataType != type)
            return false;
        const auto shape = maskShape(editor.shape(term.mask), term.scores, scores);
        if (!shape)
            return false;
        TensorId mask = term.boolean && term.isHidden ? writer.negated(term.mask) : term.mask;
        if (*shape != editor.shape(mask))
            mask = writer.reshaped(mask, *shape);
        fused.inputs.push_back(mask);
    }
    return true;
}

/// Keys and values of the heads that they have before they are copied.
void readBeforeCopies(const FuseEditor &editor, AttentionWriter &writer, Operator &fused)
{
    const std::size_t axis = editor.shape(fused.inputs[1]).size() - 3;
    const std::int64_t copies = writer.copiesAlong(fused.inputs[1], axis);
    if (copies == 1 || writer.copiesAlong(fused.inputs[2], axis) != copies)
        return;
    for (const std::size_t slot : {1U, 2U})
        fused.inputs[slot] = writer.beforeCopies(fused.inputs[slot], axis, copies);
}

/// Gives the operator its outputs and puts it, with what was made around it, in place of `members`.
/// @param y  the result in the file, in a shape of its own
void place(FuseEditor &editor, AttentionWriter &writer, const Members &members, Operator fused, TensorId y)
{
    std::vector<TensorType> inputs;
    for (const TensorId id : fused.inputs)
        inputs.push_back(editor.tensor(id).type);
    const auto types =
        inferTypes(fused.kind, fused.attributes, inputs, std::vector<bool>(inputs.size(), true), {});
    if (!types || elementCount((*types)[0].shape) != elementCount(editor.shape(y))
        || (*types)[0].dataType != editor.tensor(y).type.dataType)
        return;
    const bool same = (*types)[0].shape == editor.shape(y);
    fused.outputs = {same ? y : editor.addTensor((*types)[0], y, "attended"),
        editor.addTensor((*types)[1], y, "log_sum"), editor.addTensor((*types)[2], y, "probabilities")};
    const TensorId result = fused.outputs[0];
    writer.add(std::move(fused));
    if (!same) {
        Operator shaped;
        shaped.kind = OperatorKind::Reshape;
        shaped.inputs = {result};
        shaped.outputs = {y};
        writer.add(std::move(shaped));
    }
    editor.replace(members, writer.take());
}

/// The leading dimensions that attention is written with: the most that queries or scores have on the way.
Shape leadingOf(const FuseEditor &editor, TensorId query, const ScorePath &path)
{
    Shape most = path.shapes.front();
    for (const Shape &shape : path.shapes) {
        if (shape.size() > most.size())
            most = shape;
    }
    const Operator *made = editor.madeBy(query, OperatorKind::Reshape);
    if (made != nullptr && keepsMatrices(editor.shape(made->inputs[0]), editor.shape(query))
        && editor.shape(made->inputs[0]).size() > most.size())
        most = editor.shape(made->inputs[0]);
    return Shape(most.begin(), most.end() - 2);
}

void fuseSoftmaxAttention(FuseEditor &editor, KnownMasks &masks, const Operator &softmax)
{
    const TensorId scores = softmax.inputs[0];
    const Shape written = editor.shape(scores);
    ScorePath path;
    WeightPath weights;
    if (written.size() < 3
        || softmax.attributes.integer("axis") + 1 != static_cast<std::int64_t>(written.size())
        || !climb(editor, scores, softmax, path) || !descend(editor, softmax.outputs[0], weights))
        return;
    Operator fused;
    fused.kind = OperatorKind::Attention;
    double scale = path.softcap == 0 ? path.factor : path.factor * path.softcap;
    const TensorId query = withoutFactors(editor, path.product->inputs[0], scale);
    const TensorId turnedKey = withoutFactors(editor, path.product->inputs[1], scale);
    const TensorId value = weights.product->inputs[1];
    const Shape q = editor.shape(query);
    const Shape k = editor.shape(turnedKey);
    const Shape v = editor.shape(value);
    const DataType type = editor.tensor(query).type.dataType;
    // Keys and values of one head stand for those of all (multi-query attention, arXiv:1911.02150). Products
    // that broadcast otherwise, over samples or one of the two alone, are left as they are.
    const bool oneHead = q.size() >= 4 && q[q.size() - 3] > 1 && k.size() == q.size() && v.size() == q.size()
        && k[k.size() - 3] == 1 && v[v.size() - 3] == 1;
    const auto matches = [oneHead](const Shape &a, const Shape &b) {
        return a.size() == b.size() && a.size() >= 3
            && std::equal(a.begin(), a.end() - (oneHead ? 3 : 2), b.begin());
    };
    if (!matches(q, k) || !matches(editor.shape(weights.product->inputs[0]), v) || !isFloating(type))
        return;
    const Shape lead = leadingOf(editor, query, path);
    if (lead.empty() || (oneHead && lead.back() != q[q.size() - 3]))
        return;
    const auto shaped = [&lead](std::int64_t rows, std::int64_t columns) {
        Shape shape = lead;
        shape.insert(shape.end(), {rows, columns});
        return shape;
    };
    const auto keyShaped = [&](std::int64_t rows, std::int64_t columns) {
        Shape shape = shaped(rows, columns);
        if (oneHead)
            shape[shape.size() - 3] = 1;
        return shape;
    };
    const std::int64_t queries = q[q.size() - 2];
    const std::int64_t keys = k.back();
    const Shape target = shaped(queries, keys);
    if (elementCount(target) != elementCount(written) || v[v.size() - 2] != keys)
        return;

    AttentionWriter writer(editor);
    TensorId key = writer.turned(turnedKey);
    key = withoutFactors(editor, key, scale);
    fused.inputs = {writer.reshaped(query, shaped(queries, q.back())),
        writer.reshaped(key, keyShaped(keys, q.back())), writer.reshaped(value, keyShaped(keys, v.back()))};
    readBeforeCopies(editor, writer, fused);
    fused.attributes.set("scale", scale);
    if (path.softcap != 0)
        fused.attributes.set("softcap", std::abs(path.softcap)); // tanh is odd
    if (weights.dropout != nullptr) {
        fused.attributes.set("dropout", weights.dropout->attributes.real("ratio", 0.5));
        fused.attributes.set("seed", weights.dropout->attributes.integer("seed"));
    }
    separateSums(editor, path.terms);
    readMasks(editor, masks, path.terms, fused.attributes);
    if (!readHiddenScore(path.terms, fused.attributes)
        || !addMasks(editor, writer, path.terms, target, type, fused))
        return;
    Members members = path.members;
    members.push_back(&softmax);
    members.insert(members.end(), weights.members.begin(), weights.members.end());
    place(editor, writer, members, std::move(fused), weights.product->outputs[0]);
}

/// An Attention of the file's own: its mask and its copied heads.
void simplifyAttention(FuseEditor &editor, KnownMasks &masks, const Operator &op)
{
    AttentionWriter writer(editor);
    Operator fused = op;
    fused.sources.clear();
    readBeforeCopies(editor, writer, fused);
    Shape scores = editor.shape(op.inputs[0]);
    scores.back() = editor.shape(op.inputs[1])[scores.size() - 2];
    std::vector<MaskTerm> terms;
    for (std::size_t slot = 3; slot < op.inputs.size(); ++slot) {
        const bool boolean = editor.tensor(op.inputs[slot]).type.dataType == DataType::Bool;
        terms.push_back({op.inputs[slot], scores, boolean, false,
            op.attributes.has("masked_score") ? op.attributes.real("masked_score") : -HUGE_VAL});
    }
    readMasks(editor, masks, terms, fused.attributes);
    fused.inputs.resize(3);
    if (!addMasks(editor, writer, terms, scores, editor.tensor(op.inputs[0]).type.dataType, fused))
        return;
    if (fused.inputs == op.inputs)
        return;
    writer.add(std::move(fused));
    editor.replace({&op}, writer.take());
}

} // namespace

void fuseAttentions(FuseEditor &editor)
{
    KnownMasks masks(editor);
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i))
            continue;
        if (editor.op(i).kind == OperatorKind::Softmax)
            fuseSoftmaxAttention(editor, masks, editor.op(i));
        else if (editor.op(i).kind == OperatorKind::Attention)
            simplifyAttention(editor, masks, editor.op(i));
    }
}

} // namespace planloom
