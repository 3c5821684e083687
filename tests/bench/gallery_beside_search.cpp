// Whether some plan of the gallery is faster than what the search finds without rows:
// gallery_beside_search CLUSTER MODEL [--entry NAME] [--plans N] [--all].
//
// Of every entry N plans (40) are planned and simulated: parameters at random first, then the best of these
// with one parameter changed after another, until that gives nothing. The fastest that fits the devices'
// memory (or, where nothing does, needs no more than the search's plan) stands beside the search's plan; one
// that is faster is marked and counts in the exit status. Entries that are never flushed are left out, as
// they train otherwise, and those that are searched themselves.
// --all shows every plan.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "engine/gallery/gallery.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace planloom;

namespace {

struct Timed {
    std::string spec{};
    double seconds = std::numeric_limits<double>::infinity();
    double peak = 0; ///< GB.
    bool fits = false;

    bool isBetterThan(const Timed &other) const
    {
        return fits != other.fits ? fits : fits ? seconds < other.seconds : peak < other.peak;
    }
};

/// What is tried of a parameter; its fallback first.
std::vector<std::string> valuesOf(const GalleryParameter &parameter, std::int32_t devices)
{
    std::vector<std::string> values{parameter.fallback};
    const auto add = [&](std::string value) {
        if (value != parameter.fallback)
            values.push_back(std::move(value));
    };
    switch (parameter.kind) {
    case GalleryParameterKind::Count:
        if (parameter.fallback == "rest" || parameter.fallback == "devices")
            break; // follows from the others
        for (std::int64_t n = std::max<std::int64_t>(parameter.least, 1); n <= devices; n *= 2)
            add(std::to_string(n));
        if (parameter.most < 4) {
            values.clear();
            for (std::int64_t n = parameter.least; n <= parameter.most; ++n)
                values.push_back(std::to_string(n));
        }
        break;
    case GalleryParameterKind::Switch:
        values = {"0", "1"};
        break;
    case GalleryParameterKind::Word:
        for (const std::string &word : parameter.words)
            add(word);
        break;
    case GalleryParameterKind::Layers:
        for (const char *layers : {"0", "0-1", "0-3", "0-7", "*"})
            add(layers);
        break;
    case GalleryParameterKind::MicroBatches:
    case GalleryParameterKind::Updates:
        for (int n = 1; n <= 128; n *= 2)
            add(std::to_string(n));
        break;
    case GalleryParameterKind::Layout: // follows from the degrees
        break;
    case GalleryParameterKind::Modules:
        for (const char *modules : {"core_attn", "full"})
            add(modules);
        break;
    }
    return values;
}

/// One model on one cluster.
class Case
{
public:
    Case(ModelSnapshot model, std::string cluster, bool showsAll)
        : m_model(std::move(model))
        , m_cluster(std::move(cluster))
        , m_showsAll(showsAll)
    {
    }

    /// Where nothing fits, those that need no more than this plan count as fitting from then on.
    std::optional<Timed> searched()
    {
        PlanRequest request = requestOf({});
        request.search = true;
        std::optional<Timed> found = timed(request);
        if (found && !found->fits) {
            m_room = found->peak;
            found->fits = true;
        }
        return found;
    }
    bool nothingFits() const { return m_room.has_value(); }

    /// The best plan of an entry; nothing where it does not apply.
    std::optional<Timed> bestOf(const GalleryEntry &entry, std::int32_t devices, int most)
    {
        m_tried.clear();
        std::vector<std::vector<std::string>> values;
        for (const GalleryParameter &each : entry.parameters)
            values.push_back(valuesOf(each, devices));
        std::minstd_rand random(1);
        std::optional<Timed> best;
        std::vector<std::size_t> at(values.size(), 0);
        std::vector<std::size_t> bestAt = at;
        const auto look = [&](const std::vector<std::size_t> &point) {
            std::string spec = entry.name;
            for (std::size_t i = 0; i < point.size(); ++i)
                if (entry.parameters[i].fallback != values[i][point[i]])
                    spec += (spec == entry.name ? ":" : ",") + entry.parameters[i].name + "="
                        + values[i][point[i]];
            if (!m_tried.insert(spec).second)
                return false;
            const auto measured = timed(requestOf(spec));
            if (!measured)
                return false;
            ++m_planned;
            if (best && !measured->isBetterThan(*best))
                return false;
            best = measured;
            bestAt = point;
            return true;
        };
        m_planned = 0;
        look(at);
        for (int draw = 0; draw < 20 * most && m_planned < most / 2; ++draw) {
            for (std::size_t i = 0; i < at.size(); ++i)
                at[i] = random() % 3 == 0 ? 0 : random() % values[i].size();
            look(at);
        }
        for (bool gained = best.has_value(); gained && m_planned < most;) {
            gained = false;
            for (std::size_t i = 0; i < values.size(); ++i)
                for (std::size_t value = 0; value < values[i].size() && m_planned < most; ++value) {
                    std::vector<std::size_t> point = bestAt;
                    point[i] = value;
                    gained |= look(point);
                }
        }
        return best;
    }

    int planned() const { return m_planned; }

private:
    PlanRequest requestOf(const std::string &spec) const
    {
        PlanRequest request;
        request.model = m_model;
        request.gallery = spec;
        request.target = {m_cluster, {}, 0};
        request.upTo = PlanGrade::Timed;
        return request;
    }

    std::optional<Timed> timed(const PlanRequest &request) const
    {
        const auto answer = planOf(request);
        if (!answer)
            return std::nullopt;
        const TimelineSummary &summary = (*answer)->summary;
        Timed result{request.gallery, summary.stepSeconds,
            static_cast<double>(summary.largestPeak.count) / 1e9, false};
        result.fits = result.peak <= m_room.value_or((*answer)->cluster.device.memory.value / 1e9);
        if (m_showsAll) {
            std::printf("    %10.3f ms  peak %6.1f GB%s  %s\n", 1e3 * result.seconds, result.peak,
                result.fits ? "" : "!", result.spec.c_str());
            std::fflush(stdout);
        }
        return result;
    }

    ModelSnapshot m_model{};
    std::string m_cluster{};
    bool m_showsAll = false;
    std::optional<double> m_room{}; ///< GB, instead of the devices'.
    std::set<std::string> m_tried{};
    int m_planned = 0;
};

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto option = [&words](const std::string &name, const std::string &missing) {
        const auto found = std::find(words.begin(), words.end(), name);
        if (found == words.end() || found + 1 == words.end())
            return missing;
        const std::string value = *(found + 1);
        words.erase(found, found + 2);
        return value;
    };
    const std::string only = option("--entry", "");
    const int plans = std::atoi(option("--plans", "40").c_str());
    const bool all = std::erase(words, "--all") > 0;
    if (words.size() != 2) {
        std::fprintf(stderr, "gallery_beside_search CLUSTER MODEL [--entry NAME] [--plans N] [--all]\n");
        return 2;
    }
    const auto target = resolve(TargetChoice{words[0], {}, 0});
    const auto model = openModel({words[1], {}, {}}, {}, KeepContent::No);
    if (!target || !model) {
        std::fprintf(stderr, "%s\n", describe(!target ? target.error() : model.error()).c_str());
        return 2;
    }
    Case one(*model, words[0], all);
    const auto found = one.searched();
    if (found)
        std::printf("%s on %s: the search's plan takes %.3f ms, peak %.1f GB%s\n", words[1].c_str(),
            words[0].c_str(), 1e3 * found->seconds, found->peak,
            one.nothingFits() ? ": nothing fits, others are to need no more" : "");
    else
        std::printf("%s on %s: the search finds no plan\n", words[1].c_str(), words[0].c_str());
    std::fflush(stdout);
    int faster = 0;
    for (const GalleryEntry &entry : builtInGallery().entries) {
        const bool isSearched = std::any_of(entry.parameters.begin(), entry.parameters.end(),
            [](const GalleryParameter &each) { return each.maySolve(); });
        if ((!only.empty() && entry.name != only) || isSearched || entry.name.starts_with("pipedream"))
            continue;
        const auto best = one.bestOf(entry, target->deviceCount, plans);
        if (!best)
            continue;
        const bool wins = !found || best->isBetterThan(*found);
        faster += wins ? 1 : 0;
        std::printf("  %s %-18s %10.3f ms  %6.3f of the search's  peak %6.1f GB%s  %3d plans  %s\n",
            wins ? "FASTER" : "      ", entry.name.c_str(), 1e3 * best->seconds,
            found ? best->seconds / found->seconds : 0, best->peak, best->fits ? " " : "!", one.planned(),
            best->spec.c_str());
        std::fflush(stdout);
    }
    return faster > 0 ? 1 : 0;
}
