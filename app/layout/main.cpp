// planloom-layout: reads graphs on standard input, lays them out with Graphviz's dot, writes positions to
// standard output (widgets/dag/layout_protocol.h). It limits its own memory, CPU time and stack, so that a
// graph dot cannot cope with ends this process and nothing else. It ends with its input.

#include "widgets/dag/layout_protocol.h"

#include <graphviz/gvc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>

namespace {

using namespace planloom;

constexpr rlim_t kMemoryBytes = rlim_t{1} << 30;
constexpr rlim_t kSecondsEach = 2; ///< CPU time of one layout; the window gives up long before.
constexpr std::size_t kStackBytes = std::size_t{64} << 20;
constexpr double kPointsPerInch = 72;

/// Lengths are scene units here and in the answer: one is taken as one point.
std::string inches(double points)
{
    std::array<char, 64> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.5f", points / kPointsPerInch);
    return buffer.data();
}

void set(void *object, const char *name, const std::string &value)
{
    // The C interface takes what it does not change as char *.
    agsafeset(object, const_cast<char *>(name), const_cast<char *>(value.c_str()), const_cast<char *>(""));
}

LayoutAnswer layOut(GVC_t *context, const LayoutRequest &request)
{
    LayoutAnswer answer{.id = request.id, .centres = {}, .failure = {}};
    Agraph_t *graph = agopen(const_cast<char *>("g"), Agdirected, nullptr);
    set(graph, "newrank", "true");
    set(graph, "splines", "none");
    set(graph, "nodesep", inches(request.graph.nodeGap));
    set(graph, "ranksep", inches(request.graph.rankGap));
    std::array<Agraph_t *, 3> pinned{};
    std::vector<Agnode_t *> nodes;
    for (std::size_t i = 0; i < request.graph.nodes.size(); ++i) {
        const auto &box = request.graph.nodes[i];
        const auto pin = static_cast<std::size_t>(box.pin);
        std::string name = std::to_string(i);
        Agraph_t *owner = graph;
        if (pin != 0) {
            if (pinned[pin] == nullptr) {
                pinned[pin] = agsubg(graph, const_cast<char *>(pin == 1 ? "first" : "last"), 1);
                set(pinned[pin], "rank", pin == 1 ? "source" : "sink");
            }
            owner = pinned[pin];
        }
        Agnode_t *node = agnode(owner, name.data(), 1);
        set(node, "label", "");
        set(node, "shape", "box");
        set(node, "fixedsize", "true");
        set(node, "width", inches(box.width));
        set(node, "height", inches(box.height));
        nodes.push_back(node);
    }
    for (const auto &edge : request.graph.edges) {
        if (edge.from != edge.to)
            agedge(graph, nodes[static_cast<std::size_t>(edge.from)],
                nodes[static_cast<std::size_t>(edge.to)], nullptr, 1);
    }
    if (gvLayout(context, graph, "dot") != 0) {
        answer.failure = "dot gave up";
    } else {
        for (Agnode_t *node : nodes)
            answer.centres.push_back({ND_coord(node).x, -ND_coord(node).y});
        gvFreeLayout(context, graph);
    }
    agclose(graph);
    return answer;
}

bool writeAll(const std::string &text)
{
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (count <= 0)
            return false;
        done += static_cast<std::size_t>(count);
    }
    return true;
}

/// Each layout may use so much CPU time, counted from now.
void renewTimeLimit()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    rlimit limit{};
    getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + kSecondsEach;
    setrlimit(RLIMIT_CPU, &limit);
}

/// All of Graphviz runs on this thread, which has a large stack: dot's recursion is as deep as the graph.
void *serve(void *status)
{
    GVC_t *context = gvContext();
    LayoutReader reader;
    std::array<char, 65536> buffer{};
    for (;;) {
        bool found = false;
        const auto request = reader.nextRequest(found);
        if (!request) {
            std::fprintf(stderr, "%s\n", describe(request.error()).c_str());
            *static_cast<int *>(status) = 2;
            return nullptr;
        }
        if (found) {
            renewTimeLimit();
            if (!writeAll(encode(layOut(context, *request))))
                return nullptr;
            continue;
        }
        const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (count <= 0)
            break;
        reader.append({buffer.data(), static_cast<std::size_t>(count)});
    }
    gvFreeContext(context);
    return nullptr;
}

} // namespace

int main()
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); // not to outlive a window that was killed
    std::signal(SIGPIPE, SIG_IGN);
    const rlimit memory{kMemoryBytes, kMemoryBytes};
    setrlimit(RLIMIT_AS, &memory);
    const rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
    agseterr(AGMAX);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread{};
    int status = 0;
    if (pthread_create(&thread, &attributes, serve, &status) != 0) {
        std::fputs("planloom-layout: cannot start its thread\n", stderr);
        return 1;
    }
    pthread_join(thread, nullptr);
    return status;
}
